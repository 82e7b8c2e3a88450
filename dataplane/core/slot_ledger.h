// SPDX-License-Identifier: Apache-2.0
#pragma once

// Exact slots (SCI-33, SCI-90, SCI-92): never more than `limit` taken over all workers, and no slot lost.
//
// Per instance there is one pool word {generation, over, pool}, and per worker and instance one idle word
// {generation, idle}. At every moment
//     limit + over = pool + sum over workers (idle + in use)                                   (1)
// where "in use" counts slots that a session holds, or that an attempt has in hand.
//   take: from the own idle lease, else the pool, else another worker's idle lease: one slot, by one
//         compare-and-swap. Then the pool word is read again: while over > 0, the slot in hand is owed and
//         pays it off, and the attempt starts again. With over = 0, (1) gives in use <= limit: admitted.
//   put:  pays off over if there is any, else adds to the own idle lease.
//   set_limit: upwards pays off over, then fills the pool. Downwards destroys free slots in the pool and the
//         idle leases, each by compare-and-swap; what is left becomes over, and the new limit holds from then.
// A free slot never moves: it is taken or destroyed where it lies. So an attempt that looks once at every
// place finds any slot that was free throughout, without a lock and without waiting for a worker that stalls;
// a failed exchange means that another worker succeeded.
//
// Threads: take and put by the worker that they name; open, set_limit and reclaim by one control thread;
// view by anyone. A generation that does not match makes take fail: an index that is used again is another
// instance. The words' type is a parameter so that tests can interleave workers at each access.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <span>

#include "dataplane/core/arena.h"
#include "dataplane/core/units.h"

namespace margay::dp {

struct SlotView {
  uint16_t generation = 0;
  uint32_t limit = 0;
  uint32_t pool = 0;
  uint32_t idle = 0;    // over all workers
  uint32_t active = 0;  // taken
  uint32_t over = 0;    // taken beyond the limit, after it was lowered
  uint32_t free() const { return limit > active ? limit - active : 0; }
};

template <class Word>
class BasicSlotLedger {
 public:
  static constexpr uint32_t kLimitMax = (1u << 24) - 1;

  BasicSlotLedger(Arena& arena, size_t workers, size_t instances)
      : workers_(workers),
        instances_(instances),
        stride_((instances + kPerLine - 1) / kPerLine * kPerLine),
        pools_(arena.make<PoolLine>(instances)),
        limits_(arena.make<std::atomic<uint32_t>>(instances)),
        idle_(arena.make<Word>(workers * stride_)) {}

  // Takes a slot for worker w; true if there was one. Lock-free.
  [[nodiscard]] bool take(InstanceIndex i, uint16_t generation, WorkerIndex w);
  // Gives a slot back. REQUIRES: taken by this worker, under the generation that the instance still has.
  void put(InstanceIndex i, WorkerIndex w);

  // Control thread: begins the use of an index whose last user has been reclaimed, or of which the sessions that hold
  // `taken` slots came over from another process: (1) holds from the start, with what is beyond the limit as over.
  // 0 <= limit, taken <= kLimitMax.
  void open(InstanceIndex i, uint16_t generation, uint32_t limit, uint32_t taken = 0);
  // Control thread: the limit of new sessions from the return of this call on. 0 <= limit <= kLimitMax.
  void set_limit(InstanceIndex i, uint32_t limit);
  // Control thread: true once the limit is 0 and no session holds a slot; every word is then 0 and the index
  // may be opened again under another generation.
  [[nodiscard]] bool reclaim(InstanceIndex i);

  // A consistent picture when nothing moves; else each figure is one that was true lately.
  SlotView view(InstanceIndex i) const;
  uint32_t limit(InstanceIndex i) const { return limits_[i].load(std::memory_order_relaxed); }
  size_t instances() const { return instances_; }
  size_t workers() const { return workers_; }

 protected:  // tests derive broken copies of the protocol
  static constexpr size_t kPerLine = kCacheLine / sizeof(Word);
  // 16 bits generation, 24 bits over, 24 bits pool; an idle word has its count where the pool is.
  static constexpr uint64_t kOneOver = uint64_t{1} << 24;
  static constexpr uint64_t kCountMask = kOneOver - 1;
  static constexpr uint32_t count_of(uint64_t word) { return static_cast<uint32_t>(word & kCountMask); }
  static constexpr uint32_t over_of(uint64_t word) { return static_cast<uint32_t>(word >> 24 & kCountMask); }
  static constexpr uint16_t generation_of(uint64_t word) { return static_cast<uint16_t>(word >> 48); }
  static constexpr uint64_t pack(uint16_t generation, uint32_t over, uint32_t count) {
    return uint64_t{generation} << 48 | uint64_t{over} << 24 | count;
  }

  struct alignas(kCacheLine) PoolLine {
    Word word{};
  };

  Word& idle(InstanceIndex i, size_t w) { return idle_[w * stride_ + i]; }
  const Word& idle(InstanceIndex i, size_t w) const { return idle_[w * stride_ + i]; }

