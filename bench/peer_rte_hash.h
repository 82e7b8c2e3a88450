// SPDX-License-Identifier: Apache-2.0
#pragma once

// DPDK's rte_hash as the peer of the flow table: bulk look-up, lock-free readers, CRC hash. Its header knows no rte_*,
// so that only peer_rte_hash.cc is compiled with DPDK's flags (they bring a -march of their own). One thread.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "dataplane/core/flow_table.h"

namespace margay::bench {

// Starts EAL once, without ports: in huge pages if at least `megabytes` of them are free, else in plain memory.
// Ends the process when it cannot.
void start_eal(size_t megabytes);
bool eal_has_huge_pages();
// Memory from EAL, zeroed: so that the flow table lies in the same kind of pages as its peer.
std::span<std::byte> eal_memory(size_t bytes);
void free_eal_memory(std::span<std::byte> memory);

class PeerHash {
 public:
  explicit PeerHash(size_t keys_max);
  ~PeerHash();
  PeerHash(const PeerHash&) = delete;
  PeerHash& operator=(const PeerHash&) = delete;

  bool insert(const dp::FlowKey& key, uint32_t value);
  void erase(const dp::FlowKey& key);
  // found[i]: the value, or kNoIndex. At most kBurstMax keys.
  void find_bulk(std::span<const dp::FlowKey> keys, std::span<uint32_t> found) const;

 private:
  struct Table;
  std::unique_ptr<Table> table_;
};

}  // namespace margay::bench
