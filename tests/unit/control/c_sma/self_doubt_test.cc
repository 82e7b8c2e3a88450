// SPDX-License-Identifier: Apache-2.0
#include "control/c_sma/self_doubt.h"

#include <gtest/gtest.h>

#include "tests/unit/control/c_sma/c_sma_rig.h"

namespace margay::c_sma {
namespace {

using test::config_of;
using test::CSmaRig;
using test::sci;

constexpr Nanoseconds kTtl = 120 * kSecond;
constexpr Nanoseconds kDoubted = 5000 * kSecond;

TEST(SelfDoubt, BeginsWithHalfOfAllAndAtLeastThree_D51) {
  SelfDoubt few({});
  EXPECT_FALSE(few.went_silent(kDoubted, kTtl, 1));
  EXPECT_FALSE(few.went_silent(kDoubted, kTtl, 0));  // two of two
  EXPECT_TRUE(few.went_silent(kDoubted, kTtl, 0));
  SelfDoubt many({});
  for (size_t i = 1; i < 50; ++i) EXPECT_FALSE(many.went_silent(kDoubted, kTtl, 100 - i)) << i;
  EXPECT_TRUE(many.went_silent(kDoubted, kTtl, 50));  // 50 of 100
}

TEST(SelfDoubt, CountsWithinOneTtlAndOnlyThoseSilentStill_D51) {
  SelfDoubt d({});
  d.went_silent(kDoubted, kTtl, 3);
  d.went_silent(kDoubted + 1, kTtl, 2);
  EXPECT_FALSE(d.went_silent(kDoubted + kTtl + 1, kTtl, 1));  // the first is too long ago
  d.heard(kDoubted + 1);
  EXPECT_FALSE(d.went_silent(kDoubted + kTtl + 2, kTtl, 1));
  EXPECT_TRUE(d.went_silent(kDoubted + kTtl + 2, kTtl, 0));
}

TEST(SelfDoubt, ShareAndHoldAreConfigurable_D51) {
  SelfDoubt d({.share = Share{0.9}, .hold = 5 * kSecond});
  for (size_t i = 1; i < 9; ++i) EXPECT_FALSE(d.went_silent(kDoubted, kTtl, 10 - i));
  EXPECT_TRUE(d.went_silent(kDoubted, kTtl, 1));
  EXPECT_FALSE(d.may_fail(10, kDoubted + 5 * kSecond - 1));
  EXPECT_TRUE(d.may_fail(10, kDoubted + 5 * kSecond));
}

TEST(SelfDoubt, BeginsWhenOurLoopIsLateByMoreThanHalfATtl_D51) {
  SelfDoubt d({});
  EXPECT_FALSE(d.loop_late(60 * kSecond, kTtl, kDoubted));
  EXPECT_TRUE(d.loop_late(60 * kSecond + 1, kTtl, kDoubted));
  EXPECT_FALSE(d.loop_late(600 * kSecond, kTtl, kDoubted + 1));  // it is on already
}

TEST(SelfDoubt, HoldsThirtySecondsThenLetsATenthFailASecond_D51) {
  SelfDoubt d({});
  EXPECT_TRUE(d.may_fail(100, kDoubted));
  d.loop_late(kTtl, kTtl, kDoubted);
  EXPECT_TRUE(d.holds(kDoubted + 30 * kSecond - 1));
  EXPECT_FALSE(d.may_fail(100, kDoubted + 30 * kSecond - 1));
  EXPECT_EQ(d.retry_at(kDoubted), kDoubted + 30 * kSecond);
  for (Nanoseconds second = 30; second < 33; ++second) {
    const Nanoseconds at = kDoubted + second * kSecond;
    for (int i = 0; i < 10; ++i) EXPECT_TRUE(d.may_fail(100, at + static_cast<Nanoseconds>(i)));
    EXPECT_FALSE(d.may_fail(100, at + kSecond - 1));
    EXPECT_EQ(d.retry_at(at), at + kSecond);
  }
  EXPECT_TRUE(d.may_fail(5, kDoubted + 40 * kSecond));  // at least one
  EXPECT_FALSE(d.may_fail(5, kDoubted + 40 * kSecond));
}

TEST(SelfDoubt, EndsWhenNobodyWaitsAfterTheHold_D51) {
  SelfDoubt d({});
  d.loop_late(kTtl, kTtl, kDoubted);
  EXPECT_FALSE(d.settle(kDoubted + 30 * kSecond - 1));
  EXPECT_TRUE(d.settle(kDoubted + 30 * kSecond));
  EXPECT_TRUE(d.may_fail(100, kDoubted + 30 * kSecond));
}

// ---- in the whole core

TEST(SelfDoubt, AWholeSiteThatFallsSilentIsHeldAndReleasedInSteps_D29) {
  CSmaRig r(config_of(20));
  for (uint32_t i = 0; i < 20; ++i) r.report(sci(i));
  r.forget();
  r.run_for(120 * kSecond);
  EXPECT_EQ(r.audited(AuditKind::kSelfDoubt), 1u);
  EXPECT_EQ(r.pulls.size(), 20u);  // probed
  r.run_for(10 * kSecond);
  EXPECT_EQ(r.pulls.size(), 40u);  // and when their grace is over
  r.run_for(20 * kSecond - 1);
  EXPECT_EQ(r.pulls.size(), 40u);
  EXPECT_EQ(r.core.metric_cache().count(SourceState::kStale), 20u);
  EXPECT_EQ(r.gas("ARS"), 2000u);
  r.report(sci(3));
  r.run_for(1);
  EXPECT_EQ(r.core.metric_cache().count(SourceState::kFailed), 2u);  // a tenth of 20
  EXPECT_EQ(r.gas("ARS"), 1800u);
  r.run_for(kSecond);
  EXPECT_EQ(r.core.metric_cache().count(SourceState::kFailed), 3u);  // a tenth of 18
  r.run_for(18 * kSecond);
  EXPECT_EQ(r.core.metric_cache().count(SourceState::kFailed), 19u);
  EXPECT_EQ(r.gas("ARS"), 100u);
  EXPECT_EQ(r.audited(AuditKind::kSelfDoubt), 2u);  // and over
}

TEST(SelfDoubt, ASingleDeathTakesTtlAndGraceAllTheSame_D29) {
  CSmaRig r(config_of(5));
  for (uint32_t i = 0; i < 5; ++i) r.report(sci(i));
  r.run_for(60 * kSecond);
  for (uint32_t i = 1; i < 5; ++i) r.report(sci(i));
  r.run_for(70 * kSecond - 1);
  EXPECT_EQ(r.state_of(sci(0)), SourceState::kStale);
  r.run_for(1);
  EXPECT_EQ(r.state_of(sci(0)), SourceState::kFailed);
}

TEST(SelfDoubt, ALoopThatStoodStillFailsNobody_D29) {
  CSmaRig r(config_of(4));
  for (uint32_t i = 0; i < 4; ++i) r.report(sci(i));
  r.pass(300 * kSecond);
  r.handle(LoopLate{.by = 180 * kSecond});
  EXPECT_EQ(r.audited(AuditKind::kSelfDoubt), 1u);
  r.run_for(20 * kSecond);
  for (uint32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(r.state_of(sci(i)), SourceState::kStale);
    r.report(sci(i));
  }
  r.run_for(60 * kSecond);
  for (uint32_t i = 0; i < 4; ++i) EXPECT_EQ(r.state_of(sci(i)), SourceState::kHealthy);
  EXPECT_EQ(r.gas("ARS"), 400u);
}

TEST(SelfDoubt, DecayWaitsTheDoubtOut_D27_D29) {
  CSmaConfig c = config_of(4);
  c.cache.stale = Stale::kDecay;
  CSmaRig r(c);
  for (uint32_t i = 0; i < 4; ++i) r.report(sci(i));
  r.run_for(145 * kSecond);
  EXPECT_EQ(r.gas("ARS"), 400u);
}

}  // namespace
}  // namespace margay::c_sma
