// SPDX-License-Identifier: Apache-2.0
#include "control/c_sma/transform.h"

#include <gtest/gtest.h>

namespace margay::c_sma {
namespace {

constexpr Nanoseconds kNow = 1000 * kSecond;

uint32_t gas_of(uint32_t gas, const TransformConfig& config, uint64_t healthy_scis = 1) {
  return *transform({.gas = gas}, config, nullptr, 0, healthy_scis, kNow).metrics.gas;
}

TEST(Margin, MultipliesGasRoundedDown_CSMA115_D49) {
  TransformConfig c;
  EXPECT_EQ(gas_of(1000, c), 1000u);  // off
  c.safety_margin = Share{0.8};
  EXPECT_EQ(gas_of(1000, c), 800u);
  EXPECT_EQ(gas_of(11, c), 8u);  // 8.8
}

TEST(Bounds, ComputingTimeIsBetweenOneAndTenThousand_CSMA116) {
  const auto bounded = [](uint32_t ms, const TransformConfig& c) {
    return transform({.computing_time_ms = ms, .computing_time_minimum_ms = ms, .computing_time_maximum_ms = ms}, c,
                     nullptr, 0, 1, kNow)
        .metrics;
  };
  for (const auto& [ms, expected] : {std::pair(0u, 1u), {1u, 1u}, {10000u, 10000u}, {10001u, 10000u}}) {
    const northbound::Metrics m = bounded(ms, {});
    EXPECT_EQ(m.computing_time_ms, expected);
    EXPECT_EQ(m.computing_time_minimum_ms, expected);
    EXPECT_EQ(m.computing_time_maximum_ms, expected);
    EXPECT_FALSE(m.gas);
  }
  TransformConfig c;
  c.computing_time_min_ms = 50;
  c.computing_time_max_ms = 60;
  EXPECT_EQ(bounded(10, c).computing_time_ms, 50u);
  EXPECT_EQ(bounded(70, c).computing_time_ms, 60u);
}

TEST(Bounds, AbsentStaysAbsent_D42) {
  TransformConfig c;
  c.safety_margin = Share{0.5};
  c.gas_smoothing = Smoothing{};
  Smoother s;
  EXPECT_EQ(transform({}, c, &s, 0, 1, kNow).metrics, northbound::Metrics{});
}

TEST(Smoothing, IsTheDocumentsFormulaOnceAPeriod_CSMA117_D49) {
  Smoother s;
  const Smoothing c;  // alpha 0.3, 5 s
  EXPECT_EQ(s.smooth(100, c, 0, kNow), 100u);
  EXPECT_EQ(s.smooth(200, c, 0, kNow + 5 * kSecond), 130u);   // 0.3 * 200 + 0.7 * 100
  EXPECT_EQ(s.smooth(200, c, 0, kNow + 10 * kSecond), 151u);  // 0.3 * 200 + 0.7 * 130
  EXPECT_EQ(s.smooth(200, c, 0, kNow + 15 * kSecond), 165u);  // 165.7, rounded down
}

TEST(Smoothing, ReportsAtAnyRateSmoothAlike_D35) {
  Smoother once, often;
  const Smoothing c;
  once.smooth(1000, c, 0, kNow);
  often.smooth(1000, c, 0, kNow);
  uint32_t last = 0;
  for (Nanoseconds i = 1; i <= 50; ++i) last = often.smooth(2000, c, 0, kNow + i * kSecond / 5);
  EXPECT_EQ(once.smooth(2000, c, 0, kNow + 10 * kSecond), 1510u);  // 2000 - 1000 * 0.7^2
  EXPECT_NEAR(last, 1510, 1);
}

TEST(Smoothing, DropsAreTakenAtOnce_D35) {
  Smoother s;
  s.smooth(100, {}, 0, kNow);
  EXPECT_EQ(s.smooth(40, {}, 0, kNow + 1), 40u);
  EXPECT_EQ(s.smooth(0, {}, 0, kNow + 2), 0u);
}

TEST(Smoothing, BeginsAnewWithAChangeOfHealthOrSource_D35) {
  Smoother s;
  s.smooth(100, {}, 0, kNow);
  EXPECT_EQ(s.smooth(200, {}, 1, kNow + kSecond), 200u);
}

TEST(Smoothing, KnobsMoveIt_CSMA109) {
  Smoother s;
  const Smoothing c{.alpha = Share{0.5}, .period = 10 * kSecond};
  s.smooth(100, c, 0, kNow);
  EXPECT_EQ(s.smooth(200, c, 0, kNow + 10 * kSecond), 150u);
  EXPECT_EQ(s.smooth(200, c, 0, kNow + 1000 * kSecond), 200u);  // it gets there
}

TEST(Transform, SmoothingThenMargin_D35) {
  TransformConfig c;
  c.safety_margin = Share{0.8};
  c.gas_smoothing = Smoothing{};
  Smoother s;
  transform({.gas = 100}, c, &s, 0, 1, kNow);
  const Transformed t = transform({.gas = 200}, c, &s, 0, 1, kNow + 5 * kSecond);
  EXPECT_EQ(t.raw, 200u);
  EXPECT_EQ(t.smoothed, 130u);
  EXPECT_EQ(t.with_margin, 104u);
  EXPECT_EQ(t.metrics.gas, 104u);
  EXPECT_EQ(transform({.gas = 200}, c, nullptr, 0, 1, kNow).metrics.gas, 160u);  // a row that is not smoothed
}

TEST(Consistency, GasNeedsAHealthySci_CSMA51_CSMA52_D3) {
  EXPECT_EQ(gas_of(100, {}, 1), 100u);
  EXPECT_EQ(gas_of(100, {}, 0), 0u);
  EXPECT_FALSE(transform({.gas = 100}, {}, nullptr, 0, 0, kNow).consistent);
  EXPECT_TRUE(transform({.gas = 0}, {}, nullptr, 0, 0, kNow).consistent);
  EXPECT_TRUE(transform({}, {}, nullptr, 0, 0, kNow).consistent);
}

}  // namespace
}  // namespace margay::c_sma
