// SPDX-License-Identifier: Apache-2.0

// The slot ledger in one thread: each row is a history and what it must lead to, counted by hand (SCI-33, SCI-90,
// SCI-92). Interleavings stand in tests/model/slot_ledger_model_test.cc.

#include "dataplane/core/slot_ledger.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "tests/support/test_arena.h"

namespace margay::dp {
namespace {

constexpr uint16_t kGeneration = 7;

class SlotLedgerTest : public testing::Test {
 protected:
  static constexpr size_t kWorkers = 3, kInstances = 10;

  TestArena arena_{4096};
  SlotLedger ledger_{arena_, kWorkers, kInstances};
};

enum class Do { kTake, kRefused, kPut, kLimit };
struct Step {
  Do what;
  uint32_t who_or_limit;  // a worker, or the limit
};
struct Row {
  const char* name;
  uint32_t limit;
  std::vector<Step> steps;
  uint32_t end_limit, pool, idle, active, over, free;
};

const Row kRows[] = {
    {"opened", 5, {}, 5, 5, 0, 0, 0, 5},
    {"taken from the pool", 5, {{Do::kTake, 0}, {Do::kTake, 1}}, 5, 3, 0, 2, 0, 3},
    {"put into the own lease", 5, {{Do::kTake, 0}, {Do::kPut, 0}}, 5, 4, 1, 0, 0, 5},
    {"own lease before pool", 5, {{Do::kTake, 0}, {Do::kPut, 0}, {Do::kTake, 0}}, 5, 4, 0, 1, 0, 4},
    {"pool before another's lease", 2, {{Do::kTake, 0}, {Do::kPut, 0}, {Do::kTake, 1}}, 2, 0, 1, 1, 0, 1},
    {"another's lease when the pool is empty", 1, {{Do::kTake, 0}, {Do::kPut, 0}, {Do::kTake, 2}}, 1, 0, 0, 1, 0, 0},
    {"full", 2, {{Do::kTake, 0}, {Do::kTake, 1}, {Do::kRefused, 0}, {Do::kRefused, 2}}, 2, 0, 0, 2, 0, 0},
    {"limit 0 admits nothing", 0, {{Do::kRefused, 0}}, 0, 0, 0, 0, 0, 0},
    {"raised", 1, {{Do::kTake, 0}, {Do::kRefused, 0}, {Do::kLimit, 3}, {Do::kTake, 0}}, 3, 1, 0, 2, 0, 1},
    {"lowered within the pool", 5, {{Do::kTake, 0}, {Do::kLimit, 2}}, 2, 1, 0, 1, 0, 1},
    {"lowered through two leases",
     3,
     {{Do::kTake, 0}, {Do::kTake, 1}, {Do::kTake, 2}, {Do::kPut, 0}, {Do::kPut, 1}, {Do::kLimit, 1}},
     1,
     0,
     0,
     1,
     0,
     0},
    {"lowered by one of two leases",
     3,
     {{Do::kTake, 0}, {Do::kTake, 1}, {Do::kTake, 2}, {Do::kPut, 0}, {Do::kPut, 1}, {Do::kLimit, 2}},
     2,
     0,
     1,
     1,
     0,
     1},
    {"a put pays what is owed", 2, {{Do::kTake, 0}, {Do::kTake, 0}, {Do::kLimit, 1}, {Do::kPut, 0}}, 1, 0, 0, 1, 0, 0},
    {"a raise pays what is owed before it fills the pool",
     4,
     {{Do::kTake, 0}, {Do::kTake, 0}, {Do::kTake, 0}, {Do::kTake, 0}, {Do::kLimit, 1}, {Do::kLimit, 3}},
     3,
     0,
     0,
     4,
     1,
     0},
    {"lowered below active: over, never negative",
     4,
     {{Do::kTake, 0}, {Do::kTake, 0}, {Do::kTake, 1}, {Do::kLimit, 1}, {Do::kRefused, 0}},
     1,
     0,
     0,
     3,
     2,
     0},
    {"what is over is paid by the next to go",
     3,
     {{Do::kTake, 0}, {Do::kTake, 0}, {Do::kTake, 1}, {Do::kLimit, 1}, {Do::kPut, 0}, {Do::kPut, 1}, {Do::kRefused, 1}},
     1,
     0,
     0,
     1,
     0,
     0},
    {"then slots are free again",
     2,
     {{Do::kTake, 0}, {Do::kTake, 1}, {Do::kLimit, 1}, {Do::kPut, 0}, {Do::kPut, 1}, {Do::kTake, 2}},
     1,
     0,
     0,
     1,
     0,
     0},
    {"a raise pays what is over first",
     4,
     {{Do::kTake, 0},
      {Do::kTake, 0},
      {Do::kTake, 0},
      {Do::kTake, 0},
      {Do::kLimit, 1},
      {Do::kLimit, 3},
      {Do::kRefused, 0}},
     3,
     0,
     0,
     4,
     1,
     0},
    {"a raise beyond what is over fills the pool",
     2,
     {{Do::kTake, 0}, {Do::kTake, 1}, {Do::kLimit, 0}, {Do::kLimit, 5}, {Do::kTake, 1}},
     5,
     2,
     0,
     3,
     0,
     2},
    {"the largest limit", SlotLedger::kLimitMax, {{Do::kTake, 0}}, 16777215, 16777214, 0, 1, 0, 16777214},
    {"from the largest limit to none", SlotLedger::kLimitMax, {{Do::kTake, 0}, {Do::kLimit, 0}}, 0, 0, 0, 1, 1, 0},
};

TEST_F(SlotLedgerTest, Histories) {
  uint16_t generation = 0;
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.name);
    const InstanceIndex i = 9;
    ledger_.open(i, ++generation, row.limit);
    std::array<uint32_t, kWorkers> held{};
    for (const Step& step : row.steps) {
      const auto w = static_cast<WorkerIndex>(step.who_or_limit);
      switch (step.what) {
        case Do::kTake:
          EXPECT_TRUE(ledger_.take(i, generation, w));
          ++held[w];
          break;
        case Do::kRefused:
          EXPECT_FALSE(ledger_.take(i, generation, w));
          break;
        case Do::kPut:
          ledger_.put(i, w);
          --held[w];
          break;
        case Do::kLimit:
          ledger_.set_limit(i, step.who_or_limit);
          break;
      }
    }
    const SlotView v = ledger_.view(i);
    EXPECT_EQ(v.generation, generation);
    EXPECT_EQ(v.limit, row.end_limit);
    EXPECT_EQ(ledger_.limit(i), row.end_limit);
    EXPECT_EQ(v.pool, row.pool);
    EXPECT_EQ(v.idle, row.idle);
    EXPECT_EQ(v.active, row.active);
    EXPECT_EQ(v.over, row.over);
    EXPECT_EQ(v.free(), row.free);

