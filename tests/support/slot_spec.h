// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the slot ledger must do (SCI-33, SCI-90, SCI-92), written without looking at how it does it, and a word
// type that shows it every access of the shared words. Fibers 0..workers-1 of the interleaver are the workers, the
// next one is the control thread.
//
// When is a session there? From the return of the take that admits it to the call of its put. Between the last
// access of an operation and its return nothing else runs, so a return is the moment of its last access, and
//   admitted: sessions, this one included, <= the limit in force;
//   limit in force: the new one from the return of set_limit on, and while set_limit runs the higher of the two;
//   refused: each place (pool, idle lease of each worker) was empty at some moment of the attempt, or the
//     attempt's generation was not the instance's throughout. So a slot that lay free in one place was found.
// After each access: a worker took, gave back or paid exactly one slot, never has more than one in hand, and
//   limit = pool + idle + in use - over, but while set_limit runs, when it lies between the old and the new one.

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "dataplane/core/slot_ledger.h"
#include "tests/support/interleave.h"

namespace margay::test {

class SlotSpec;

// A word of the ledger whose every access is a step of the interleaver. Weak exchanges fail for no reason at times.
class SpecWord {
 public:
  uint64_t load() const;
  void store(uint64_t value);
  bool compare_exchange_weak(uint64_t& expected, uint64_t desired);

  static inline SlotSpec* spec = nullptr;  // of the running simulation
  uint64_t value = 0;
  uint32_t instance = 0;
  uint32_t place = 0;  // 0: the pool; 1 + w: the idle lease of worker w
};

struct SlotCounts {
  uint64_t steps = 0, admitted = 0, refused = 0, stale_attempts = 0;
  uint64_t lost_races = 0, steals = 0, limits_below_active = 0, index_reuses = 0;
};

class SlotSpec {
 public:
  static constexpr size_t kWorkersMax = 8, kInstancesMax = 4;

  SlotSpec(Interleaver& interleaver, Random& random, size_t workers)
      : interleaver_(interleaver), random_(random), workers_(workers) {}

  // Workers.
  void take_begins(uint32_t i, uint16_t generation) {
    const bool current = instances_[i].open && instances_[i].generation == generation;
    counts.stale_attempts += !current;
    uint32_t emptied = 0;
    for (const SpecWord* word : words_[i]) emptied |= uint32_t{count(word->value) == 0} << word->place;
    operations_[interleaver_.current()] = {i, true, current, emptied, 0};
  }
  void take_ends(uint32_t i, uint16_t generation, bool taken) {
    Operation& operation = operations_[interleaver_.current()];
    Instance& instance = instances_[i];
    operation.attempt = false;
    if (!taken) {
      ++counts.refused;
      require(operation.hand == 0, "a refused attempt keeps a slot");
      require(!operation.current || operation.emptied == (2u << workers_) - 1, "a slot free throughout was not found");
      return;
    }
    ++counts.admitted;
    require(operation.hand == 1, "admitted without a slot");
    require(instance.open && instance.generation == generation, "admitted to another generation");
    operation.hand = 0;
    ++instance.sessions;
    require(instance.sessions <= instance.in_force, "admitted beyond the limit");
  }
  void put_begins(uint32_t i) {
    --instances_[i].sessions;
    operations_[interleaver_.current()] = {i, false, false, 0, 1};
  }
  void put_ends() { require(operations_[interleaver_.current()].hand == 0, "put without giving its slot back"); }

  // Control.
  void limit_begins(uint32_t i, uint32_t limit) {
    Instance& instance = instances_[i];
    instance.low = std::min(instance.limit, limit);
    instance.in_force = std::max(instance.limit, limit);
    instance.limit = limit;
  }
  void limit_ends(uint32_t i) {
    Instance& instance = instances_[i];
    instance.low = instance.in_force = instance.limit;
    counts.limits_below_active += instance.sessions > instance.limit;
    check_sum(i);
  }
  void reclaim_begins(uint32_t i) { instances_[i].reclaiming = true; }
  void reclaim_ends(uint32_t i, bool reclaimed) {
    Instance& instance = instances_[i];
    instance.reclaiming = false;
    check_sum(i);
    if (!reclaimed) return;
    instance.open = false;
    require(instance.limit == 0 && instance.sessions == 0, "reclaimed with sessions");
    for (size_t w = 0; w < workers_; ++w) {
      Operation& operation = operations_[w];
      if (operation.instance != i) continue;
      require(operation.hand == 0, "reclaimed with a slot in hand");
      operation.current = false;
    }
    for (const SpecWord* word : words_[i]) require(owed(word->value) == 0 && count(word->value) == 0, "reclaimed rest");
  }
  void open_begins(uint32_t i) { instances_[i].opening = true; }
  // `sessions` came over from another process, perhaps more than the limit.
  void open_ends(uint32_t i, uint16_t generation, uint32_t limit, uint32_t sessions) {
    counts.index_reuses += instances_[i].generation != 0;
    counts.limits_below_active += sessions > limit;
    instances_[i] = Instance{generation, true, false, false, limit, limit, limit, sessions};
    check_sum(i);
  }

