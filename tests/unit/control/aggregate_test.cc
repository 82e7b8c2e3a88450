// SPDX-License-Identifier: Apache-2.0
#include "control/sci/aggregate.h"

#include <gtest/gtest.h>

#include <vector>

namespace margay::control {
namespace {

constexpr Share kHalf{0.5};
constexpr Share kWhole{1};

InstanceInput instance(HealthState health, uint32_t max, uint32_t active) {
  return {.health = health, .max_sessions = max, .active = active};
}
uint32_t gas(const std::vector<InstanceInput>& list, Share factor = kHalf, Share margin = kWhole) {
  return aggregate_gas(list, factor, margin).value;
}

TEST(Gas, IsTheSumOfFreeCapacityOverHealthyInstances_SCI32_SCI34) {
  // (200 - 30) + (100 - 100) + (50 - 0)
  EXPECT_EQ(gas({instance(HealthState::kHealthy, 200, 30), instance(HealthState::kHealthy, 100, 100),
                 instance(HealthState::kHealthy, 50, 0)}),
            220u);
  EXPECT_EQ(gas({}), 0u);
}

TEST(Gas, UnhealthyAndUnknownContributeNothing_SCI35_SCI60_SCI68) {
  EXPECT_EQ(gas({instance(HealthState::kUnhealthy, 200, 0), instance(HealthState::kUnknown, 200, 0)}), 0u);
}

TEST(Gas, DegradedCapacityIsCutByHalf_SCI67_D7) {
  EXPECT_EQ(gas({instance(HealthState::kDegraded, 200, 30)}), 70u);           // 100 - 30
  EXPECT_EQ(gas({instance(HealthState::kDegraded, 201, 30)}), 70u);           // floor(100.5) - 30
  EXPECT_EQ(gas({instance(HealthState::kDegraded, 200, 150)}), 0u);           // never negative
  EXPECT_EQ(gas({instance(HealthState::kDegraded, 200, 30)}, Share{0}), 0u);  // "or set it to 0"
  EXPECT_EQ(gas({instance(HealthState::kDegraded, 100, 0)}, Share{0.29}), 29u);
}

TEST(Gas, RestoredToHealthyItCountsByItsLoad_SCI69) {
  InstanceInput i = instance(HealthState::kUnhealthy, 200, 30);
  EXPECT_EQ(gas({i}), 0u);
  i.health = HealthState::kHealthy;
  EXPECT_EQ(gas({i}), 170u);
}

TEST(Gas, TheSafetyMarginMultipliesTheSum_SCI36) {
  const std::vector<InstanceInput> list = {instance(HealthState::kHealthy, 200, 51),
                                           instance(HealthState::kHealthy, 100, 0)};
  EXPECT_EQ(gas(list, kHalf, Share{0.8}), 199u);  // floor(0.8 * 249)
  EXPECT_EQ(gas(list), 249u);
}

TEST(Gas, DrainingAndDisabledContributeNothing_D33_D7) {
  for (const Admin admin : {Admin::kDraining, Admin::kDisabled}) {
    InstanceInput i = instance(HealthState::kHealthy, 200, 30);
    i.admin = admin;
    EXPECT_EQ(gas({i}), 0u);
    EXPECT_EQ(limit_of(i, kHalf), 0u);
  }
}

// The data plane gives it no new flow: its slots are nobody's to take.
TEST(Gas, AnInstanceOfWeight0ContributesNothing) {
  InstanceInput i = instance(HealthState::kHealthy, 200, 30);
  i.weight = 0;
  EXPECT_EQ(gas({i}), 0u);
  EXPECT_EQ(limit_of(i, kHalf), 0u);
}

TEST(Gas, ALoweredLimitCountsBelowWhatIsActive_D7) {
  InstanceInput i = instance(HealthState::kHealthy, 200, 30);
  i.operators_max = 20;
  const Gas g = aggregate_gas(std::vector{i}, kHalf, kWhole);
  EXPECT_EQ(g.value, 0u);
  EXPECT_EQ(g.over_limit, 10u);
  i.operators_max = 100;
  EXPECT_EQ(gas({i}), 70u);
  i.operators_max = 1000;  // his number stands over the site file's
  EXPECT_EQ(gas({i}), 970u);
}

TEST(Gas, ShowsItsBreakdown_D42_D45) {
  InstanceInput healthy = instance(HealthState::kHealthy, 200, 30);
  healthy.provisional = 5;  // of the 30: they count as active
  InstanceInput degraded = instance(HealthState::kDegraded, 200, 40);
  degraded.provisional = 7;
  InstanceInput over = instance(HealthState::kDegraded, 100, 60);
  InstanceInput down = instance(HealthState::kUnhealthy, 100, 60);
  down.provisional = 9;
  const Gas g = aggregate_gas(std::vector{healthy, degraded, over, down}, kHalf, Share{0.5});
  EXPECT_EQ(g.healthy_free, 170u);
  EXPECT_EQ(g.degraded_free, 60u);
  EXPECT_EQ(g.provisional, 12u);
  EXPECT_EQ(g.over_limit, 10u);
  EXPECT_EQ(g.value, 115u);
}

TEST(Gas, StaysAtTheGreatestValueOfTheField) {
  EXPECT_EQ(gas({instance(HealthState::kHealthy, 0xffffffff, 0), instance(HealthState::kHealthy, 0xffffffff, 0)}),
            0xffffffffu);
}

TEST(Limit, IsD7sProduct) {
  EXPECT_EQ(limit_of(instance(HealthState::kHealthy, 201, 150), kHalf), 201u);
  EXPECT_EQ(limit_of(instance(HealthState::kDegraded, 201, 150), kHalf), 100u);
  EXPECT_EQ(limit_of(instance(HealthState::kUnhealthy, 201, 0), kHalf), 0u);
  EXPECT_EQ(limit_of(instance(HealthState::kUnknown, 201, 0), kHalf), 0u);
}

HealthSummary summary(std::initializer_list<HealthState> states) {
  HealthSummary s;
  for (const HealthState state : states) s.count(state);
  return s;
}

TEST(HealthSummary, CountsUnknownAmongUnhealthyAndApart_SCI118_D6) {
  const HealthSummary s =
      summary({HealthState::kHealthy, HealthState::kHealthy, HealthState::kHealthy, HealthState::kDegraded,
               HealthState::kUnhealthy, HealthState::kUnhealthy, HealthState::kUnknown});
  EXPECT_EQ(s.healthy, 3u);
  EXPECT_EQ(s.degraded, 1u);
  EXPECT_EQ(s.unhealthy, 3u);
  EXPECT_EQ(s.unknown, 1u);
}

TEST(HealthSummary, GivesTheScisHealth_D4) {
  EXPECT_EQ(summary({HealthState::kUnhealthy, HealthState::kDegraded, HealthState::kHealthy}).sci_health(),
            HealthState::kHealthy);
  EXPECT_EQ(summary({HealthState::kUnhealthy, HealthState::kDegraded}).sci_health(), HealthState::kDegraded);
  EXPECT_EQ(summary({HealthState::kUnhealthy, HealthState::kUnknown}).sci_health(), HealthState::kUnhealthy);
  EXPECT_EQ(summary({}).sci_health(), HealthState::kUnhealthy);
}

}  // namespace
}  // namespace margay::control
