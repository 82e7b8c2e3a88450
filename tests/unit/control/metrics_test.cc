// SPDX-License-Identifier: Apache-2.0
#include "control/sci/metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <initializer_list>
#include <limits>

namespace margay::control {
namespace {

constexpr uint32_t kOne = 1, kOther = 2;

Sample gauge(Metric m, double v) { return {m, SampleKind::kGauge, v}; }
Sample counter(Metric m, double v) { return {m, SampleKind::kCounter, v}; }
void scrape(MetricCollector& c, uint32_t instance, std::initializer_list<Sample> samples, Nanoseconds now) {
  c.on_scrape(instance, {samples.begin(), samples.size()}, now);
}
MetricCollector collector() { return {MetricsConfig{.interval = 5 * kSecond}, CpuRule{}}; }

TEST(MetricCollector, KeepsTheNewestOfEachInstanceWithItsAge_SCI21_SCI22) {
  MetricCollector c = collector();
  scrape(c, kOne, {gauge(Metric::kCpu, 0.5), gauge(Metric::kQueueDepth, 7)}, 100 * kSecond);
  scrape(c, kOther, {gauge(Metric::kCpu, 0.1)}, 101 * kSecond);
  const auto cpu = c.read(kOne, Metric::kCpu, 103 * kSecond);
  ASSERT_TRUE(cpu.has_value());
  EXPECT_EQ(cpu->value, 0.5);
  EXPECT_EQ(cpu->age, 3 * kSecond);
  EXPECT_EQ(c.read(kOne, Metric::kQueueDepth, 103 * kSecond)->value, 7);
  EXPECT_EQ(c.read(kOther, Metric::kCpu, 103 * kSecond)->value, 0.1);
  EXPECT_FALSE(c.read(kOther, Metric::kQueueDepth, 103 * kSecond).has_value());
  EXPECT_FALSE(c.read(3, Metric::kCpu, 103 * kSecond).has_value());
}

TEST(MetricCollector, OlderThanThreeIntervalsIsAbsent_SCI24) {
  MetricCollector c = collector();
  scrape(c, kOne, {gauge(Metric::kCpu, 0.5)}, 100 * kSecond);
  EXPECT_TRUE(c.read(kOne, Metric::kCpu, 115 * kSecond).has_value());
  EXPECT_FALSE(c.read(kOne, Metric::kCpu, 115 * kSecond + 1).has_value());
}

TEST(MetricCollector, AFailedScrapeMakesAllStaleAtOnce) {
  MetricCollector c = collector();
  scrape(c, kOne, {gauge(Metric::kCpu, 0.5), counter(Metric::kRequests, 10)}, 100 * kSecond);
  scrape(c, kOne, {gauge(Metric::kCpu, 0.5), counter(Metric::kRequests, 20)}, 105 * kSecond);
  ASSERT_TRUE(c.read(kOne, Metric::kRequests, 106 * kSecond).has_value());
  c.on_failed_scrape(kOne);
  EXPECT_FALSE(c.read(kOne, Metric::kCpu, 106 * kSecond).has_value());
  EXPECT_FALSE(c.read(kOne, Metric::kRequests, 106 * kSecond).has_value());
}

TEST(MetricCollector, ASeriesThatLeavesTheScrapeIsStaleAtOnce) {
  MetricCollector c = collector();
  scrape(c, kOne, {gauge(Metric::kCpu, 0.5), gauge(Metric::kLoad, 1)}, 100 * kSecond);
  scrape(c, kOne, {gauge(Metric::kLoad, 2)}, 101 * kSecond);
  EXPECT_FALSE(c.read(kOne, Metric::kCpu, 101 * kSecond).has_value());
  EXPECT_EQ(c.read(kOne, Metric::kLoad, 101 * kSecond)->value, 2);
}

TEST(MetricCollector, CountersBecomeRates_SCI22) {
  MetricCollector c = collector();
  scrape(c, kOne, {counter(Metric::kRequests, 1000)}, 100 * kSecond);
  EXPECT_FALSE(c.read(kOne, Metric::kRequests, 100 * kSecond).has_value());  // one point is no rate
  scrape(c, kOne, {counter(Metric::kRequests, 1250)}, 105 * kSecond);
  EXPECT_DOUBLE_EQ(c.read(kOne, Metric::kRequests, 105 * kSecond)->value, 50);
}

TEST(MetricCollector, ACounterThatWentBackBeganAtZero) {
  MetricCollector c = collector();
  scrape(c, kOne, {counter(Metric::kErrors, 1000)}, 100 * kSecond);
  scrape(c, kOne, {counter(Metric::kErrors, 20)}, 105 * kSecond);
  EXPECT_DOUBLE_EQ(c.read(kOne, Metric::kErrors, 105 * kSecond)->value, 4);
}

TEST(MetricCollector, ARateBridgesAFailedScrapeButNoLongGap) {
  MetricCollector c = collector();
  scrape(c, kOne, {counter(Metric::kRequests, 0)}, 100 * kSecond);
  c.on_failed_scrape(kOne);
  scrape(c, kOne, {counter(Metric::kRequests, 100)}, 110 * kSecond);
  EXPECT_DOUBLE_EQ(c.read(kOne, Metric::kRequests, 110 * kSecond)->value, 10);
  scrape(c, kOne, {counter(Metric::kRequests, 200)}, 126 * kSecond);
  EXPECT_FALSE(c.read(kOne, Metric::kRequests, 126 * kSecond).has_value());
}

TEST(MetricCollector, ARateThatIsNoNumberIsLeftOut) {
  MetricCollector c = collector();
  scrape(c, kOne, {counter(Metric::kRequests, 0)}, 100 * kSecond);
  scrape(c, kOne, {counter(Metric::kRequests, 1e308)}, 100 * kSecond + kMillisecond);
  EXPECT_FALSE(c.read(kOne, Metric::kRequests, 100 * kSecond + kMillisecond).has_value());
  EXPECT_EQ(c.impossible_samples(), 1u);
}

TEST(MetricCollector, LeavesOutWhatCannotBe) {
  MetricCollector c = collector();
  scrape(c, kOne,
         {gauge(Metric::kCpu, std::nan("")), gauge(Metric::kLoad, -1),
          gauge(Metric::kMemory, std::numeric_limits<double>::infinity()), gauge(Metric::kGpu, 0.2)},
         kSecond);
  EXPECT_FALSE(c.read(kOne, Metric::kCpu, kSecond).has_value());
  EXPECT_FALSE(c.read(kOne, Metric::kLoad, kSecond).has_value());
  EXPECT_FALSE(c.read(kOne, Metric::kMemory, kSecond).has_value());
  EXPECT_TRUE(c.read(kOne, Metric::kGpu, kSecond).has_value());
  EXPECT_EQ(c.impossible_samples(), 3u);
}

// Samples each 5 s, the last one at `last` seconds.
std::optional<bool> cpu_run(MetricCollector& c, double cpu, Nanoseconds first, Nanoseconds last) {
  for (Nanoseconds t = first; t <= last; t += 5) scrape(c, kOne, {gauge(Metric::kCpu, cpu)}, t * kSecond);
  return c.cpu_too_high(kOne, last * kSecond);
}

TEST(MetricCollector, CpuAbove90PercentFor30Seconds_SCI50) {
  MetricCollector c = collector();
  EXPECT_EQ(cpu_run(c, 0.95, 100, 125), false);
  EXPECT_EQ(cpu_run(c, 0.95, 130, 130), true);
  EXPECT_EQ(cpu_run(c, 0.9, 135, 135), false);  // 90 % is not above 90 %
  EXPECT_EQ(cpu_run(c, 0.91, 140, 165), false);
  EXPECT_EQ(cpu_run(c, 0.91, 170, 170), true);
}

TEST(MetricCollector, TheTimeBetweenSamplesIsNoEvidence_SCI50) {
  MetricCollector c = collector();
  cpu_run(c, 0.95, 100, 125);
  EXPECT_EQ(c.cpu_too_high(kOne, 131 * kSecond), false);
  EXPECT_EQ(c.cpu_too_high(kOne, 141 * kSecond), std::nullopt);  // stale
  EXPECT_EQ(cpu_run(c, 0.95, 145, 145), false);                  // begins anew after the gap
}

TEST(MetricCollector, AFailedScrapeBreaksTheCpuRun_SCI50) {
  MetricCollector c = collector();
  cpu_run(c, 0.95, 100, 125);
  c.on_failed_scrape(kOne);
  EXPECT_EQ(c.cpu_too_high(kOne, 126 * kSecond), std::nullopt);
  EXPECT_EQ(cpu_run(c, 0.95, 130, 130), false);
}

TEST(MetricCollector, WithoutARuleCpuIsNotJudged_SCI52) {
  MetricCollector c{MetricsConfig{}, std::nullopt};
  EXPECT_EQ(cpu_run(c, 1, 100, 200), std::nullopt);
}

}  // namespace
}  // namespace margay::control
