// SPDX-License-Identifier: Apache-2.0
#include "control/sci/check_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "tests/support/seed.h"

namespace margay::control {
namespace {

constexpr WorkPlan kEvery5s{.interval = 5 * kSecond, .confirm = kSecond, .timeout = kSecond};
constexpr CheckPlan::Key kKey{7, Work::kLiveness};
constexpr Nanoseconds kStart = 1000 * kSecond;

// Takes the next piece of work when it is due. REQUIRES: there is some
CheckPlan::Due take_next(CheckPlan& plan, Nanoseconds& now) {
  now = std::max(now, plan.next_due());
  const auto due = plan.take(now, 1);
  EXPECT_EQ(due.size(), 1u);
  return due.at(0);
}

TEST(CheckPlan, ComesOncePerInterval_SCI51) {
  CheckPlan plan(1);
  plan.set(kKey, kEvery5s, false, kStart);
  Nanoseconds now = kStart, first = 0;
  for (int i = 0; i <= 100; ++i) {
    take_next(plan, now);
    if (i == 0) first = now;
    plan.finish(kKey, false, now);
  }
  // 100 intervals, and as much jitter at both ends as a tenth of one: no drift
  EXPECT_NEAR(static_cast<double>(now - first) / kSecond, 500, 0.5);
}

TEST(CheckPlan, ComesFirstWithinOneConfirmInterval_D24) {
  for (uint32_t i = 0; i < 200; ++i) {
    CheckPlan plan(1);
    plan.set({i, Work::kLiveness}, kEvery5s, true, kStart);
    EXPECT_GE(plan.next_due(), kStart);
    EXPECT_LE(plan.next_due(), kStart + kSecond + kSecond / 10);
  }
}

TEST(CheckPlan, ConfirmsAtTheConfirmIntervalAfterAFailure_D24) {
  CheckPlan plan(1);
  plan.set(kKey, kEvery5s, false, kStart);
  Nanoseconds now = kStart;
  take_next(plan, now);
  plan.finish(kKey, true, now + 300 * kMillisecond);
  EXPECT_EQ(plan.next_due(), now + kSecond);
  take_next(plan, now);
  plan.finish(kKey, true, now + 3 * kSecond);  // took longer than the interval: at once
  EXPECT_EQ(plan.next_due(), now + 3 * kSecond);
}

TEST(CheckPlan, HastensWhatWaitsForLong_D24) {
  CheckPlan plan(1);
  plan.set(kKey, {.interval = 3600 * kSecond, .confirm = kSecond, .timeout = kSecond}, false, kStart);
  plan.hasten(kKey, kStart);
  EXPECT_LE(plan.next_due(), kStart + kSecond + kSecond / 10);
}

TEST(CheckPlan, HasteBringsNothingForwardThatComesWithinTheConfirmInterval_D24) {
  for (uint32_t i = 0; i < 50; ++i) {
    const CheckPlan::Key key{i, Work::kPerformance};
    CheckPlan plan(1);
    plan.set(key, kEvery5s, false, kStart);
    Nanoseconds now = kStart;
    take_next(plan, now);
    plan.finish(key, true, now);
    plan.hasten(key, now);
    EXPECT_EQ(plan.next_due(), now + kSecond) << i;
  }
}

TEST(CheckPlan, NeverTwoOfOneKindInFlightForOneInstance) {
  CheckPlan plan(1);
  plan.set(kKey, kEvery5s, true, kStart);
  plan.set({7, Work::kReadiness}, kEvery5s, true, kStart);
  EXPECT_EQ(plan.take(kStart + 100 * kSecond, 100).size(), 2u);
  EXPECT_TRUE(plan.take(kStart + 200 * kSecond, 100).empty());
  plan.set(kKey, {.interval = kSecond, .confirm = kSecond, .timeout = kSecond}, true, kStart + 200 * kSecond);
  EXPECT_TRUE(plan.take(kStart + 300 * kSecond, 100).empty());
}

TEST(CheckPlan, ALateAnswerIsNoAnswer) {
  CheckPlan plan(1);
  plan.set(kKey, kEvery5s, true, kStart);
  Nanoseconds now = kStart;
  const auto first = take_next(plan, now);
  EXPECT_TRUE(plan.in_flight(kKey, first.serial));
  plan.finish(kKey, true, now);
  EXPECT_FALSE(plan.in_flight(kKey, first.serial));
  const auto second = take_next(plan, now);
  EXPECT_FALSE(plan.in_flight(kKey, first.serial));
  EXPECT_TRUE(plan.in_flight(kKey, second.serial));
  plan.remove(kKey);
  EXPECT_FALSE(plan.in_flight(kKey, second.serial));
}

TEST(CheckPlan, TheDeadlineIsTheTimeoutAndTheProberHasAGraceBeyond_D54) {
  CheckPlan plan(1);
  plan.set(kKey, kEvery5s, true, kStart);
  Nanoseconds now = kStart;
  const auto due = take_next(plan, now);
  EXPECT_EQ(due.deadline, now + kSecond);
  EXPECT_TRUE(plan.overdue(due.deadline + CheckPlan::kGrace - 1).empty());
  const auto late = plan.overdue(due.deadline + CheckPlan::kGrace);
  ASSERT_EQ(late.size(), 1u);
  EXPECT_EQ(late[0].serial, due.serial);
  EXPECT_EQ(plan.next_due(), due.deadline + CheckPlan::kGrace);
}

TEST(CheckPlan, WorkOfOneCallIsBounded) {
  CheckPlan plan(1);
  for (uint32_t i = 0; i < 100; ++i) plan.set({i, Work::kLiveness}, kEvery5s, true, kStart);
  const Nanoseconds now = kStart + 10 * kSecond;
  EXPECT_EQ(plan.take(now, 64).size(), 64u);
  EXPECT_LE(plan.next_due(), now);
  EXPECT_EQ(plan.take(now, 64).size(), 36u);
  EXPECT_GT(plan.next_due(), now);
}

TEST(CheckPlan, NothingPlannedIsNeverDue) { EXPECT_EQ(CheckPlan(1).next_due(), kNever); }

TEST(CheckPlan, AHundredReloadsChangeNothing_SCI52) {
  CheckPlan reloaded(1), untouched(1);
  for (CheckPlan* plan : {&reloaded, &untouched}) plan->set(kKey, kEvery5s, false, kStart);
  for (Nanoseconds i = 0; i < 100; ++i) reloaded.set(kKey, kEvery5s, true, kStart + i * 40 * kMillisecond);
  EXPECT_EQ(reloaded.next_due(), untouched.next_due());
  EXPECT_EQ(reloaded.size(), 1u);
}

TEST(CheckPlan, AChangedIntervalIsTaken_SCI52) {
  CheckPlan plan(1);
  plan.set(kKey, {.interval = 3600 * kSecond, .confirm = kSecond, .timeout = kSecond}, false, kStart);
  plan.set(kKey, kEvery5s, false, kStart);
  EXPECT_LE(plan.next_due(), kStart + 6 * kSecond);
}

// 1,000 instances, each probed once a second; phases by hash. In a tenth of the interval 100 are expected (standard
// deviation 9.5 for independent phases), so 200 is a bound that chance does not reach.
TEST(CheckPlan, SpreadsAThousandInstancesOverTheInterval) {
  const uint64_t seed = test::test_seed();
  SCOPED_TRACE(test::seed_text(seed));
  CheckPlan plan(seed);
  for (uint32_t i = 0; i < 1000; ++i) {
    plan.set({i, Work::kLiveness}, {.interval = kSecond, .confirm = kSecond, .timeout = kSecond}, true, kStart);
  }
  std::vector<size_t> tenths;
  for (Nanoseconds t = kStart; t < kStart + 5 * kSecond; t += kSecond / 10) {
    size_t begun = 0;
    for (const auto& due : plan.take(t, 2000)) {
      plan.finish(due.key, false, t);
      ++begun;
    }
    tenths.push_back(begun);
  }
  EXPECT_LT(*std::max_element(tenths.begin(), tenths.end()), 200u);
}

TEST(CheckPlan, CommonEventsDoNotSynchroniseForLong) {
  const uint64_t seed = test::test_seed();
  SCOPED_TRACE(test::seed_text(seed));
  CheckPlan plan(seed);
  std::map<Nanoseconds, size_t> begun;
  for (uint32_t i = 0; i < 1000; ++i) plan.set({i, Work::kLiveness}, kEvery5s, true, kStart);
  // All confirmed in one instant, back to the long interval.
  const Nanoseconds now = kStart + 2 * kSecond;
  for (const auto& due : plan.take(now, 1000)) plan.finish(due.key, false, now);
  for (Nanoseconds t = now; t < now + 6 * kSecond; t += kSecond / 2) begun[t] = plan.take(t, 1000).size();
  for (const auto& [t, n] : begun) EXPECT_LT(n, 200u) << t;  // 100 expected
}

// 1,000 instances at 1 s with 1 % of them hanging until their deadline and confirmed at once after: no check of the
// others slips by more than one interval.
TEST(CheckPlan, OnePercentThatHangsDelaysNobodyElse) {
  const uint64_t seed = test::test_seed();
  SCOPED_TRACE(test::seed_text(seed));
  test::Random random(seed);
  CheckPlan plan(seed);
  const WorkPlan every_second{.interval = kSecond, .confirm = kSecond, .timeout = kSecond};
  std::map<uint32_t, Nanoseconds> last;
  for (uint32_t i = 0; i < 1000; ++i) {
    plan.set({i, Work::kLiveness}, every_second, true, kStart);
    last[i] = kStart;
  }
  std::multimap<Nanoseconds, std::pair<CheckPlan::Key, bool>> answers;
  Nanoseconds slip_max = 0;
  size_t turns = 0;
  for (Nanoseconds now = kStart; now < kStart + 60 * kSecond; ++turns) {
    for (auto it = answers.begin(); it != answers.end() && it->first <= now; it = answers.erase(it)) {
      plan.finish(it->second.first, it->second.second, now);
    }
    for (const auto& due : plan.take(now, 64)) {
      const uint32_t i = due.key.instance;
      const bool hangs = i % 100 == 0;
      if (!hangs) slip_max = std::max(slip_max, now - std::min(now, last[i] + kSecond));
      last[i] = now;
      answers.emplace(hangs ? due.deadline : now + random.below(50 * kMillisecond), std::pair(due.key, hangs));
    }
    const Nanoseconds answer = answers.empty() ? kNever : answers.begin()->first;
    now = std::max(now, std::min(plan.next_due(), answer));
  }
  EXPECT_LE(slip_max, kSecond / 5);  // two jitters
  EXPECT_LT(turns, 500'000u);
}

}  // namespace
}  // namespace margay::control
