// SPDX-License-Identifier: Apache-2.0
// Figure 2, D-24 and D-54, transition by transition. fall 3, rise 2 unless a test says otherwise.
#include "control/sci/health.h"

#include <gtest/gtest.h>

#include "tests/unit/control/health_rig.h"

namespace margay::control {
namespace {

using namespace test;
using Rig = HealthRig;

TEST(HealthMonitor, BeginsUnknownAndTwoPassesOfEveryProbeMakeItHealthy_D24_SCI60) {
  Rig r(all_checks());
  EXPECT_EQ(r.state(), kUnknown);
  EXPECT_FALSE(r.pass(kLiveness));
  EXPECT_FALSE(r.pass(kLiveness));
  EXPECT_FALSE(r.pass(kReadiness));
  EXPECT_FALSE(r.pass(kPerformance));  // is not waited for
  EXPECT_TRUE(r.pass(kReadiness));
  EXPECT_EQ(r.state(), kHealthy);
  EXPECT_TRUE(r.last->recovery);  // the episode held UNKNOWN
  EXPECT_EQ(r.last->from, kUnknown);
  EXPECT_EQ(r.last->lasted, 5 * kSecond);
}

TEST(HealthMonitor, OutOfUnknownThreeFailuresOfOneProbeMakeItUnhealthy_D24) {
  Rig r(all_checks());
  r.repeat(2, kLiveness, Outcome::kPass);
  EXPECT_FALSE(r.fail(kReadiness));
  EXPECT_FALSE(r.fail(kReadiness));
  EXPECT_TRUE(r.fail(kReadiness));
  EXPECT_EQ(r.state(), kUnhealthy);
}

TEST(HealthMonitor, OutOfUnknownAFailureBeginsThePassesAnew_D24) {
  Rig r(liveness_only());
  r.pass(kLiveness);
  r.fail(kLiveness);
  EXPECT_FALSE(r.pass(kLiveness));
  EXPECT_TRUE(r.pass(kLiveness));
  EXPECT_EQ(r.state(), kHealthy);
}

TEST(HealthMonitor, SlownessLeavesUnknownAlone_D24) {
  Rig r(all_checks());
  r.repeat(5, kPerformance, Outcome::kFail);
  EXPECT_EQ(r.state(), kUnknown);
}

TEST(HealthMonitor, ThreeFailuresOfPerformanceDegradeHealthy_SCI61) {
  Rig r(all_checks(), kHealthy);
  EXPECT_FALSE(r.fail(kPerformance));
  EXPECT_FALSE(r.fail(kPerformance));
  EXPECT_TRUE(r.fail(kPerformance));
  EXPECT_EQ(r.state(), kDegraded);
  EXPECT_EQ(r.last->cause.kind, kPerformance);
  EXPECT_EQ(r.last->cause.outcome, Outcome::kFail);
  EXPECT_EQ(r.last->cause.count, 3u);
  EXPECT_EQ(r.last->cause.detail, "detail");
}

TEST(HealthMonitor, SlownessGoesNoDeeperThanDegraded_D24) {
  Rig r(all_checks(), kHealthy);
  r.repeat(20, kPerformance, Outcome::kFail);
  EXPECT_EQ(r.state(), kDegraded);
}

TEST(HealthMonitor, ThreeFailuresOfAProbeMakeDegradedUnhealthy_SCI62) {
  for (const CheckKind kind : {kLiveness, kReadiness}) {
    Rig r(all_checks(), kHealthy);
    r.repeat(3, kPerformance, Outcome::kFail);
    EXPECT_FALSE(r.fail(kind));
    EXPECT_FALSE(r.fail(kind));
    EXPECT_TRUE(r.fail(kind));
    EXPECT_EQ(r.last->from, kDegraded);
    EXPECT_EQ(r.state(), kUnhealthy);
  }
}

TEST(HealthMonitor, ThreeFailuresOfAProbeMakeHealthyUnhealthyInOneStep_D24_SCI65) {
  for (const CheckKind kind : {kLiveness, kReadiness}) {
    Rig r(all_checks(), kHealthy);
    r.repeat(2, kind, Outcome::kFail);
    EXPECT_EQ(r.state(), kHealthy);
    EXPECT_TRUE(r.fail(kind));
    EXPECT_EQ(r.last->from, kHealthy);
    EXPECT_EQ(r.state(), kUnhealthy);
  }
}

TEST(HealthMonitor, FailuresCountOnlyInARow_SCI65) {
  Rig r(all_checks(), kHealthy);
  for (int i = 0; i < 5; ++i) {
    r.repeat(2, kLiveness, Outcome::kFail);
    r.pass(kLiveness);
  }
  EXPECT_EQ(r.state(), kHealthy);
}

TEST(HealthMonitor, FailuresCountPerKind_D24) {
  Rig r(all_checks(), kHealthy);
  r.repeat(2, kLiveness, Outcome::kFail);
  r.repeat(2, kReadiness, Outcome::kFail);
  r.repeat(2, kPerformance, Outcome::kFail);
  EXPECT_EQ(r.state(), kHealthy);
  r.pass(kLiveness);  // ends its own run alone
  EXPECT_TRUE(r.fail(kReadiness));
}

TEST(HealthMonitor, ComesUpStepwiseTwoPassesAStep_SCI64_SCI63) {
  Rig r(all_checks(), kHealthy);
  r.repeat(3, kLiveness, Outcome::kFail);
  ASSERT_EQ(r.state(), kUnhealthy);
  EXPECT_FALSE(r.pass(kLiveness));
  EXPECT_TRUE(r.pass(kLiveness));
  EXPECT_EQ(r.state(), kDegraded);
  EXPECT_FALSE(r.last->recovery);  // the step between is a HEALTH trigger
  EXPECT_FALSE(r.pass(kLiveness));
  EXPECT_TRUE(r.pass(kLiveness));
  EXPECT_EQ(r.state(), kHealthy);
  EXPECT_TRUE(r.last->recovery);
}

TEST(HealthMonitor, ComesUpAtOnceWithDirectRecovery_D24_SCI64) {
  Rig r(all_checks(Recovery::kDirect), kHealthy);
  r.repeat(3, kLiveness, Outcome::kFail);
  EXPECT_FALSE(r.pass(kLiveness));
  EXPECT_TRUE(r.pass(kLiveness));
  EXPECT_EQ(r.last->from, kUnhealthy);
  EXPECT_EQ(r.state(), kHealthy);
  EXPECT_TRUE(r.last->recovery);
}

TEST(HealthMonitor, DegradedComesBackAfterTwoPassesOfPerformanceWithoutRecoveryTrigger_SCI64) {
  Rig r(all_checks(), kHealthy);
  r.repeat(3, kPerformance, Outcome::kFail);
  r.repeat(9, kLiveness, Outcome::kPass);  // of a kind that had not failed
  EXPECT_EQ(r.state(), kDegraded);
  EXPECT_FALSE(r.pass(kPerformance));
  EXPECT_TRUE(r.pass(kPerformance));
  EXPECT_EQ(r.state(), kHealthy);
  EXPECT_FALSE(r.last->recovery);
}

TEST(HealthMonitor, EveryKindThatHadFailedHasToRise_D24) {
  Rig r(all_checks(), kHealthy);
  r.repeat(3, kLiveness, Outcome::kFail);
  r.repeat(3, kReadiness, Outcome::kFail);
  r.repeat(9, kLiveness, Outcome::kPass);
  EXPECT_EQ(r.state(), kUnhealthy);
  r.pass(kReadiness);
  EXPECT_TRUE(r.pass(kReadiness));
  EXPECT_EQ(r.state(), kDegraded);
  r.repeat(2, kLiveness, Outcome::kPass);
  EXPECT_EQ(r.state(), kDegraded);
  r.pass(kReadiness);
  EXPECT_TRUE(r.pass(kReadiness));
  EXPECT_EQ(r.state(), kHealthy);
}

// An instance without requests cannot show that it is fast: performance must not hold it in UNHEALTHY.
TEST(HealthMonitor, PerformanceHoldsInDegradedAndNotInUnhealthy_D24) {
  for (const Recovery recovery : {Recovery::kStepwise, Recovery::kDirect}) {
    Rig r(all_checks(recovery), kHealthy);
    r.repeat(3, kPerformance, Outcome::kFail);
    r.repeat(3, kLiveness, Outcome::kFail);
    r.repeat(2, kLiveness, Outcome::kPass);
    EXPECT_EQ(r.state(), kDegraded);
    r.repeat(9, kLiveness, Outcome::kPass);
    EXPECT_EQ(r.state(), kDegraded);
    r.repeat(2, kPerformance, Outcome::kPass);
    EXPECT_EQ(r.state(), kHealthy);
    EXPECT_TRUE(r.last->recovery);
  }
}

TEST(HealthMonitor, ARelapseOnTheWayUpGoesBackToUnhealthy_D24) {
  Rig r(liveness_only(), kHealthy);
  r.repeat(3, kLiveness, Outcome::kFail);
  r.repeat(2, kLiveness, Outcome::kPass);
  ASSERT_EQ(r.state(), kDegraded);
  r.repeat(2, kLiveness, Outcome::kFail);
  EXPECT_EQ(r.state(), kDegraded);
  r.fail(kLiveness);
  EXPECT_EQ(r.state(), kUnhealthy);
}

TEST(HealthMonitor, ThreeErrorsOfTheProberMakeAnyStateUnknown_D54) {
  for (const HealthState from : {kHealthy, kDegraded, kUnhealthy}) {
    Rig r(all_checks(), from);
    EXPECT_FALSE(r.error(kLiveness));
    EXPECT_FALSE(r.error(kLiveness));
    EXPECT_TRUE(r.error(kLiveness));
    EXPECT_EQ(r.state(), kUnknown);
    EXPECT_EQ(r.last->from, from);
    EXPECT_EQ(r.last->cause.outcome, Outcome::kError);
    EXPECT_EQ(r.last->cause.count, 3u);
  }
}

TEST(HealthMonitor, ErrorsAreNoFailuresAndAVerdictEndsTheirRun_D54) {
  Rig r(liveness_only(), kHealthy);
  for (int i = 0; i < 5; ++i) {
    r.repeat(2, kLiveness, Outcome::kError);
    r.pass(kLiveness);
  }
  EXPECT_EQ(r.state(), kHealthy);
  // Nor do they end a run of failures.
  r.repeat(2, kLiveness, Outcome::kFail);
  r.error(kLiveness);
  EXPECT_TRUE(r.fail(kLiveness));
  EXPECT_EQ(r.state(), kUnhealthy);
}

TEST(HealthMonitor, UnknownForgetsTheRunsBeforeIt_D54) {
  Rig r(liveness_only(), kHealthy);
  r.repeat(2, kLiveness, Outcome::kFail);
  r.repeat(3, kLiveness, Outcome::kError);
  ASSERT_EQ(r.state(), kUnknown);
  r.repeat(2, kLiveness, Outcome::kFail);
  EXPECT_EQ(r.state(), kUnknown);
  r.fail(kLiveness);
  EXPECT_EQ(r.state(), kUnhealthy);
}

TEST(HealthMonitor, RecoveryIsOfTheEpisodeNotOfTheLastStep_D24) {
  Rig r(all_checks(), kHealthy);
  r.repeat(3, kPerformance, Outcome::kFail);
  r.repeat(3, kLiveness, Outcome::kError);
  r.repeat(2, kLiveness, Outcome::kPass);
  r.repeat(2, kReadiness, Outcome::kPass);
  ASSERT_EQ(r.state(), kHealthy);
  EXPECT_TRUE(r.last->recovery);
  // The next episode is a new one.
  r.repeat(3, kPerformance, Outcome::kFail);
  r.repeat(2, kPerformance, Outcome::kPass);
  ASSERT_EQ(r.state(), kHealthy);
  EXPECT_FALSE(r.last->recovery);
}

TEST(HealthMonitor, AnInstanceSlowAllAlongIsDegradedByItsNextLookAfterUnknown_D24) {
  Rig r(all_checks());
  r.repeat(3, kPerformance, Outcome::kFail);
  r.repeat(2, kLiveness, Outcome::kPass);
  r.repeat(2, kReadiness, Outcome::kPass);
  ASSERT_EQ(r.state(), kHealthy);
  EXPECT_TRUE(r.fail(kPerformance));
  EXPECT_EQ(r.state(), kDegraded);
}

TEST(HealthMonitor, TakesOverALastKnownStateWithItsAge) {
  const HealthMonitor m(all_checks(), 100 * kSecond, {kDegraded, 40 * kSecond, 70 * kSecond});
  EXPECT_EQ(m.state(), kDegraded);
  EXPECT_EQ(m.since(), 60 * kSecond);
  EXPECT_EQ(m.serves_since(), 30 * kSecond);
  // Out of UNHEALTHY each kind has to rise, for nobody knows which had failed.
  Rig r(all_checks(), kUnhealthy);
  r.repeat(2, kLiveness, Outcome::kPass);
  EXPECT_EQ(r.state(), kUnhealthy);
  r.repeat(2, kReadiness, Outcome::kPass);
  EXPECT_EQ(r.state(), kDegraded);
  r.repeat(2, kLiveness, Outcome::kPass);
  r.repeat(2, kReadiness, Outcome::kPass);
  r.repeat(2, kPerformance, Outcome::kPass);
  EXPECT_EQ(r.state(), kHealthy);
  EXPECT_TRUE(r.last->recovery);
}

TEST(HealthMonitor, FallAndRiseAreOfTheKind_SCI52_SCI65) {
  HealthConfig config = all_checks();
  config.liveness->fall = 1;
  config.readiness->fall = 5;
  config.readiness->rise = 4;
  config.performance->fall = 2;
  Rig r(config, kHealthy);
  r.repeat(2, kPerformance, Outcome::kFail);
  EXPECT_EQ(r.state(), kDegraded);
  r.repeat(4, kReadiness, Outcome::kFail);
  EXPECT_EQ(r.state(), kDegraded);
  r.fail(kReadiness);
  EXPECT_EQ(r.state(), kUnhealthy);
  r.repeat(3, kReadiness, Outcome::kPass);
  EXPECT_EQ(r.state(), kUnhealthy);
  r.pass(kReadiness);
  EXPECT_EQ(r.state(), kDegraded);
  r.fail(kLiveness);
  EXPECT_EQ(r.state(), kUnhealthy);
}

TEST(HealthMonitor, WithoutAnyProbeItIsHealthy) {
  HealthConfig config;
  config.liveness.reset();
  EXPECT_EQ(HealthMonitor(config, 0).state(), kHealthy);
}

TEST(HealthMonitor, ChecksAtTheConfirmIntervalUntilTheFirstVerdictAndFromAFailureToItsEnd_D24) {
  Rig r(all_checks());
  EXPECT_TRUE(r.monitor.confirming(kLiveness));
  EXPECT_TRUE(r.monitor.confirming(kReadiness));
  EXPECT_FALSE(r.monitor.confirming(kPerformance));
  r.repeat(2, kLiveness, Outcome::kPass);
  r.repeat(2, kReadiness, Outcome::kPass);
  EXPECT_FALSE(r.monitor.confirming(kLiveness));
  r.fail(kLiveness);
  EXPECT_TRUE(r.monitor.confirming(kLiveness));
  EXPECT_FALSE(r.monitor.confirming(kReadiness));
  r.pass(kLiveness);
  EXPECT_FALSE(r.monitor.confirming(kLiveness));
  r.repeat(3, kLiveness, Outcome::kFail);
  r.repeat(3, kLiveness, Outcome::kPass);  // DEGRADED, one more to go
  EXPECT_TRUE(r.monitor.confirming(kLiveness));
  r.pass(kLiveness);
  EXPECT_FALSE(r.monitor.confirming(kLiveness));
  r.error(kReadiness);
  EXPECT_TRUE(r.monitor.confirming(kReadiness));
}

TEST(HealthMonitor, NamesAreTheDocuments_SCI53) {
  EXPECT_EQ(name_of(kHealthy), "HEALTHY");
  EXPECT_EQ(name_of(kDegraded), "DEGRADED");
  EXPECT_EQ(name_of(kUnhealthy), "UNHEALTHY");
  EXPECT_EQ(name_of(kUnknown), "UNKNOWN");
}

}  // namespace
}  // namespace margay::control
