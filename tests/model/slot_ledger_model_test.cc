// SPDX-License-Identifier: Apache-2.0

// The slot ledger's own code, interleaved at every access of its shared words (SCI-33, SCI-90, SCI-92): workers
// take and put, some under a stale generation, some stalling in mid-operation for long; control raises and lowers
// limits, closes instances, reclaims them and opens their index again. tests/support/slot_spec.h says what must
// hold. Copies of the protocol with one fault each show that the spec notices.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <numeric>
#include <string>
#include <utility>

#include "tests/support/seed.h"
#include "tests/support/slot_spec.h"
#include "tests/support/test_arena.h"

namespace margay::test {
namespace {

using dp::InstanceIndex;
using dp::WorkerIndex;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(NDEBUG)
constexpr uint64_t kSteps = 4'000'000;
constexpr uint64_t kCountMin = 100;
#else
constexpr uint64_t kSteps = 100'000'000;
constexpr uint64_t kCountMin = 1'000;
#endif

// The ledger with words that the spec watches.
struct Ledger : dp::BasicSlotLedger<SpecWord> {
  Ledger(dp::Arena& arena, size_t workers, size_t instances) : BasicSlotLedger(arena, workers, instances) {
    for (InstanceIndex i = 0; i < instances; ++i) {
      label(pools_[i].word, i, 0);
      for (size_t w = 0; w < workers; ++w) label(idle(i, w), i, static_cast<uint32_t>(w + 1));
    }
  }