  static bool take_one(Word& word, uint16_t generation);
  bool take_any(InstanceIndex i, uint16_t generation, WorkerIndex w);
  bool pay_over(InstanceIndex i);
  uint32_t destroy(Word& word, uint32_t most);

  size_t workers_;
  size_t instances_;
  size_t stride_;  // idle words per worker: whole cache lines, so that workers do not share them
  std::span<PoolLine> pools_;
  std::span<std::atomic<uint32_t>> limits_;
  std::span<Word> idle_;
};

// All orders are sequentially consistent: put (idle, then pool) against set_limit (pool, then idle) is the
// store-buffer pattern. These words are touched at a flow's birth and death only.

template <class Word>
bool BasicSlotLedger<Word>::take_one(Word& word, uint16_t generation) {
  uint64_t seen = word.load();
  while (count_of(seen) > 0 && generation_of(seen) == generation) {
    if (word.compare_exchange_weak(seen, seen - 1)) return true;
  }
  return false;
}

template <class Word>
bool BasicSlotLedger<Word>::take_any(InstanceIndex i, uint16_t generation, WorkerIndex w) {
  if (take_one(idle(i, w), generation) || take_one(pools_[i].word, generation)) return true;
  for (size_t k = 1; k < workers_; ++k) {
    if (take_one(idle(i, (w + k) % workers_), generation)) return true;
  }
  return false;
}

// Pays one owed slot; false if none is owed.
template <class Word>
bool BasicSlotLedger<Word>::pay_over(InstanceIndex i) {
  Word& word = pools_[i].word;
  uint64_t seen = word.load();
  while (over_of(seen) > 0) {
    if (word.compare_exchange_weak(seen, seen - kOneOver)) return true;
  }
  return false;
}

template <class Word>
bool BasicSlotLedger<Word>::take(InstanceIndex i, uint16_t generation, WorkerIndex w) {
  while (take_any(i, generation, w)) {
    if (!pay_over(i)) return true;
  }
  return false;
}

template <class Word>
void BasicSlotLedger<Word>::put(InstanceIndex i, WorkerIndex w) {
  if (pay_over(i)) return;
  Word& own = idle(i, w);
  uint64_t seen = own.load();
  while (!own.compare_exchange_weak(seen, seen + 1)) {
  }
}

template <class Word>
void BasicSlotLedger<Word>::open(InstanceIndex i, uint16_t generation, uint32_t limit, uint32_t taken) {
  for (size_t w = 0; w < workers_; ++w) idle(i, w).store(pack(generation, 0, 0));
  limits_[i].store(limit, std::memory_order_relaxed);
  pools_[i].word.store(pack(generation, taken - std::min(taken, limit), limit - std::min(taken, limit)));
}

// Destroys up to `most` free slots of one word; returns how many.
template <class Word>
uint32_t BasicSlotLedger<Word>::destroy(Word& word, uint32_t most) {
  uint64_t seen = word.load();
  for (;;) {
    const uint32_t n = std::min(most, count_of(seen));
    if (n == 0 || word.compare_exchange_weak(seen, seen - n)) return n;
  }
}

template <class Word>
void BasicSlotLedger<Word>::set_limit(InstanceIndex i, uint32_t limit) {
  Word& word = pools_[i].word;
  const uint32_t old = limits_[i].load(std::memory_order_relaxed);
  limits_[i].store(limit, std::memory_order_relaxed);
  if (limit >= old) {
    const uint32_t raise = limit - old;
    uint64_t seen = word.load();
    for (;;) {
      const uint32_t paid = std::min(raise, over_of(seen));
      if (word.compare_exchange_weak(seen, seen - paid * kOneOver + (raise - paid))) return;
    }
  }
  uint32_t rest = old - limit;
  rest -= destroy(word, rest);
  for (size_t w = 0; w < workers_ && rest > 0; ++w) rest -= destroy(idle(i, w), rest);
  uint64_t seen = word.load();
  while (rest > 0 && !word.compare_exchange_weak(seen, seen + rest * kOneOver)) {
  }
}

template <class Word>
bool BasicSlotLedger<Word>::reclaim(InstanceIndex i) {
  if (limit(i) != 0) return false;
  // Idle slots that came back while over was being set: at limit 0, by (1), each of them is owed.
  for (size_t w = 0; w < workers_; ++w) {
    while (destroy(idle(i, w), 1) == 1) pay_over(i);
  }
  const SlotView v = view(i);
  return v.pool == 0 && v.idle == 0 && v.active == 0 && over_of(pools_[i].word.load()) == 0;
}

template <class Word>
SlotView BasicSlotLedger<Word>::view(InstanceIndex i) const {
  SlotView v;
  const uint64_t word = pools_[i].word.load();
  v.generation = generation_of(word);
  v.limit = limit(i);
  v.pool = count_of(word);
  for (size_t w = 0; w < workers_; ++w) v.idle += count_of(idle(i, w).load());
  const uint32_t owned = v.limit + over_of(word), unused = v.pool + v.idle;
  v.active = owned > unused ? owned - unused : 0;
  v.over = v.active > v.limit ? v.active - v.limit : 0;
  return v;
}

using SlotLedger = BasicSlotLedger<std::atomic<uint64_t>>;

}  // namespace margay::dp