    const bool empty = held == std::array<uint32_t, kWorkers>{};
    ledger_.set_limit(i, 0);
    EXPECT_EQ(ledger_.reclaim(i), empty);
    for (WorkerIndex w = 0; w < kWorkers; ++w) {
      for (; held[w] > 0; --held[w]) ledger_.put(i, w);
    }
    EXPECT_TRUE(ledger_.reclaim(i));
  }
}

// Sessions that came over from another process hold `taken` slots from the start. Each that ends pays what is over
// first; what a worker admits then, and whether the index may be used again at the end, is counted by hand.
TEST_F(SlotLedgerTest, OpenedWithSessions) {
  struct Inherited {
    uint32_t limit, taken;        // at the start
    uint32_t pool, over, free;    // then
    uint32_t ended, admitted;     // so many sessions end, so many more are admitted until it is full
    uint32_t active, over_after;  // then
  };
  const Inherited rows[] = {
      {5, 0, 5, 0, 5, 0, 5, 5, 0},
      {5, 3, 2, 0, 2, 0, 2, 5, 0},
      {5, 5, 0, 0, 0, 1, 1, 5, 0},
      {5, 8, 0, 3, 0, 0, 0, 8, 3},
      {5, 8, 0, 3, 0, 2, 0, 6, 1},
      {5, 8, 0, 3, 0, 5, 2, 5, 0},
      {0, 2, 0, 2, 0, 1, 0, 1, 1},
      {0, SlotLedger::kLimitMax, 0, SlotLedger::kLimitMax, 0, 1, 0, 16777214, 16777214},
      {SlotLedger::kLimitMax, SlotLedger::kLimitMax, 0, 0, 0, 1, 1, SlotLedger::kLimitMax, 0},
  };
  uint16_t generation = 0;
  for (const Inherited& row : rows) {
    SCOPED_TRACE(testing::Message() << row.taken << " of " << row.limit << ", " << row.ended << " end");
    ledger_.open(0, ++generation, row.limit, row.taken);
    SlotView v = ledger_.view(0);
    EXPECT_EQ(v.pool, row.pool);
    EXPECT_EQ(v.active, row.taken);
    EXPECT_EQ(v.over, row.over);
    EXPECT_EQ(v.free(), row.free);
    for (uint32_t n = 0; n < row.ended; ++n) ledger_.put(0, static_cast<WorkerIndex>(n % kWorkers));
    uint32_t admitted = 0;
    while (admitted <= row.admitted && ledger_.take(0, generation, 0)) ++admitted;
    EXPECT_EQ(admitted, row.admitted);
    v = ledger_.view(0);
    EXPECT_EQ(v.active, row.active);
    EXPECT_EQ(v.over, row.over_after);
    ledger_.set_limit(0, 0);
    if (v.active > 100) continue;
    for (uint32_t n = 0; n < v.active; ++n) {
      EXPECT_FALSE(ledger_.reclaim(0));
      ledger_.put(0, 0);
    }
    EXPECT_TRUE(ledger_.reclaim(0));
  }
}

