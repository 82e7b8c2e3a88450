// SPDX-License-Identifier: Apache-2.0

// The slot ledger under real threads, for the sanitizers and for real memory ordering: workers admit and end
// sessions while control moves limits, closes instances and opens their index again (SCI-33, SCI-90, SCI-92).
// Each worker counts its sessions itself; the sum may never pass the highest limit there was, and at a limit that
// has been in force since before an attempt began, not that limit.

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <thread>
#include <vector>

#include "dataplane/core/slot_ledger.h"
#include "tests/support/seed.h"
#include "tests/support/test_arena.h"

namespace margay::dp {
namespace {

constexpr size_t kWorkers = 4;
constexpr InstanceIndex kInstances = 2;
constexpr uint32_t kLimitMax = 6;
constexpr uint32_t kChanges = 1'000;

// Sessions of one instance over all workers. The high half counts how often control has changed the limit: odd
// while it does, so that a worker knows whether one limit was in force throughout its attempt.
struct alignas(kCacheLine) Shared {
  std::atomic<int> sessions{0};
  std::atomic<uint64_t> changes{0};
  std::atomic<uint32_t> limit{0};
  std::atomic<uint16_t> generation{0};
};

class Torture {
 public:
  explicit Torture(uint64_t seed) : seed_(seed) {
    for (InstanceIndex i = 0; i < kInstances; ++i) open(i, kLimitMax);
  }

  void work(WorkerIndex w) {
    test::Random random(seed_ + w + 1);
    std::array<uint32_t, kInstances> held{};
    while (!stop_.load()) {
      const InstanceIndex i = random.below(kInstances);
      if (held[i] > 0 && random.one_in(2)) {
        put(i, w);
        --held[i];
      } else if (held[i] < kLimitMax && take(i, w)) {
        ++held[i];
      }
      if (random.one_in(64)) std::this_thread::yield();
    }
    for (InstanceIndex i = 0; i < kInstances; ++i) {
      for (; held[i] > 0; --held[i]) put(i, w);
    }
  }

  // Changes limits, then tells the workers to stop.
  void control() {
    test::Random random(seed_);
    for (uint32_t change = 0; change < kChanges; ++change) {
      const InstanceIndex i = random.below(kInstances);
      set_limit(i, random.one_in(3) ? 0 : random.below(kLimitMax + 1));
      bool reclaimed = false;
      for (uint32_t k = random.below(50); k > 0 && !reclaimed; --k) {
        std::this_thread::yield();
        reclaimed = ledger.reclaim(i);
      }
      if (reclaimed) {
        ++reused;
        open(i, random.below(kLimitMax + 1));
      }
    }
    stop_.store(true);
  }

  TestArena arena{4096};
  SlotLedger ledger{arena, kWorkers, kInstances};
  std::array<Shared, kInstances> shared;
  std::atomic<uint64_t> admitted{0}, beyond{0};
  uint64_t reused = 0;

 private:
  bool take(InstanceIndex i, WorkerIndex w) {
    Shared& s = shared[i];
    const uint64_t changes = s.changes.load();
    const uint32_t limit = s.limit.load();
    if (!ledger.take(i, s.generation.load(), w)) return false;
    const int sessions = s.sessions.fetch_add(1) + 1;
    const bool one_limit = changes % 2 == 0 && s.changes.load() == changes;
    if (sessions > static_cast<int>(one_limit ? limit : kLimitMax)) beyond.fetch_add(1);
    admitted.fetch_add(1);
    return true;
  }

  void put(InstanceIndex i, WorkerIndex w) {
    shared[i].sessions.fetch_sub(1);
    ledger.put(i, w);
  }

  void set_limit(InstanceIndex i, uint32_t limit) {
    shared[i].changes.fetch_add(1);
    ledger.set_limit(i, limit);
    shared[i].limit.store(limit);
    shared[i].changes.fetch_add(1);
  }

  void open(InstanceIndex i, uint32_t limit) {
    const auto generation = static_cast<uint16_t>(shared[i].generation.load() + 1);
    shared[i].changes.fetch_add(1);
    ledger.open(i, generation, limit);
    shared[i].limit.store(limit);
    shared[i].generation.store(generation);
    shared[i].changes.fetch_add(1);
  }

  uint64_t seed_;
  std::atomic<bool> stop_{false};
};

TEST(SlotLedgerTorture, NeverBeyondTheLimitAndNothingLost) {
  const uint64_t seed = test::test_seed();
  SCOPED_TRACE(test::seed_text(seed));
  Torture torture(seed);
  std::vector<std::thread> threads;
  for (WorkerIndex w = 0; w < kWorkers; ++w) threads.emplace_back([&torture, w] { torture.work(w); });
  torture.control();
  for (std::thread& t : threads) t.join();

  std::printf("admitted %llu, index reused %llu times\n", static_cast<unsigned long long>(torture.admitted.load()),
              static_cast<unsigned long long>(torture.reused));
  EXPECT_EQ(torture.beyond.load(), 0u);
  EXPECT_GT(torture.admitted.load(), 0u);
  EXPECT_GT(torture.reused, 10u);
  for (InstanceIndex i = 0; i < kInstances; ++i) {
    EXPECT_EQ(torture.shared[i].sessions.load(), 0);
    EXPECT_EQ(torture.ledger.view(i).active, 0u);
    torture.ledger.set_limit(i, 0);
    EXPECT_TRUE(torture.ledger.reclaim(i));
  }
}

}  // namespace
}  // namespace margay::dp
