// SPDX-License-Identifier: Apache-2.0
#pragma once

// The least that a forwarding loop does for a hit, as a yardstick for the fast path: parse, bulk look-up, rewrite
// with incremental checksum. No site, no state, no counters, no checks beyond those that keep it within the packet.
// The look-up is the flow table, or its peer. One thread.

#include <array>
#include <memory>
#include <vector>

#include "bench/peer_rte_hash.h"
#include "bench/traffic.h"

namespace margay::bench {

class Lookup {
 public:
  virtual ~Lookup() = default;
  virtual void find(std::span<const dp::FlowKey> keys, std::span<uint32_t> flows) const = 0;
};

// Every flow of the set-up, its number as the value.
std::unique_ptr<Lookup> flow_table_lookup(const Setup& setup);
std::unique_ptr<Lookup> rte_hash_lookup(const Setup& setup);

class BareLoop {
 public:
  BareLoop(const Setup& setup, std::unique_ptr<Lookup> lookup);

  // Frames [first, first + count), a burst after the other; ends the process when one is not found.
  void process(const Frames& frames, size_t first, size_t count);

 private:
  bool parse(dp::Packet& packet, dp::FlowKey& key) const;
  void rewrite_v4(dp::Packet& packet, size_t instance) const;
  void rewrite_v6(dp::Packet& packet, size_t instance) const;

  Setup setup_;
  std::unique_ptr<Lookup> lookup_;
  std::array<IpAddress, kInstances> addresses_;
  std::array<MacAddress, kInstances> macs_;
  IpAddress service_;
  Buffers buffers_;
  dp::Burst burst_;
};

}  // namespace margay::bench
