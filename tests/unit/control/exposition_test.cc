// SPDX-License-Identifier: Apache-2.0
// The text exposition format, by its description (prometheus.io, "Exposition formats", version 0.0.4).
#include "control/collection/http/exposition.h"

#include <cmath>

#include <gtest/gtest.h>

#include "tests/support/seed.h"

namespace margay::control {
namespace {

std::string error_of(const std::string& text) {
  const auto read = parse_exposition(text);
  return read ? "" : read.error().message;
}

// The description's own example, shortened.
TEST(Exposition, TheDescriptionsExampleIsRead) {
  const auto read = parse_exposition(R"(# HELP http_requests_total The total number of HTTP requests.
# TYPE http_requests_total counter
http_requests_total{method="post",code="200"} 1027 1395066363000
http_requests_total{method="post",code="400"}    3 1395066363000

# Escaping in label values:
msdos_file_access_time_seconds{path="C:\\DIR\\FILE.TXT",error="Cannot find file:\n\"FILE.TXT\""} 1.458255915e9

# Minimalistic line:
metric_without_timestamp_and_labels 12.47

# A weird metric from before the epoch:
something_weird{problem="division by zero"} +Inf -3982045

# TYPE http_request_duration_seconds histogram
http_request_duration_seconds_bucket{le="0.05"} 24054
http_request_duration_seconds_bucket{le="+Inf"} 144320
http_request_duration_seconds_sum 53423
http_request_duration_seconds_count 144320
# TYPE rpc_duration_seconds summary
rpc_duration_seconds{quantile="0.01"} 3102
rpc_duration_seconds_sum 1.7560473e+07
)");
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->size(), 11u);
  const auto& all = *read;
  EXPECT_EQ(all[0].name, "http_requests_total");
  EXPECT_EQ(all[0].value, 1027);
  EXPECT_EQ(all[0].type, SeriesType::kCounter);
  EXPECT_EQ(*all[1].label("code"), "400");
  EXPECT_EQ(all[1].label("none"), nullptr);
  EXPECT_EQ(all[1].value, 3);
  EXPECT_EQ(*all[2].label("path"), "C:\\DIR\\FILE.TXT");
  EXPECT_EQ(*all[2].label("error"), "Cannot find file:\n\"FILE.TXT\"");
  EXPECT_EQ(all[2].value, 1.458255915e9);
  EXPECT_EQ(all[3].value, 12.47);
  EXPECT_EQ(all[3].type, SeriesType::kUntyped);
  EXPECT_TRUE(std::isinf(all[4].value));
  EXPECT_EQ(all[5].type, SeriesType::kHistogram);
  EXPECT_EQ(all[7].type, SeriesType::kHistogram);
  EXPECT_EQ(all[9].type, SeriesType::kSummary);
  EXPECT_EQ(all[10].value, 1.7560473e+07);
}

TEST(Exposition, NumbersAreThoseOfTheFormat) {
  const auto read = parse_exposition("a NaN\nb -Inf\nc -0.5\nd +2\r\ne{} 1e3 # {trace=\"x\"} 1\n  f\t7");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_TRUE(std::isnan((*read)[0].value));
  EXPECT_EQ((*read)[1].value, -HUGE_VAL);
  EXPECT_EQ((*read)[2].value, -0.5);
  EXPECT_EQ((*read)[3].value, 2);
  EXPECT_EQ((*read)[4].value, 1000);
  EXPECT_EQ((*read)[5].value, 7);
  EXPECT_EQ(parse_exposition("")->size(), 0u);
}

TEST(Exposition, WhatIsWrongIsNamedByItsLine) {
  EXPECT_EQ(error_of("ok 1\n7up 1\n"), "line 2: expected a name of letters, digits, _ and :");
  EXPECT_EQ(error_of("ok one"), "line 1: ok: expected a number");
  EXPECT_EQ(error_of("ok"), "line 1: ok: expected a number");
  EXPECT_EQ(error_of("ok 1x"), "line 1: ok: expected a number");
  EXPECT_EQ(error_of("ok{mode=idle} 1"), "line 1: label mode: expected a value in quotes");
  EXPECT_EQ(error_of("ok{mode=\"idle} 1"), "line 1: label mode: expected a value in quotes");
  EXPECT_EQ(error_of("ok{=\"idle\"} 1"), "line 1: expected a label such as mode=\"idle\"");
  EXPECT_EQ(error_of("ok{a=\"1\" b=\"2\"} 1"), "line 1: expected , or } behind label a");
  EXPECT_EQ(error_of("<html>"), "line 1: expected a name of letters, digits, _ and :");
  EXPECT_EQ(parse_exposition("ok{a=\"1\",} 1")->size(), 1u) << "a comma may stand at the end";
}

TEST(Exposition, BoundsHold) {
  std::string labels = "m{";
  for (size_t i = 0; i <= kLabelsMax; ++i) labels += "l" + std::to_string(i) + "=\"x\",";
  EXPECT_EQ(error_of(labels + "} 1"), "line 1: more than 64 labels");
  std::string series;
  for (size_t i = 0; i <= kSeriesMax; ++i) series += "m 1\n";
  EXPECT_EQ(error_of(series), "line 100001: more than 100000 series");
  std::string types;
  for (size_t i = 0; i <= kSeriesMax; ++i) types += "# TYPE m" + std::to_string(i) + " gauge\n";
  EXPECT_EQ(error_of(types), "line 100001: more than 100000 types");
}

TEST(Exposition, DamagedTextIsReadOrRefused) {
  const uint64_t seed = test::test_seed();
  SCOPED_TRACE(test::seed_text(seed));
  test::Random random(seed);
  const std::string good = "# TYPE a counter\na{b=\"c\\n\",d=\"e\"} 1.5e3 7\nf NaN\n";
  for (int round = 0; round < 20'000; ++round) {
    std::string text = good;
    for (uint32_t n = 0; n <= random.below(4); ++n) {
      text[random.below(text.size())] = static_cast<char>(random.below(256));
    }
    text.resize(random.below(text.size() + 1));
    const auto read = parse_exposition(text);
    if (!read) {
      EXPECT_EQ(read.error().message.rfind("line ", 0), 0u);
    }
  }
}

}  // namespace
}  // namespace margay::control