TEST_F(SlotLedgerTest, ReclaimNeedsLimitZero) {
  ledger_.open(0, kGeneration, 1);
  EXPECT_FALSE(ledger_.reclaim(0));
  ledger_.set_limit(0, 0);
  EXPECT_TRUE(ledger_.reclaim(0));
  const SlotView v = ledger_.view(0);
  EXPECT_EQ(v.pool + v.idle + v.active + v.over, 0u);
}

TEST_F(SlotLedgerTest, AnotherGenerationIsAnotherInstance) {
  ledger_.open(0, kGeneration, 1);
  EXPECT_FALSE(ledger_.take(0, kGeneration - 1, 0));
  EXPECT_FALSE(ledger_.take(0, kGeneration + 1, 0));
  ASSERT_TRUE(ledger_.take(0, kGeneration, 0));
  ledger_.put(0, 0);                                  // now the slot lies in worker 0's lease
  EXPECT_FALSE(ledger_.take(0, kGeneration + 1, 0));  // own lease
  EXPECT_FALSE(ledger_.take(0, kGeneration + 1, 1));  // another's
  ledger_.set_limit(0, 0);
  ASSERT_TRUE(ledger_.reclaim(0));
  ledger_.open(0, kGeneration + 1, 1);
  EXPECT_FALSE(ledger_.take(0, kGeneration, 0));
  EXPECT_TRUE(ledger_.take(0, kGeneration + 1, 0));
}

TEST_F(SlotLedgerTest, IndexThatWasNeverOpenedAdmitsNothing) { EXPECT_FALSE(ledger_.take(3, kGeneration, 0)); }

TEST_F(SlotLedgerTest, InstancesDoNotTouchEachOther) {
  for (InstanceIndex i = 0; i < kInstances; ++i) ledger_.open(i, kGeneration, i + 1);
  for (WorkerIndex w = 0; w < kWorkers; ++w) ASSERT_TRUE(ledger_.take(4, kGeneration, w));
  for (WorkerIndex w = 0; w < kWorkers; ++w) ledger_.put(4, w);
  for (InstanceIndex i = 0; i < kInstances; ++i) {
    const SlotView v = ledger_.view(i);
    EXPECT_EQ(v.pool, i == 4 ? 2 : i + 1) << i;  // 5 - 3 taken
    EXPECT_EQ(v.idle, i == 4 ? 3 : 0) << i;
    EXPECT_EQ(v.active, 0u) << i;
  }
}

// Idle words of different workers never share a cache line: 10 instances take 2 lines a worker.
TEST_F(SlotLedgerTest, MemoryIsAsManyLinesAsItSays) {
  Arena counting;
  SlotLedger(counting, kWorkers, kInstances);
  EXPECT_EQ(counting.used(), 64u * (10 + 1 + 3 * 2));  // pools, limits, leases
}

}  // namespace
}  // namespace margay::dp
