// SPDX-License-Identifier: Apache-2.0
#pragma once

// Timers of flow entries: a wheel of kSlots slots of one tick (10 ms) each, lists threaded through the
// entries. An entry stands in the slot of a time at which somebody has to look at it. Extension is lazy (the
// entry stays, and is put back when its slot comes up); shortening re-inserts. A deadline beyond the wheel's
// length waits in the farthest slot and is looked at once a turn. One worker.
//
// Work a call is bounded by the caller; with at most R timers a tick arriving and a bound of B >= R a call, an
// entry is looked at in the first call after its slot's tick: lateness is one tick plus the time between calls.

#include <array>
#include <cstdint>
#include <span>

#include "dataplane/core/arena.h"
#include "dataplane/core/flow_entry.h"
#include "dataplane/core/units.h"

namespace margay::dp {

class TimerWheel {
 public:
  static constexpr uint32_t kSlots = 8192;  // 82 s a turn

  TimerWheel(Arena& arena, std::span<FlowEntry> entries, Tick now);

  // Puts an entry into the slot of `deadline`, at least one tick ahead of the slot that is being emptied: what
  // comes from pop_due() is never met again in the same slot. REQUIRES: in no wheel.
  void insert(EntryIndex e, Tick deadline);
  // Takes it out. REQUIRES: it is in this wheel.
  void erase(EntryIndex e);

  // Takes out the next entry whose slot is due at `now`, or kNoIndex when none is (or the wheel has caught up).
  // The caller looks at it: ends it, or inserts it again.
  EntryIndex pop_due(Tick now);
  // The entry whose slot comes up first, or kNoIndex when empty; it stays in.
  EntryIndex first() const;
  // The tick up to which all slots have been emptied.
  Tick current() const { return head() == kNoIndex ? current_ : current_ - 1; }
  size_t size() const { return size_; }

 private:
  static constexpr uint32_t kWords = kSlots / 64;
  static uint32_t slot_of(Tick t) { return t % kSlots; }
  EntryIndex head() const { return heads_[slot_of(current_)]; }
  Tick next_occupied() const;
  void mark_empty(uint32_t slot);

  std::span<FlowEntry> entries_;
  std::span<EntryIndex> heads_;                         // kSlots
  std::span<uint64_t> occupied_;                        // a bit a slot
  std::array<uint64_t, kWords / 64> occupied_words_{};  // a bit for each word of occupied_ that is not 0
  Tick current_;                                        // its slot is the one that is being emptied
  size_t size_ = 0;
};

}  // namespace margay::dp