  // From SpecWord.
  void access() { interleaver_.step(); }
  bool fails_for_no_reason() { return interleaver_.running() && random_.one_in(16); }
  void lost_race() { counts.lost_races += interleaver_.running(); }
  void changed(const SpecWord& word, uint64_t before);

  void add_word(const SpecWord& word) { words_[word.instance].push_back(&word); }
  bool is_open(uint32_t i) const { return instances_[i].open; }
  uint16_t generation(uint32_t i) const { return instances_[i].generation; }
  uint32_t limit(uint32_t i) const { return instances_[i].limit; }
  void require(bool holds, const char* otherwise) {
    if (!holds && violation.empty()) violation = otherwise;
  }

  SlotCounts counts;
  std::string violation;  // the first; empty: none

 private:
  struct Instance {
    uint16_t generation = 0;
    bool open = false, opening = false, reclaiming = false;
    uint32_t limit = 0, low = 0, in_force = 0;
    int64_t sessions = 0;
  };
  struct Operation {  // what a worker is at, or was at last
    uint32_t instance = 0;
    bool attempt = false, current = false;
    uint32_t emptied = 0;  // places that were empty at some moment of the attempt
    int hand = 0;          // slots in hand
  };

  static int64_t count(uint64_t word) { return static_cast<int64_t>(word & 0xffffff); }
  static int64_t owed(uint64_t word) { return static_cast<int64_t>(word >> 24 & 0xffffff); }

  // pool + idle + in use - over, counted afresh.
  int64_t sum(uint32_t i) const {
    int64_t n = instances_[i].sessions;
    for (const Operation& operation : operations_) n += operation.instance == i ? operation.hand : 0;
    for (const SpecWord* word : words_[i]) n += count(word->value) - owed(word->value);
    return n;
  }
  void check_sum(uint32_t i) { require(sum(i) == instances_[i].limit, "slots lost or made"); }
  void worker_changed(const SpecWord& word, int64_t counted, int64_t owing);

  Interleaver& interleaver_;
  Random& random_;
  size_t workers_;
  std::array<Instance, kInstancesMax> instances_{};
  std::array<std::vector<const SpecWord*>, kInstancesMax> words_;
  std::array<Operation, kWorkersMax + 1> operations_{};  // the last one: slots that control has in hand
};

inline void SlotSpec::worker_changed(const SpecWord& word, int64_t counted, int64_t owing) {
  const size_t w = interleaver_.current();
  const bool takes = counted == -1 && owing == 0;
  const bool gives = counted == 1 && owing == 0 && word.place == 1 + w;
  const bool pays = counted == 0 && owing == -1 && word.place == 0;
  require(takes || gives || pays, "a worker's step that neither takes, gives back nor pays one slot");
  Operation& operation = operations_[w];
  require(operation.instance == word.instance, "a step on another instance");
  operation.hand += takes ? 1 : -1;
  require(operation.hand == 0 || operation.hand == 1, "more or less than one slot in hand");
  counts.steals += takes && word.place != 0 && word.place != 1 + w;
}

inline void SlotSpec::changed(const SpecWord& word, uint64_t before) {
  if (!interleaver_.running()) return;
  Instance& instance = instances_[word.instance];
  const int64_t counted = count(word.value) - count(before), owing = owed(word.value) - owed(before);
  if (instance.opening && interleaver_.current() == workers_) {
    require((before << 16) == 0, "opened while something is left");
    return;
  }
  require(word.value >> 48 == before >> 48, "a generation changed");
  if (interleaver_.current() < workers_) {
    worker_changed(word, counted, owing);
  } else if (instance.reclaiming) {
    Operation& operation = operations_[kWorkersMax];
    operation.instance = word.instance;
    operation.hand += static_cast<int>(owing - counted);
  }
  const int64_t now = sum(word.instance);
  require(now >= instance.low && now <= instance.in_force, "the sum is not the limit");
  if (count(word.value) != 0) return;
  for (Operation& operation : operations_) {
    if (operation.attempt && operation.instance == word.instance) operation.emptied |= 1u << word.place;
  }
}

inline uint64_t SpecWord::load() const {
  spec->access();
  return value;
}

inline void SpecWord::store(uint64_t v) {
  spec->access();
  const uint64_t before = std::exchange(value, v);
  spec->changed(*this, before);
}

inline bool SpecWord::compare_exchange_weak(uint64_t& expected, uint64_t desired) {
  spec->access();
  const bool same = value == expected;
  if (!same) spec->lost_race();
  if (!same || spec->fails_for_no_reason()) {
    expected = value;
    return false;
  }
  value = desired;
  spec->changed(*this, expected);
  return true;
}

}  // namespace margay::test
