// SPDX-License-Identifier: Apache-2.0

#include "dataplane/core/timer_wheel.h"

#include <algorithm>
#include <bit>

#include "common/check.h"

namespace margay::dp {
namespace {

constexpr uint32_t kIsSlot = uint32_t{1} << 31;  // in timer_previous: the entry is the first of this slot

}  // namespace

TimerWheel::TimerWheel(Arena& arena, std::span<FlowEntry> entries, Tick now)
    : entries_(entries),
      heads_(arena.make<EntryIndex>(kSlots)),
      occupied_(arena.make<uint64_t>(kWords)),
      current_(now) {
  std::fill(heads_.begin(), heads_.end(), kNoIndex);
}

void TimerWheel::insert(EntryIndex e, Tick deadline) {
  // The slot of current_ + kSlots is that of current_.
  const auto ahead = static_cast<uint32_t>(
      std::clamp(static_cast<int32_t>(deadline - current_), int32_t{1}, static_cast<int32_t>(kSlots - 1)));
  const uint32_t slot = slot_of(current_ + ahead);
  const EntryIndex next = heads_[slot];
  entries_[e].timer_next = next;
  entries_[e].timer_previous = slot | kIsSlot;
  if (next != kNoIndex) entries_[next].timer_previous = e;
  heads_[slot] = e;
  occupied_[slot / 64] |= uint64_t{1} << slot % 64;
  occupied_words_[slot / 64 / 64] |= uint64_t{1} << slot / 64 % 64;
  ++size_;
}

void TimerWheel::erase(EntryIndex e) {
  const EntryIndex next = entries_[e].timer_next;
  const uint32_t previous = entries_[e].timer_previous;
  if (next != kNoIndex) entries_[next].timer_previous = previous;
  if ((previous & kIsSlot) == 0) {
    entries_[previous].timer_next = next;
  } else {
    const uint32_t slot = previous & ~kIsSlot;
    heads_[slot] = next;
    if (next == kNoIndex) mark_empty(slot);
  }
  --size_;
}

void TimerWheel::mark_empty(uint32_t slot) {
  uint64_t& word = occupied_[slot / 64];
  word &= ~(uint64_t{1} << slot % 64);
  if (word == 0) occupied_words_[slot / 64 / 64] &= ~(uint64_t{1} << slot / 64 % 64);
}

// The tick of the first occupied slot behind current_. REQUIRES: the wheel is not empty.
Tick TimerWheel::next_occupied() const {
  const Tick from = current_ + 1;
  const uint32_t slot = slot_of(from), word = slot / 64;
  if (const uint64_t rest = occupied_[word] >> slot % 64; rest != 0) {
    return from + static_cast<Tick>(std::countr_zero(rest));
  }
  // The next word that is not empty: the rest of the half that holds `word`, the other half, the first one again.
  const uint32_t half = word / 64;
  uint32_t found = half * 64;
  uint64_t bits = word % 64 == 63 ? 0 : occupied_words_[half] >> (word % 64 + 1) << (word % 64 + 1);
  for (uint32_t turn = 1; bits == 0 && turn <= 2; ++turn) {
    found = (half + turn) % 2 * 64;
    bits = occupied_words_[found / 64];
  }
  MARGAY_DCHECK(bits != 0);
  found += static_cast<uint32_t>(std::countr_zero(bits));
  const uint32_t next = found * 64 + static_cast<uint32_t>(std::countr_zero(occupied_[found]));
  return from + slot_of(next - slot);
}

EntryIndex TimerWheel::pop_due(Tick now) {
  if (head() == kNoIndex && tick_after(now, current_)) {
    const Tick next = size_ == 0 ? now : next_occupied();
    current_ = tick_after(next, now) ? now : next;
  }
  const EntryIndex e = head();
  if (e != kNoIndex) erase(e);
  return e;
}

EntryIndex TimerWheel::first() const {
  if (size_ == 0) return kNoIndex;
  return head() != kNoIndex ? head() : heads_[slot_of(next_occupied())];
}

}  // namespace margay::dp
