// SPDX-License-Identifier: Apache-2.0
// What a changed configuration makes of an instance's health, and that nothing stays down which nobody checks.
#include <gtest/gtest.h>

#include "tests/unit/control/health_rig.h"

namespace margay::control {
namespace {

using namespace test;
using Rig = HealthRig;

TEST(HealthMonitor, AReloadKeepsStateAndRuns) {
  Rig r(all_checks(), kHealthy);
  r.repeat(2, kLiveness, Outcome::kFail);
  EXPECT_FALSE(r.monitor.configure(all_checks(), r.now).has_value());
  EXPECT_TRUE(r.fail(kLiveness));
  EXPECT_EQ(r.state(), kUnhealthy);
}

TEST(HealthMonitor, AReloadWithoutTheCheckThatFailedAsksTheOthers) {
  Rig r(all_checks(), kHealthy);
  r.repeat(3, kReadiness, Outcome::kFail);
  EXPECT_FALSE(r.monitor.configure(liveness_only(), r.now).has_value());
  r.pass(kLiveness);
  EXPECT_EQ(r.state(), kUnhealthy);
  r.pass(kLiveness);
  EXPECT_EQ(r.state(), kDegraded);
}

TEST(HealthMonitor, AReloadWithoutChecksMakesItHealthy) {
  HealthConfig none;
  none.liveness.reset();
  for (const HealthState from : {kUnhealthy, kDegraded, kUnknown}) {
    Rig r(liveness_only(), from);
    const auto change = r.monitor.configure(none, r.now);
    ASSERT_TRUE(change.has_value()) << name_of(from);
    EXPECT_EQ(change->to, kHealthy);
    EXPECT_FALSE(change->cause.kind.has_value());
  }
}

TEST(HealthMonitor, WithoutAProbeNothingHoldsItDown_AfterATakeOverOrAReload) {
  HealthConfig none, performance_only;
  none.liveness.reset();
  performance_only.liveness.reset();
  performance_only.performance = PerformanceConfig{};
  for (const HealthState from : {kUnhealthy, kDegraded, kUnknown}) {
    EXPECT_EQ(Rig(none, from).state(), kHealthy) << name_of(from);
  }
  // An instance that gets no requests cannot rise by their speed.
  for (const HealthState from : {kUnhealthy, kUnknown}) {
    EXPECT_EQ(Rig(performance_only, from).state(), kHealthy) << name_of(from);
    Rig r(liveness_only(), from);
    EXPECT_TRUE(r.monitor.configure(performance_only, r.now).has_value()) << name_of(from);
    EXPECT_EQ(r.state(), kHealthy);
  }
  EXPECT_EQ(Rig(performance_only, kDegraded).state(), kDegraded);
}

TEST(HealthMonitor, AReloadWithoutTheProbeThatFailedAsksTheOtherProbeEvenWherePerformanceIsMarked) {
  Rig r(all_checks(), kHealthy);
  r.repeat(3, kPerformance, Outcome::kFail);
  r.repeat(3, kReadiness, Outcome::kFail);
  HealthConfig without = all_checks();
  without.readiness.reset();
  EXPECT_FALSE(r.monitor.configure(without, r.now).has_value());
  r.pass(kLiveness);
  EXPECT_EQ(r.state(), kUnhealthy);  // one pass is not two (SCI-65)
  r.pass(kLiveness);
  EXPECT_EQ(r.state(), kDegraded);
}

}  // namespace
}  // namespace margay::control
