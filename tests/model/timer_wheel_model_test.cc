// SPDX-License-Identifier: Apache-2.0

// The timer wheel against a std::multimap in time order: random deadlines up to 20 minutes, clock steps of a tick
// to hours, across the wrap of Tick; and the bound on lateness.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "dataplane/core/timer_wheel.h"
#include "tests/support/seed.h"
#include "tests/support/test_arena.h"

namespace margay::dp {
namespace {

using test::Random;
using test::seed_text;
using test::test_seed;

constexpr size_t kEntries = 3000;
constexpr uint32_t kDeadlineMax = 120'000;  // 20 minutes
constexpr uint32_t kHours = 3 * 360'000;

// Times in the model are 64 bits wide and do not wrap; the wheel sees their lower half.
class WheelSimulation {
 public:
  explicit WheelSimulation(uint64_t seed)
      : random_(seed),
        now_((uint64_t{1} << 32) - 1 - random_.below(200'000)),
        emptied_(now_),
        slot_of_(kEntries, 0),
        deadline_of_(kEntries, 0),
        entries_(kEntries),
        arena_(1 << 16),
        wheel_(arena_, entries_, static_cast<Tick>(now_)) {
    for (EntryIndex e = 0; e < kEntries; ++e) idle_.push_back(e);
  }

  void step() {
    const uint32_t kind = random_.below(100);
    if (kind < 45) {
      insert_new();
    } else if (kind < 60) {
      erase_any();
    } else if (kind < 99) {
      now_ += random_.one_in(8) ? random_.below(10'000) : random_.below(4);
      pop_some(random_.below(64));
    } else {
      now_ += random_.below(kHours);
      pop_some(random_.below(2000));
    }
    check();
  }
  bool wrapped() const { return now_ >> 32 != 0; }
  size_t popped = 0, put_back = 0;

 private:
  // The slot's tick by the wheel's contract: a tick ahead at least, the farthest slot at most.
  void insert(EntryIndex e, uint64_t deadline) {
    deadline_of_[e] = deadline;
    slot_of_[e] = std::clamp(deadline, turning() + 1, turning() + TimerWheel::kSlots - 1);
    reference_.emplace(slot_of_[e], e);
    wheel_.insert(e, static_cast<Tick>(deadline));
  }
  void insert_new() {
    if (idle_.empty()) return;
    const EntryIndex e = idle_.back();
    idle_.pop_back();
    const uint32_t span = random_.one_in(2) ? 300 : kDeadlineMax;
    insert(e, now_ - 3 + random_.below(span));
  }
  void erase_any() {
    if (reference_.empty()) return;
    const EntryIndex e = std::next(reference_.begin(), random_.below(std::min<size_t>(reference_.size(), 50)))->second;
    forget(e);
    wheel_.erase(e);
    idle_.push_back(e);
  }
  void forget(EntryIndex e) {
    auto [at, end] = reference_.equal_range(slot_of_[e]);
    while (at != end && at->second != e) ++at;
    ASSERT_NE(at, end);
    reference_.erase(at);
  }
  void pop_some(uint32_t limit) {
    for (uint32_t i = 0; i < limit; ++i) {
      const EntryIndex e = wheel_.pop_due(static_cast<Tick>(now_));
      const bool due = !reference_.empty() && reference_.begin()->first <= now_;
      ASSERT_EQ(e != kNoIndex, due);
      emptied_ = due ? reference_.begin()->first : std::max(emptied_, now_);
      if (!due) return;
      ++popped;
      ASSERT_EQ(slot_of_[e], reference_.begin()->first);
      forget(e);
      if (deadline_of_[e] <= now_ || random_.one_in(20)) {
        idle_.push_back(e);
      } else {
        ++put_back;
        insert(e, deadline_of_[e]);
      }
    }
  }
  // The tick whose slot is being emptied.
  uint64_t turning() const { return emptied_; }
  void check() {
    ASSERT_EQ(wheel_.size(), reference_.size());
    const EntryIndex first = wheel_.first();
    ASSERT_EQ(first == kNoIndex, reference_.empty());
    if (first == kNoIndex) return;
    ASSERT_EQ(slot_of_[first], reference_.begin()->first);
    const bool begun = reference_.begin()->first == emptied_;
    ASSERT_EQ(wheel_.current(), static_cast<Tick>(begun ? emptied_ - 1 : emptied_));
  }

  Random random_;
  uint64_t now_;
  uint64_t emptied_;
  std::vector<uint64_t> slot_of_, deadline_of_;
  std::vector<FlowEntry> entries_;
  TestArena arena_;
  TimerWheel wheel_;
  std::vector<EntryIndex> idle_;
  std::multimap<uint64_t, EntryIndex> reference_;
};

TEST(TimerWheelModel, BehavesAsASortedListUnderRandomOperations) {
  const uint64_t seed = test_seed();
  SCOPED_TRACE(seed_text(seed));
  size_t popped = 0, put_back = 0;
  for (uint64_t round = 0; round < 20; ++round) {
    WheelSimulation simulation(seed + round);
    for (int i = 0; i < 20'000; ++i) {
      simulation.step();
      if (testing::Test::HasFatalFailure()) return;
    }
    EXPECT_TRUE(simulation.wrapped());
    popped += simulation.popped;
    put_back += simulation.put_back;
  }
  EXPECT_GT(popped, 10'000u);
  EXPECT_GT(put_back, 1000u);
}

// At most R deadlines a tick, a bound of B >= R looks a call, a call each tick at least: an entry is looked at in
// the first call after its slot's tick. Then calls stay away for a while: with B > R the wheel catches up.
TEST(TimerWheelModel, LatenessIsBoundedWhileTheBoundPerCallCovers) {
  const uint64_t seed = test_seed();
  SCOPED_TRACE(seed_text(seed));
  Random random(seed);
  constexpr uint32_t kPerTick = 8;
  std::vector<FlowEntry> entries(kEntries);
  TestArena arena(1 << 16);
  Tick now = 0xffff'ff00;
  TimerWheel wheel(arena, entries, now);
  std::vector<EntryIndex> idle;
  for (EntryIndex e = 0; e < kEntries; ++e) idle.push_back(e);
  std::vector<Tick> deadline(kEntries);
  std::vector<uint32_t> in_slot(300);  // deadlines of a tick, modulo 300
  int catching_up = 0;
  size_t late = 0;
  for (int i = 0; i < 50'000; ++i) {
    const bool pause = random.one_in(2000);
    const Tick step = pause ? 1 + random.below(100) : random.below(2);
    catching_up = pause ? 400 : catching_up - 1;
    for (Tick t = 0; t < step; ++t) in_slot[(now + 1 + t) % 300] = 0;
    now += step;
    for (uint32_t looks = 0; looks < 2 * kPerTick; ++looks) {
      const EntryIndex e = wheel.pop_due(now);
      if (e == kNoIndex) break;
      ASSERT_FALSE(tick_after(deadline[e], now));
      if (catching_up <= 0) late += now != deadline[e];
      idle.push_back(e);
    }
    if (catching_up <= 0) late += wheel.current() != now;
    for (int k = 0; k < 4 && !idle.empty(); ++k) {
      const Tick at = now + 1 + random.below(298);
      if (in_slot[at % 300] == kPerTick) continue;
      ++in_slot[at % 300];
      deadline[idle.back()] = at;
      wheel.insert(idle.back(), at);
      idle.pop_back();
    }
  }
  EXPECT_EQ(late, 0u);
}

}  // namespace
}  // namespace margay::dp
