// SPDX-License-Identifier: Apache-2.0
// Each knob of Part C that belongs to the C-SMA: its key, its default (Part D where that says otherwise), a value that
// reaches the core's configuration, and what is refused below and above (CSMA-36, 44, 68, 123, 127, 155).
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "control/site_reader.h"
#include "tests/support/control_site_text.h"

namespace margay::control {
namespace {

using namespace c_sma;
using margay::test::MarkedText;

struct Refused {
  std::string value, expected;  // the beginning of what the line says it expected
};
struct Knob {
  std::string path;  // below c_sma
  std::function<double(const CSmaConfig&)> get;
  double before;
  std::string value;
  double after;
  Refused below, above;
};

// "updates.backoff.max", "9s": updates: {backoff: {max: 9s}}
std::string flow(const std::string& path, const std::string& value) {
  const size_t dot = path.find('.');
  if (dot == std::string::npos) return path + ": " + value;
  return path.substr(0, dot) + ": {" + flow(path.substr(dot + 1), value) + "}";
}
std::string site_with(const std::string& what) { return margay::test::section("c_sma: {identity: x, " + what + "}\n"); }

double ms(Nanoseconds time) { return static_cast<double>(time) / kMillisecond; }
double ms(const std::optional<Nanoseconds>& time) { return time ? ms(*time) : -1; }
double per_second(const TokenRate& rate) { return static_cast<double>(kSecond) / static_cast<double>(rate.spacing); }
const Range& range(const CSmaConfig& c, ServiceMetric m) { return c.validation.ranges[static_cast<size_t>(m)]; }

constexpr double kMax = 4294967295;
const Refused kNegative{"-1", "an integer from "}, kBelow0s{"-1s", "a duration such as 300s or 200ms"},
    kBelow10ms{"9ms", "a duration from 10ms to 24h"}, kAboveDay{"86401s", "a duration from "},
    kBelow0Percent{"-1%", "a percentage from 0% to "}, kAbove400Percent{"401%", "a percentage from 0% to 400%"},
    kTooMany{"4294967296", "an integer from "}, kNoRate{"0/s", "a rate such as 200/s"},
    kTooFast{"1000001/s", "a rate of at most 1000000/s"}, kNoBurst{"0", "an integer from 1 to 1000000"},
    kAboveBurst{"1000001", "an integer from 1 to 1000000"};

const Knob kKnobs[] = {
    // Range: GAS, Price / CT / Reputation, Security Level
    {"validation.ranges.gas.max", [](const auto& c) { return range(c, ServiceMetric::kGas).max; }, kMax, "500", 500,
     kNegative, kTooMany},
    {"validation.ranges.gas.min", [](const auto& c) { return range(c, ServiceMetric::kGas).min; }, 0, "5", 5, kNegative,
     kTooMany},
    {"validation.ranges.price.max", [](const auto& c) { return range(c, ServiceMetric::kPrice).max; }, kMax, "7", 7,
     kNegative, kTooMany},
    {"validation.ranges.computing_time.max", [](const auto& c) { return range(c, ServiceMetric::kComputingTime).max; },
     3'600'000, "2h", 7'200'000, kBelow0s, kAboveDay},
    {"validation.ranges.reputation.max", [](const auto& c) { return range(c, ServiceMetric::kReputation).max; }, 10,
     "5", 5, kNegative, kTooMany},
    {"validation.ranges.security_level.max", [](const auto& c) { return range(c, ServiceMetric::kSecurityLevel).max; },
     10, "12", 12, kNegative, kTooMany},
    // Anomaly: GAS / CT / flap
    {"validation.gas_anomaly.change", [](const auto& c) { return c.validation.gas_anomaly.change.value(); }, 0.5, "40%",
     0.4, kBelow0Percent, kAbove400Percent},
    {"validation.gas_anomaly.within", [](const auto& c) { return ms(c.validation.gas_anomaly.within); }, 1000, "2s",
     2000, kBelow10ms, kAboveDay},
    {"validation.gas_anomaly.floor", [](const auto& c) { return c.validation.gas_anomaly.floor; }, 5, "9", 9, kNegative,
     kTooMany},
    {"validation.computing_time_anomaly.change",
     [](const auto& c) { return c.validation.computing_time_anomaly.change.value(); }, 1, "50%", 0.5, kBelow0Percent,
     kAbove400Percent},
    {"validation.computing_time_anomaly.within",
     [](const auto& c) { return ms(c.validation.computing_time_anomaly.within); }, 1000, "2s", 2000, kBelow10ms,
     kAboveDay},
    {"validation.computing_time_anomaly.floor",
     [](const auto& c) { return ms(c.validation.computing_time_anomaly.floor); }, 5, "9ms", 9, kBelow0s, kAboveDay},
    {"validation.flapping.transitions",
     [](const auto& c) { return c.validation.flapping.transitions; },
     3,
     "4",
     4,
     {"0", "an integer from 1 to 1000"},
     {"1001", "an integer from 1 to 1000"}},
    {"validation.flapping.within", [](const auto& c) { return ms(c.validation.flapping.within); }, 10'000, "5s", 5000,
     kBelow10ms, kAboveDay},
    {"validation.clock_skew.refuse", [](const auto& c) { return ms(c.validation.skew_refuse); }, 30'000, "20s", 20'000,
     kBelow10ms, kAboveDay},
    // Cache TTL: twice the reporting interval
    {"cache.ttl.gas", [](const auto& c) { return ms(c.cache.ttl_gas); }, -1, "3s", 3000, kBelow10ms, kAboveDay},
    {"cache.ttl.computing_time", [](const auto& c) { return ms(c.cache.ttl_computing_time); }, -1, "3s", 3000,
     kBelow10ms, kAboveDay},
    {"cache.ttl.optional", [](const auto& c) { return ms(c.cache.ttl_optional); }, -1, "3s", 3000, kBelow10ms,
     kAboveDay},
    // STALE grace period, max entries
    {"cache.grace", [](const auto& c) { return ms(c.cache.grace); }, 10'000, "0s", 0, kBelow0s, kAboveDay},
    {"cache.max_entries",
     [](const auto& c) { return c.cache.max_entries; },
     100'000,
     "1",
     1,
     {"0", "an integer from 1 to 10000000"},
     {"10000001", "an integer from 1 to 10000000"}},
    // C-SMA delta: GAS / CT
    {"updates.gas_change", [](const auto& c) { return c.updates.gas_change.value(); }, 0.1, "5%", 0.05, kBelow0Percent,
     kAbove400Percent},
    {"updates.gas_absolute", [](const auto& c) { return c.updates.gas_absolute; }, 50, "9", 9, kNegative, kTooMany},
    {"updates.computing_time_change", [](const auto& c) { return c.updates.computing_time_change.value(); }, 0.2, "5%",
     0.05, kBelow0Percent, kAbove400Percent},
    // Heartbeat (max) / min interval
    {"updates.heartbeat", [](const auto& c) { return ms(c.updates.heartbeat); }, 60'000, "7s", 7000, kBelow10ms,
     kAboveDay},
    {"updates.minimum_interval", [](const auto& c) { return ms(c.updates.minimum_interval); }, 5000, "0s", 0, kBelow0s,
     kAboveDay},
    // Safety margin (off, D-8) / EMA alpha / CT clamp
    {"transform.safety_margin",
     [](const auto& c) { return c.transform.safety_margin.value(); },
     1,
     "0.8",
     0.8,
     {"-0.1", "a number from 0 to 1"},
     {"1.1", "a number from 0 to 1"}},
    {"transform.smoothing.gas.alpha",  // off without `smoothing`
     [](const auto& c) { return c.transform.gas_smoothing ? c.transform.gas_smoothing->alpha.value() : -1; },
     -1,
     "0.2",
     0.2,
     {"-0.1", "a number from 0 to 1"},
     {"1.1", "a number from 0 to 1"}},
    {"transform.smoothing.gas.per",
     [](const auto& c) { return c.transform.gas_smoothing ? ms(c.transform.gas_smoothing->period) : -1; }, -1, "2s",
     2000, kBelow10ms, kAboveDay},
    {"transform.computing_time.min",
     [](const auto& c) { return c.transform.computing_time_min_ms; },
     1,
     "2ms",
     2,
     kBelow0s,
     {"3601s", "a duration from 0s to 1h"}},
    {"transform.computing_time.max",
     [](const auto& c) { return c.transform.computing_time_max_ms; },
     10'000,
     "2s",
     2000,
     {"0s", "a duration from 1ms to 1h"},
     {"3601s", "a duration from 1ms to 1h"}},
    // Token bucket rate, burst; critical
    {"updates.rate", [](const auto& c) { return per_second(c.updates.rate); }, 10, "5/s", 5, kNoRate, kTooFast},
    {"updates.burst", [](const auto& c) { return c.updates.rate.burst; }, 20, "6", 6, kNoBurst, kAboveBurst},
    {"updates.critical.rate", [](const auto& c) { return per_second(c.updates.critical); }, 50, "5/s", 5, kNoRate,
     kTooFast},
    {"updates.critical.burst", [](const auto& c) { return c.updates.critical.burst; }, 100, "6", 6, kNoBurst,
     kAboveBurst},
    // Backoff
    {"updates.backoff.initial", [](const auto& c) { return ms(c.updates.backoff_initial); }, 1000, "2s", 2000,
     kBelow10ms, kAboveDay},
    {"updates.backoff.max", [](const auto& c) { return ms(c.updates.backoff_max); }, 60'000, "9s", 9000, kBelow10ms,
     kAboveDay},
};

CSmaConfig config_of(const std::string& what) {
  const auto site = parse_site(site_with(what), "site.yaml");
  if (site) return site->c_sma->core;
  ADD_FAILURE() << site.error().message;
  return {};
}

TEST(CSmaKnobs, EachHasItsDefaultAndReachesTheCore) {
  const CSmaConfig defaults = config_of("accept: []");
  for (const Knob& knob : kKnobs) {
    EXPECT_DOUBLE_EQ(knob.get(defaults), knob.before) << knob.path << ", its default";
    EXPECT_DOUBLE_EQ(knob.get(config_of(flow(knob.path, knob.value))), knob.after) << knob.path << ": " << knob.value;
  }
}

TEST(CSmaKnobs, EachIsRefusedBelowAndAboveItsRange) {
  for (const Knob& knob : kKnobs) {
    for (const Refused& refused : {knob.below, knob.above}) {
      const MarkedText marked(site_with(flow(knob.path, "^" + refused.value)));
      const auto site = parse_site(marked.text, "site.yaml");
      ASSERT_FALSE(site) << knob.path << ": " << refused.value;
      const std::string& said = site.error().message;
      const std::string expected =
          "site.yaml:" + marked.place + ": c_sma." + knob.path + ": expected " + refused.expected;
      EXPECT_EQ(said.find(expected), 0u) << "expected " << expected << "\ngot      " << said;
      EXPECT_EQ(said.find('\n'), std::string::npos) << said;
    }
  }
}

}  // namespace
}  // namespace margay::control
