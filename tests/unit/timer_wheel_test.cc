// SPDX-License-Identifier: Apache-2.0

#include "dataplane/core/timer_wheel.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/support/test_arena.h"

namespace margay::dp {
namespace {

class TimerWheelTest : public testing::Test {
 protected:
  static constexpr Tick kStart = 0xffff'fff0;  // the clock wraps soon

  TestArena arena_{1 << 16};
  std::vector<FlowEntry> entries_ = std::vector<FlowEntry>(16);
  TimerWheel wheel_{arena_, entries_, kStart};
};

TEST_F(TimerWheelTest, EntryComesUpAtItsTickAndNotBefore) {
  for (const Tick ahead : {1u, 2u, 63u, 64u, 100u, 5000u, TimerWheel::kSlots - 1}) {
    const Tick start = wheel_.current();
    wheel_.insert(3, start + ahead);
    EXPECT_EQ(wheel_.size(), 1u);
    EXPECT_EQ(wheel_.pop_due(start + ahead - 1), kNoIndex) << ahead;
    EXPECT_EQ(wheel_.current(), start + ahead - 1);
    EXPECT_EQ(wheel_.pop_due(start + ahead), 3u) << ahead;
    EXPECT_EQ(wheel_.size(), 0u);
    EXPECT_EQ(wheel_.pop_due(start + ahead), kNoIndex);
    EXPECT_EQ(wheel_.current(), start + ahead);
  }
}

TEST_F(TimerWheelTest, DeadlineBeyondATurnIsLookedAtOnceATurn) {
  const Tick deadline = kStart + 120'000;  // 20 minutes
  wheel_.insert(0, deadline);
  int looks = 0;
  Tick now = kStart;
  for (; !tick_after(now, deadline); ++now) {
    if (wheel_.pop_due(now) == kNoIndex) continue;
    ++looks;
    if (now == deadline) break;
    wheel_.insert(0, deadline);
  }
  EXPECT_EQ(now, deadline);
  EXPECT_EQ(looks, 15);  // 120000 / 8191, rounded up
}

TEST_F(TimerWheelTest, PastDeadlineComesUpAtTheNextTick) {
  wheel_.insert(0, kStart - 5);
  wheel_.insert(1, kStart);
  EXPECT_EQ(wheel_.pop_due(kStart), kNoIndex);
  EXPECT_NE(wheel_.pop_due(kStart + 1), kNoIndex);
  EXPECT_NE(wheel_.pop_due(kStart + 1), kNoIndex);
  EXPECT_EQ(wheel_.size(), 0u);
}

// What a call takes out and puts back is not met again before the next tick, whatever deadline it has.
TEST_F(TimerWheelTest, ReinsertedEntryIsNotMetTwiceInOneTick) {
  wheel_.insert(0, kStart + 1);
  EXPECT_EQ(wheel_.pop_due(kStart + 1), 0u);
  wheel_.insert(0, kStart + 1);
  EXPECT_EQ(wheel_.pop_due(kStart + 1), kNoIndex);
  EXPECT_EQ(wheel_.pop_due(kStart + 2), 0u);
}

TEST_F(TimerWheelTest, CurrentStaysBehindASlotThatIsNotEmpty) {
  wheel_.insert(0, kStart + 20);
  wheel_.insert(1, kStart + 20);
  EXPECT_NE(wheel_.pop_due(kStart + 30), kNoIndex);
  EXPECT_EQ(wheel_.current(), kStart + 19);
  EXPECT_NE(wheel_.pop_due(kStart + 30), kNoIndex);
  EXPECT_EQ(wheel_.current(), kStart + 20);
  EXPECT_EQ(wheel_.pop_due(kStart + 30), kNoIndex);
  EXPECT_EQ(wheel_.current(), kStart + 30);
}

TEST_F(TimerWheelTest, EraseTakesFirstMiddleAndLastOfASlot) {
  for (const EntryIndex gone : {0u, 1u, 2u}) {
    const Tick due = wheel_.current() + 10;
    for (EntryIndex e = 0; e < 3; ++e) wheel_.insert(e, due);
    wheel_.erase(gone);
    std::vector<bool> came(3);
    for (EntryIndex e = wheel_.pop_due(due); e != kNoIndex; e = wheel_.pop_due(due)) came[e] = true;
    for (EntryIndex e = 0; e < 3; ++e) EXPECT_EQ(came[e], e != gone) << gone;
    EXPECT_EQ(wheel_.size(), 0u);
  }
}

TEST_F(TimerWheelTest, FirstIsWhatComesUpFirst) {
  EXPECT_EQ(wheel_.first(), kNoIndex);
  wheel_.insert(0, kStart + 8000);
  EXPECT_EQ(wheel_.first(), 0u);
  wheel_.insert(1, kStart + 130);
  EXPECT_EQ(wheel_.first(), 1u);
  wheel_.insert(2, kStart + 5);
  EXPECT_EQ(wheel_.first(), 2u);
  wheel_.erase(2);
  EXPECT_EQ(wheel_.first(), 1u);
  EXPECT_EQ(wheel_.size(), 2u);
}

TEST_F(TimerWheelTest, ClockThatGoesBackIsIgnored) {
  EXPECT_EQ(wheel_.pop_due(kStart + 50), kNoIndex);
  wheel_.insert(0, kStart + 60);
  EXPECT_EQ(wheel_.pop_due(kStart + 10), kNoIndex);
  EXPECT_EQ(wheel_.current(), kStart + 50);
  EXPECT_EQ(wheel_.pop_due(kStart + 60), 0u);
}

}  // namespace
}  // namespace margay::dp