 private:
  static void label(SpecWord& word, InstanceIndex i, uint32_t place) {
    word.instance = i;
    word.place = place;
    SpecWord::spec->add_word(word);
  }
};

template <class L>
class Simulation {
 public:
  Simulation(uint64_t seed, uint64_t steps)
      : random_(seed),
        workers_(2 + random_.below(SlotSpec::kWorkersMax - 1)),
        instances_(1 + random_.below(SlotSpec::kInstancesMax)),
        limit_max_(1 + random_.below(2 * workers_)),
        pause_max_(50u << random_.below(5)),
        steps_(steps),
        interleaver_(random_.next(), {32u << random_.below(4), 8u << random_.below(6), 10'000}),
        spec_(interleaver_, random_, workers_) {
    SpecWord::spec = &spec_;
    ledger_ = std::make_unique<L>(arena_, workers_, instances_);
  }

  // Returns what went wrong first; empty: nothing.
  std::string run(SlotCounts& counts) {
    for (InstanceIndex i = 0; i < instances_; ++i) open(i, inherit(i));
    for (size_t w = 0; w < workers_; ++w) interleaver_.add([this, w] { work(static_cast<WorkerIndex>(w)); });
    interleaver_.add([this] { control(); });
    interleaver_.run();
    for (InstanceIndex i = 0; i < instances_; ++i) check_at_rest(i);
    add(counts, spec_.counts);
    counts.steps += interleaver_.steps();
    return spec_.violation;
  }

 private:
  static void add(SlotCounts& to, const SlotCounts& from) {
    to.admitted += from.admitted;
    to.refused += from.refused;
    to.stale_attempts += from.stale_attempts;
    to.lost_races += from.lost_races;
    to.steals += from.steals;
    to.limits_below_active += from.limits_below_active;
    to.index_reuses += from.index_reuses;
  }

  bool over() const { return interleaver_.steps() >= steps_ || !spec_.violation.empty(); }

  void work(WorkerIndex w) {
    std::array<uint16_t, SlotSpec::kInstancesMax> generations{}, held = inherited_[w];
    uint32_t held_in_all = std::accumulate(held.begin(), held.end(), 0u);
    while (!over() || held_in_all > 0) {
      const InstanceIndex i = random_.below(instances_);
      if (random_.one_in(4)) generations[i] = spec_.generation(i);
      if (held[i] > 0 && (over() || random_.one_in(2))) {
        put(i, w);
        --held[i], --held_in_all;
      } else if (!over() && held_in_all < 4 && take(i, generations[i], w)) {
        ++held[i], ++held_in_all;
      } else {
        interleaver_.step();
      }
    }
  }

  bool take(InstanceIndex i, uint16_t generation, WorkerIndex w) {
    spec_.take_begins(i, generation);
    const bool taken = ledger_->take(i, generation, w);
    spec_.take_ends(i, generation, taken);
    return taken;
  }

  void put(InstanceIndex i, WorkerIndex w) {
    spec_.put_begins(i);
    ledger_->put(i, w);
    spec_.put_ends();
  }

  void control() {
    while (!over()) {
      for (uint32_t pause = random_.below(pause_max_); pause > 0; --pause) interleaver_.step();
      const InstanceIndex i = random_.below(instances_);
      if (!spec_.is_open(i)) open(i, 0);
      set_limit(i, random_.one_in(4) ? 0 : random_.below(limit_max_ + 1));
      if (random_.one_in(2)) reclaim(i);
    }
  }

  // Sessions that each worker has from another process; how many in all.
  uint32_t inherit(InstanceIndex i) {
    uint32_t sessions = 0;
    for (size_t w = 0; w < workers_; ++w) sessions += inherited_[w][i] = static_cast<uint16_t>(random_.below(2));
    return sessions;
  }

  void open(InstanceIndex i, uint32_t sessions) {
    const auto generation = static_cast<uint16_t>(spec_.generation(i) + 1);
    const uint32_t limit = random_.below(limit_max_ + 1);
    spec_.open_begins(i);
    ledger_->open(i, generation, limit, sessions);
    spec_.open_ends(i, generation, limit, sessions);
  }

  void set_limit(InstanceIndex i, uint32_t limit) {
    spec_.limit_begins(i, limit);
    ledger_->set_limit(i, limit);
    spec_.limit_ends(i);
  }

  bool reclaim(InstanceIndex i) {
    spec_.reclaim_begins(i);
    const bool reclaimed = ledger_->reclaim(i);
    spec_.reclaim_ends(i, reclaimed);
    return reclaimed;
  }

  // All sessions are put and nobody else moves.
  void check_at_rest(InstanceIndex i) {
    if (!spec_.is_open(i)) return;
    spec_.require(ledger_->view(i).active == 0, "active is not 0 at the end");
    if (spec_.limit(i) > 0) check_full(i);
    set_limit(i, 0);
    spec_.require(reclaim(i), "not reclaimed at the end");
    const dp::SlotView v = ledger_->view(i);
    spec_.require(v.limit + v.pool + v.idle + v.active + v.over == 0, "something is left after reclaim");
  }

  // Alone: exactly `limit` can be admitted; all are given back.
  void check_full(InstanceIndex i) {
    uint32_t taken = 0;
    while (taken <= spec_.limit(i) && ledger_->take(i, spec_.generation(i), 0)) ++taken;
    spec_.require(taken == spec_.limit(i), "alone, more or less than the limit is admitted");
    spec_.require(ledger_->view(i).active == taken && ledger_->view(i).free() == 0, "the view of a full instance");
    while (taken > 0) ledger_->put(i, static_cast<WorkerIndex>(--taken % workers_));
  }

  Random random_;
  uint32_t workers_, instances_, limit_max_, pause_max_;
  uint64_t steps_;
  Interleaver interleaver_;
  SlotSpec spec_;
  dp::TestArena arena_{4096};
  std::unique_ptr<L> ledger_;
  std::array<std::array<uint16_t, SlotSpec::kInstancesMax>, SlotSpec::kWorkersMax> inherited_{};  // sessions
};

// SCI-33, SCI-90, SCI-92
TEST(SlotLedgerModel, IsExactUnderAllInterleavings) {
  const uint64_t seed = test_seed();
  SCOPED_TRACE(seed_text(seed));
  SlotCounts counts;
  for (uint64_t k = 0; counts.steps < kSteps; ++k) {
    ASSERT_EQ(Simulation<Ledger>(seed + k, 50'000).run(counts), "") << "alone by " << seed_text(seed + k);
  }
  const auto show = [](const char* what, uint64_t n) {
    std::printf("%-20s %12llu\n", what, static_cast<unsigned long long>(n));
  };
  show("steps", counts.steps);
  const std::pair<const char*, uint64_t> counted[] = {{"admitted", counts.admitted},
                                                      {"refused", counts.refused},
                                                      {"lost races", counts.lost_races},
                                                      {"steals", counts.steals},
                                                      {"limit below active", counts.limits_below_active},
                                                      {"index reuses", counts.index_reuses},
                                                      {"stale attempts", counts.stale_attempts}};
  for (const auto& [what, n] : counted) {
    show(what, n);
    EXPECT_GT(n, kCountMin) << what;
  }
}

// The faults. Each class differs from the ledger in one thing.

// An admission that does not look whether its slot is owed.
struct KeepsOwedSlot : Ledger {
  using Ledger::Ledger;
  bool take(InstanceIndex i, uint16_t generation, WorkerIndex w) { return take_any(i, generation, w); }
};

// Takes by a load and a store.
struct TakesInTwoSteps : Ledger {
  using Ledger::Ledger;
  bool take(InstanceIndex i, uint16_t generation, WorkerIndex w) {
    for (SpecWord* word : {&idle(i, w), &pools_[i].word}) {
      const uint64_t seen = word->load();
      if (count_of(seen) == 0 || generation_of(seen) != generation) continue;
      word->store(seen - 1);
      if (!pay_over(i)) return true;
    }
    return Ledger::take(i, generation, w);
  }
};

// Puts by a load and a store, as if nobody else touched the own lease.
struct PutsInTwoSteps : Ledger {
  using Ledger::Ledger;
  void put(InstanceIndex i, WorkerIndex w) {
    if (pay_over(i)) return;
    idle(i, w).store(idle(i, w).load() + 1);
  }
};

// Gives up when it loses a race.
struct GivesUpAfterLostRace : Ledger {
  using Ledger::Ledger;
  static bool take_once(SpecWord& word, uint16_t generation) {
    uint64_t seen = word.load();
    return count_of(seen) > 0 && generation_of(seen) == generation && word.compare_exchange_weak(seen, seen - 1);
  }
  bool take(InstanceIndex i, uint16_t generation, WorkerIndex w) {
    bool taken = take_once(idle(i, w), generation) || take_once(pools_[i].word, generation);
    for (size_t k = 1; k < workers_ && !taken; ++k) taken = take_once(idle(i, (w + k) % workers_), generation);
    return taken && (!pay_over(i) || Ledger::take(i, generation, w));
  }
};

// Never looks at the idle leases of others.
struct NeverSteals : Ledger {
  using Ledger::Ledger;
  bool take(InstanceIndex i, uint16_t generation, WorkerIndex w) {
    while (take_one(idle(i, w), generation) || take_one(pools_[i].word, generation)) {
      if (!pay_over(i)) return true;
    }
    return false;
  }
};

// Steals whatever the generation is.
struct StealsFromAnyGeneration : Ledger {
  using Ledger::Ledger;
  bool take(InstanceIndex i, uint16_t generation, WorkerIndex w) {
    if (Ledger::take(i, generation, w)) return true;
    for (size_t k = 1; k < workers_; ++k) {
      SpecWord& theirs = idle(i, (w + k) % workers_);
      if (take_one(theirs, generation_of(theirs.load()))) return !pay_over(i);
    }
    return false;
  }
};

// Lowers a limit by what it finds free and forgets the rest.
struct ForgetsWhatIsOver : Ledger {
  using Ledger::Ledger;
  void set_limit(InstanceIndex i, uint32_t limit) {
    if (limit >= this->limit(i)) return Ledger::set_limit(i, limit);
    uint32_t rest = this->limit(i) - limit;
    limits_[i].store(limit);
    rest -= destroy(pools_[i].word, rest);
    for (size_t w = 0; w < workers_; ++w) rest -= destroy(idle(i, w), rest);
  }
};

// Lowers a limit by what a reading of the active sessions calls for, instead of by what it destroyed.
struct TrustsAReading : Ledger {
  using Ledger::Ledger;
  void set_limit(InstanceIndex i, uint32_t limit) {
    if (limit >= this->limit(i)) return Ledger::set_limit(i, limit);
    const uint32_t active = view(i).active;
    const uint32_t over = active > limit ? active - limit : 0;
    uint32_t rest = this->limit(i) - limit - std::min(this->limit(i) - limit, over);
    limits_[i].store(limit);
    rest -= destroy(pools_[i].word, rest);
    for (size_t w = 0; w < workers_; ++w) rest -= destroy(idle(i, w), rest);
    uint64_t seen = pools_[i].word.load();
    while (!pools_[i].word.compare_exchange_weak(seen, seen + over * kOneOver)) {
    }
  }
};

// Calls an index free as soon as no slot lies about.
struct ReclaimsTooEarly : Ledger {
  using Ledger::Ledger;
  bool reclaim(InstanceIndex i) { return Ledger::reclaim(i) || (limit(i) == 0 && view(i).pool + view(i).idle == 0); }
};

template <class L>
class BrokenSlotLedger : public testing::Test {};
using Faults = testing::Types<KeepsOwedSlot, TakesInTwoSteps, PutsInTwoSteps, GivesUpAfterLostRace, NeverSteals,
                              StealsFromAnyGeneration, ForgetsWhatIsOver, TrustsAReading, ReclaimsTooEarly>;
TYPED_TEST_SUITE(BrokenSlotLedger, Faults);

TYPED_TEST(BrokenSlotLedger, IsCaught) {
  const uint64_t seed = test_seed();
  SCOPED_TRACE(seed_text(seed));
  SlotCounts counts;
  std::string violation;
  for (uint64_t k = 0; k < 50 && violation.empty(); ++k) {
    violation = Simulation<TypeParam>(seed + k, 50'000).run(counts);
  }
  EXPECT_NE(violation, "");
  std::printf("after %llu steps: %s\n", static_cast<unsigned long long>(counts.steps), violation.c_str());
}

}  // namespace
}  // namespace margay::test
