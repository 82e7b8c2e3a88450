// SPDX-License-Identifier: Apache-2.0
#pragma once

// A worker's affinity bindings (SCI-83): a fixed array of FlowEntry and one hash index over it that holds a
// key for each direction of a flow (one direction in one-way modes).
//
// Index: buckets of one cache line with eight 16-bit tags and eight 32-bit references (entry * 2 + direction);
// a key lives in one of two buckets (cuckoo with partial keys: the other bucket follows from bucket and tag,
// so that moving a key needs no entry). No resize. Bounded search for room; inserting both keys is one step.
// Lines touched: hit 2 (bucket, entry), 3 when in the second bucket; miss 2; insert 2 to 2 + moves, per key.
// The full key is compared in the entry: a hit is never another flow's.
//
// One worker. Memory: 64 bytes an entry and, at 85 % load, 2 * 8 / 0.85 bytes of index (two keys).

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "common/net.h"
#include "dataplane/core/arena.h"
#include "dataplane/core/flow_entry.h"
#include "dataplane/core/flow_probe.h"
#include "dataplane/core/units.h"

namespace margay::dp {

enum class Direction : uint8_t { kFromClient = 0, kFromInstance = 1 };

// What a packet is looked up by. `service` is a FrontendIndex for packets from the client and an
// EndpointIndex for packets from an instance; the two directions never match each other's keys.
struct FlowKey {
  IpAddress client;
  uint16_t client_port = 0;  // wire order
  Protocol protocol = Protocol::kTcp;
  Direction direction = Direction::kFromClient;
  uint32_t service = kNoIndex;
};

// Secret of the flow hash, drawn at start (replay: from its seed), so that no client can aim at one bucket or
// one worker (l4lb facts, row 32). Multilinear over 32-bit words: strongly universal, not for other uses.
struct HashSecret {
  std::array<uint64_t, 16> words{};
};

// From client address, port and protocol alone: both directions of a flow give the same.
uint64_t hash_client(const HashSecret& secret, const IpAddress& client, uint16_t client_port, Protocol protocol);
// The worker that owns the client's flow. 1 <= workers.
constexpr WorkerIndex owner_of(uint64_t client_hash, size_t workers) {
  return static_cast<WorkerIndex>((client_hash >> 32) * workers >> 32);
}
// Continues a client hash to the hash of the whole key.
uint64_t hash_key(const HashSecret& secret, uint64_t client_hash, Direction direction, uint32_t service);

class FlowTable {
 public:
  // REQUIRES: capacity is below 2^31, every entry's state is kFree.
  FlowTable(Arena& arena, size_t capacity) : FlowTable(arena, arena.make<FlowEntry>(capacity), capacity) {}
  // With entries in memory that may outlive the process; the index never does.
  FlowTable(Arena& arena, std::span<FlowEntry> entries) : FlowTable(arena, entries, entries.size()) {}
  static size_t buckets_for(size_t entries);  // a power of two with room for two keys each at most 85 % full

  // Looks up n <= kBurstMax keys; found[i] is an entry or kNoIndex. Buckets and entries are prefetched over the
  // whole burst. `endpoint_of_instance[e.instance]` gives the endpoint whose index is the reply key's service.
  void find_bulk(std::span<const FlowKey> keys, std::span<const uint64_t> hashes,
                 std::span<const EndpointIndex> endpoint_of_instance, std::span<EntryIndex> found) const;
  EntryIndex find(const FlowKey& key, uint64_t hash, std::span<const EndpointIndex> endpoint_of_instance) const;

  // A free entry (state kFree, all else undefined), or kNoIndex when all are used.
  EntryIndex allocate();
  void release(EntryIndex e);  // REQUIRES: its keys are erased
  // Puts the key of one direction in. False when no room was found; nothing has changed then.
  // REQUIRES: the key is not in the table.
  [[nodiscard]] bool insert(EntryIndex e, Direction direction, uint64_t hash);
  // REQUIRES: the key is in the table.
  void erase(EntryIndex e, Direction direction, uint64_t hash);

  std::span<FlowEntry> entries() { return entries_; }
  FlowEntry& operator[](EntryIndex e) { return entries_[e]; }
  const FlowEntry& operator[](EntryIndex e) const { return entries_[e]; }
  size_t capacity() const { return entries_.size(); }
  size_t used() const { return entries_.size() - free_count_; }

 private:
  struct alignas(kCacheLine) Bucket {
    std::array<uint16_t, kBucketSlots> tags;        // 0: free
    std::array<uint32_t, kBucketSlots> references;  // entry * 2 + direction
    std::array<uint8_t, 16> spare;
  };
  static_assert(sizeof(Bucket) == kCacheLine && offsetof(Bucket, tags) == 0);
  struct Place {
    uint32_t bucket = kNoIndex;
    uint32_t slot = 0;
  };
  // A bucket that the search for room looks at, and the key whose move there would free a slot of its parent's.
  struct Step {
    uint32_t bucket;
    uint16_t parent;
    uint8_t slot;
  };
  static constexpr size_t kSearchMax = 512;  // buckets looked at for one insert

  FlowTable(Arena& arena, std::span<FlowEntry> entries, size_t capacity);

  // The owner of a flow depends on the upper half of its client's hash, most of all on the top bits: a bucket
  // comes from the lower half, a tag from the bottom of the upper one.
  uint32_t primary_of(uint64_t hash) const { return static_cast<uint32_t>(hash) & bucket_mask_; }
  static uint16_t tag_of(uint64_t hash) {
    const auto tag = static_cast<uint16_t>(hash >> 32);
    return tag == 0 ? 1 : tag;
  }
  // The other bucket of a key in this one: never the same, and the way back is the same.
  uint32_t other_of(uint32_t bucket, uint16_t tag) const {
    return bucket ^ ((tag * 0x9e3779b1u >> 7 | 1) & bucket_mask_);
  }

  bool matches(uint32_t reference, const FlowKey& key, std::span<const EndpointIndex> endpoint_of_instance) const;
  EntryIndex match_in(const Bucket& bucket, uint32_t candidates, const FlowKey& key,
                      std::span<const EndpointIndex> endpoint_of_instance) const;
  uint32_t free_slot(uint32_t bucket) const;
  Place find_room(uint32_t primary, uint32_t secondary);
  Place move_keys(std::span<const Step> steps, size_t last, uint32_t slot);

  std::span<FlowEntry> entries_;
  std::span<Bucket> buckets_;
  std::span<EntryIndex> free_;  // a stack
  size_t free_count_ = 0;
  uint32_t bucket_mask_ = 0;
};

}  // namespace margay::dp
