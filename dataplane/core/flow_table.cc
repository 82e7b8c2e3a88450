// SPDX-License-Identifier: Apache-2.0

#include "dataplane/core/flow_table.h"

#include <algorithm>
#include <bit>

#include "common/check.h"

namespace margay::dp {
namespace {

constexpr uint32_t reference_to(EntryIndex e, Direction direction) { return e << 1 | static_cast<uint32_t>(direction); }

}  // namespace

size_t FlowTable::buckets_for(size_t entries) {
  const size_t keys = entries * 2;
  const size_t full = (keys * 100 + 85 * kBucketSlots - 1) / (85 * kBucketSlots);
  return std::bit_ceil(std::max<size_t>(full, 2));  // a key has two buckets
}

FlowTable::FlowTable(Arena& arena, std::span<FlowEntry> entries, size_t capacity)
    : entries_(entries),
      buckets_(arena.make<Bucket>(buckets_for(capacity))),
      free_(arena.make<EntryIndex>(capacity)),
      free_count_(free_.size()),
      bucket_mask_(static_cast<uint32_t>(buckets_for(capacity) - 1)) {
  for (size_t i = 0; i < free_.size(); ++i) free_[i] = static_cast<EntryIndex>(free_.size() - 1 - i);
}

[[gnu::always_inline]] inline bool FlowTable::matches(uint32_t reference, const FlowKey& key,
                                                      std::span<const EndpointIndex> endpoint_of_instance) const {
  if ((reference & 1) != static_cast<uint32_t>(key.direction)) return false;
  const FlowEntry& e = entries_[reference >> 1];
  if (e.client != key.client || e.client_port != key.client_port || e.protocol != key.protocol) return false;
  const uint32_t service = key.direction == Direction::kFromClient ? e.frontend : endpoint_of_instance[e.instance];
  return service == key.service;
}

[[gnu::always_inline]] inline EntryIndex FlowTable::match_in(
    const Bucket& bucket, uint32_t candidates, const FlowKey& key,
    std::span<const EndpointIndex> endpoint_of_instance) const {
  for (; candidates != 0; candidates &= candidates - 1) {
    const uint32_t reference = bucket.references[static_cast<size_t>(std::countr_zero(candidates))];
    if (matches(reference, key, endpoint_of_instance)) return reference >> 1;
  }
  return kNoIndex;
}

void FlowTable::find_bulk(std::span<const FlowKey> keys, std::span<const uint64_t> hashes,
                          std::span<const EndpointIndex> endpoint_of_instance, std::span<EntryIndex> found) const {
  MARGAY_DCHECK(keys.size() <= kBurstMax && hashes.size() >= keys.size() && found.size() >= keys.size());
  TagProbe probe;
  std::array<uint8_t, kBurstMax> key_of;  // by place in the probe
  probe.count = static_cast<uint32_t>(keys.size());
  for (uint32_t i = 0; i < probe.count; ++i) {
    key_of[i] = static_cast<uint8_t>(i);
    probe.tags[i] = tag_of(hashes[i]);
    probe.buckets[i] = primary_of(hashes[i]);
    __builtin_prefetch(&buckets_[probe.buckets[i]]);
  }
  for (int choice = 0; choice < 2 && probe.count > 0; ++choice) {
    match_tags(buckets_.data(), probe);
    for (uint32_t i = 0; i < probe.count; ++i) {
      const uint32_t bucket = probe.buckets[i];
      if (const uint32_t candidates = probe.matches[i]; candidates != 0) {
        const auto slot = static_cast<size_t>(std::countr_zero(candidates));
        __builtin_prefetch(&entries_[buckets_[bucket].references[slot] >> 1]);
      } else if (choice == 0) {
        __builtin_prefetch(&buckets_[other_of(bucket, probe.tags[i])]);
      }
    }
    uint32_t missed = 0;  // are moved to the front, and to their other bucket
    for (uint32_t i = 0; i < probe.count; ++i) {
      const uint8_t k = key_of[i];
      found[k] = match_in(buckets_[probe.buckets[i]], probe.matches[i], keys[k], endpoint_of_instance);
      if (found[k] != kNoIndex) continue;
      key_of[missed] = k;
      probe.buckets[missed] = other_of(probe.buckets[i], probe.tags[i]);
      probe.tags[missed++] = probe.tags[i];
    }
    probe.count = missed;
  }
}

EntryIndex FlowTable::find(const FlowKey& key, uint64_t hash,
                           std::span<const EndpointIndex> endpoint_of_instance) const {
  const uint16_t tag = tag_of(hash);
  const uint32_t primary = primary_of(hash);
  for (const uint32_t b : {primary, other_of(primary, tag)}) {
    uint32_t candidates = 0;
    for (uint32_t slot = 0; slot < kBucketSlots; ++slot) {
      candidates |= uint32_t{buckets_[b].tags[slot] == tag} << slot;
    }
    const EntryIndex e = match_in(buckets_[b], candidates, key, endpoint_of_instance);
    if (e != kNoIndex) return e;
  }
  return kNoIndex;
}

EntryIndex FlowTable::allocate() { return free_count_ > 0 ? free_[--free_count_] : kNoIndex; }

void FlowTable::release(EntryIndex e) {
  MARGAY_DCHECK(free_count_ < free_.size());
  entries_[e].adoption = 0;
  entries_[e].state = FlowState::kFree;
  free_[free_count_++] = e;
}

uint32_t FlowTable::free_slot(uint32_t bucket) const {
  const auto& tags = buckets_[bucket].tags;
  return static_cast<uint32_t>(std::find(tags.begin(), tags.end(), 0) - tags.begin());
}

bool FlowTable::insert(EntryIndex e, Direction direction, uint64_t hash) {
  const uint16_t tag = tag_of(hash);
  const uint32_t primary = primary_of(hash);
  const Place place = find_room(primary, other_of(primary, tag));
  if (place.bucket == kNoIndex) return false;
  buckets_[place.bucket].tags[place.slot] = tag;
  buckets_[place.bucket].references[place.slot] = reference_to(e, direction);
  return true;
}

// Breadth first, so that few keys move: a full bucket's keys may each go to their other bucket, and so on. The first
// path that gets to a free slot meets no bucket twice: from the bucket's first step on it would have been shorter.
FlowTable::Place FlowTable::find_room(uint32_t primary, uint32_t secondary) {
  for (const uint32_t bucket : {primary, secondary}) {
    if (const uint32_t slot = free_slot(bucket); slot < kBucketSlots) return {bucket, slot};
  }
  std::array<Step, kSearchMax> steps;
  steps[0] = {primary, 0, 0};
  steps[1] = {secondary, 1, 0};
  size_t count = 2;
  for (size_t at = 0; at < count; ++at) {
    const uint32_t bucket = steps[at].bucket;
    if (const uint32_t slot = free_slot(bucket); slot < kBucketSlots) return move_keys(steps, at, slot);
    for (uint8_t slot = 0; slot < kBucketSlots && count < kSearchMax; ++slot) {
      const uint32_t other = other_of(bucket, buckets_[bucket].tags[slot]);
      __builtin_prefetch(&buckets_[other]);
      steps[count++] = {other, static_cast<uint16_t>(at), slot};
    }
  }
  return {};
}

// Moves the keys along the path that ends at a free slot of the last step's bucket. Returns the slot that gets free.
FlowTable::Place FlowTable::move_keys(std::span<const Step> steps, size_t last, uint32_t slot) {
  while (steps[last].parent != last) {
    Bucket& to = buckets_[steps[last].bucket];
    Bucket& from = buckets_[steps[steps[last].parent].bucket];
    to.tags[slot] = from.tags[steps[last].slot];
    to.references[slot] = from.references[steps[last].slot];
    slot = steps[last].slot;
    last = steps[last].parent;
  }
  return {steps[last].bucket, slot};
}

void FlowTable::erase(EntryIndex e, Direction direction, uint64_t hash) {
  const uint32_t reference = reference_to(e, direction);
  const uint16_t tag = tag_of(hash);
  const uint32_t primary = primary_of(hash);
  for (const uint32_t b : {primary, other_of(primary, tag)}) {
    for (size_t slot = 0; slot < kBucketSlots; ++slot) {
      if (buckets_[b].references[slot] != reference || buckets_[b].tags[slot] != tag) continue;
      buckets_[b].tags[slot] = 0;
      return;
    }
  }
  MARGAY_DCHECK(false && "key to be erased is not in the table");
}

}  // namespace margay::dp
