// SPDX-License-Identifier: Apache-2.0
#include "control/c_sma/site_aggregate.h"

#include <gtest/gtest.h>

#include "tests/support/seed.h"
#include "tests/unit/control/c_sma/c_sma_rig.h"

namespace margay::c_sma {
namespace {

using northbound::Metrics;
using test::kDeadOne;
using test::kDegradedOne;
using test::kHealthyOne;

Contribution of(std::optional<uint32_t> gas, std::optional<uint32_t> time, HealthSummary health = kHealthyOne) {
  return {.metrics = {.gas = gas, .computing_time_ms = time}, .health = health};
}
SiteAggregate site(std::initializer_list<Contribution> list) {
  SiteAggregate a;
  for (const Contribution& c : list) a.add(c);
  return a;
}
std::optional<uint32_t> time_of(const SiteAggregate& a, Aggregate method = Aggregate::kGasWeightedMean) {
  return a.metrics(method).computing_time_ms;
}
Metrics metrics_of(const SiteAggregate& a) { return a.metrics(Aggregate::kGasWeightedMean); }

TEST(SiteAggregate, TheExampleSite_CSMA65_D17) {
  // ARS: 400 slots at 5 ms and 600 at 6 ms. (400 * 5 + 600 * 6) / 1000 = 5.6 ms
  const SiteAggregate ars = site({of(400, 5), of(600, 6)});
  EXPECT_EQ(metrics_of(ars).gas, 1000u);
  EXPECT_EQ(time_of(ars), 6u);
  EXPECT_EQ(metrics_of(ars).computing_time_minimum_ms, 5u);
  EXPECT_EQ(metrics_of(ars).computing_time_maximum_ms, 6u);
  EXPECT_EQ(ars.scis(), 2u);
  const SiteAggregate llms = site({of(300, 12, kDegradedOne)});
  EXPECT_EQ(metrics_of(llms).gas, 300u);
  EXPECT_EQ(time_of(llms), 12u);
  EXPECT_EQ(llms.healthy_scis(), 0u);
}

TEST(SiteAggregate, ComputingTimeByEachMethod_D17) {
  // 1 to 20 ms; the one at 1 ms has all the slots but 19.
  SiteAggregate a;
  for (uint32_t ms = 1; ms <= 20; ++ms) a.add(of(ms == 1 ? 981 : 1, ms));
  EXPECT_EQ(time_of(a, Aggregate::kGasWeightedMean), 2u);  // (981 + 2 + .. + 20) / 1000 = 1.19
  EXPECT_EQ(time_of(a, Aggregate::kMin), 1u);
  EXPECT_EQ(time_of(a, Aggregate::kMax), 20u);
  EXPECT_EQ(time_of(a, Aggregate::kMean), 11u);  // 10.5
  EXPECT_EQ(time_of(a, Aggregate::kP95), 19u);
}

TEST(SiteAggregate, APlainMeanWhereAllWeightsAreZero_D17) {
  EXPECT_EQ(time_of(site({of(0, 10), of(0, 20)})), 15u);
  EXPECT_EQ(time_of(site({of(0, 10), of(1, 20)})), 20u);
}

TEST(SiteAggregate, AbsentNotZeroWhereNothingServes_D17) {
  for (const SiteAggregate& a : {site({}), site({of(0, 10, kDeadOne)}), site({of(50, 10, kDeadOne)})}) {
    EXPECT_EQ(metrics_of(a), (Metrics{.gas = 0}));
  }
}

TEST(SiteAggregate, ADrainingSciAddsNothing_D33) {
  Contribution draining = of(50, 5);
  draining.admin = Admin::kDraining;
  draining.metrics.reputation = 1;
  const SiteAggregate a = site({draining, of(10, 20)});
  EXPECT_EQ(
      metrics_of(a),
      (Metrics{.gas = 10, .computing_time_ms = 20, .computing_time_minimum_ms = 20, .computing_time_maximum_ms = 20}));
  EXPECT_EQ(a.scis(), 2u);
}

TEST(SiteAggregate, WhoServesWithoutSayingItsGasMakesItUnknown_D42) {
  EXPECT_FALSE(metrics_of(site({of({}, 5)})).gas);
  EXPECT_EQ(metrics_of(site({of({}, 5), of(7, 5)})).gas, 7u);
}

TEST(SiteAggregate, SumsSaturate_D17) {
  const uint32_t max = 4294967295;
  const SiteAggregate a = site({of(max, 3600000), of(max, 3600000), of(1, 1)});
  EXPECT_EQ(metrics_of(a).gas, max);
  EXPECT_EQ(time_of(a), 3600000u);
  SiteAggregate counts;
  counts.add({.health = {max, 0, 0, 0}});
  counts.add({.health = {max, 0, 0, 0}});
  EXPECT_EQ(counts.health().healthy, max);
}

TEST(SiteAggregate, PriceIsAMeanReputationAndSecurityLevelTheLowest_D17) {
  Contribution a = of(100, 1), b = of(300, 1);
  a.metrics.price = 10;
  b.metrics.price = 20;
  a.metrics.reputation = 3;
  b.metrics.reputation = 7;
  a.metrics.security_level = 9;
  b.metrics.security_level = 4;
  const Metrics m = metrics_of(site({a, b}));
  EXPECT_EQ(m.price, 18u);  // (1000 + 6000) / 400 = 17.5
  EXPECT_EQ(m.reputation, 3u);
  EXPECT_EQ(m.security_level, 4u);
}

TEST(SiteAggregate, MinimumAndMaximumAreThoseOfTheInstances_D17) {
  Contribution a = of(1, 10);
  a.metrics.computing_time_minimum_ms = 4;
  a.metrics.computing_time_maximum_ms = 30;
  const Metrics m = metrics_of(site({a, of(1, 12)}));
  EXPECT_EQ(m.computing_time_minimum_ms, 4u);
  EXPECT_EQ(m.computing_time_maximum_ms, 30u);
}

TEST(SiteAggregate, HealthIsTheSumOfAllInstances_SCI118) {
  const SiteAggregate a = site({of(1, 1, {1, 2, 3, 1}), of(1, 1, {10, 20, 30, 5})});
  EXPECT_EQ(a.health(), (HealthSummary{11, 22, 33, 6}));
}

TEST(SiteAggregate, TheOldestMeasurementAndARestoredOneShow) {
  Contribution a = of(1, 1), b = of(1, 1);
  a.measured_at = 5;
  b.measured_at = 3;
  b.restored = true;
  SiteAggregate all = site({a, b});
  EXPECT_EQ(all.measured_at(), 3u);
  EXPECT_TRUE(all.restored());
  all.remove(b);
  EXPECT_EQ(all.measured_at(), 5u);
  EXPECT_FALSE(all.restored());
}

TEST(SiteAggregate, ComingAndGoingLeavesWhatSummingAnewGives) {
  const uint64_t seed = margay::test::test_seed();
  SCOPED_TRACE(margay::test::seed_text(seed));
  margay::test::Random random(seed);
  std::vector<Contribution> here;
  SiteAggregate kept;
  const auto maybe = [&](uint32_t n) { return random.one_in(4) ? std::nullopt : std::optional(random.below(n)); };
  for (int step = 0; step < 5000; ++step) {
    if (!here.empty() && random.one_in(2)) {
      const size_t which = random.below(here.size());
      kept.remove(here[which]);
      here.erase(here.begin() + static_cast<std::ptrdiff_t>(which));
    } else {
      Contribution c = of(maybe(1000), maybe(100), {random.below(3), random.below(2), random.below(2), 0});
      c.metrics.price = maybe(50);
      c.metrics.reputation = maybe(11);
      c.measured_at = random.below(100);
      here.push_back(c);
      kept.add(c);
    }
    SiteAggregate anew;
    for (const Contribution& c : here) anew.add(c);
    for (const Aggregate method : {Aggregate::kGasWeightedMean, Aggregate::kMean, Aggregate::kP95}) {
      ASSERT_EQ(kept.metrics(method), anew.metrics(method)) << step;
    }
    ASSERT_EQ(kept.health(), anew.health());
    ASSERT_EQ(kept.healthy_scis(), anew.healthy_scis());
    if (here.empty()) continue;
    ASSERT_EQ(kept.measured_at(), anew.measured_at());
  }
}

}  // namespace
}  // namespace margay::c_sma
