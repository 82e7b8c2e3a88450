// SPDX-License-Identifier: Apache-2.0
#pragma once

// Link-layer addresses of next hops, and the packets that wait for one. Each worker has its own copy: who hears
// ARP or ND passes a copy of the packet to the other workers. Pinned entries stand for the site table's next hops
// (same index) and never go; the others are hosts on a port's network, found by address in a set of kWays, where
// the one used least lately gives way.
//
// Resolution: asked at once, then once a second; after kAttempts without an answer what waits is dropped. Pinned
// ones are asked for from the start and for ever, the others while packets come. A known address is confirmed
// again after kReachable and used meanwhile; without an answer to kAttempts it is forgotten (RFC 4861 §7.3). Waiting
// packets: at most kWaitingPerHop a next hop and kWaitingMax in all (RFC 1122 §2.3.2.2, RFC 4861 §7.2.2). One worker.

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "dataplane/core/arena.h"
#include "dataplane/core/packet.h"
#include "dataplane/core/site_table.h"

namespace margay::dp {

enum class NeighbourState : uint8_t { kUnused, kIdle, kAsking, kKnown, kStatic };
std::string_view name_of(NeighbourState s);

struct Neighbour {
  IpAddress address;
  MacAddress mac;
  PortIndex port = kNoPort;
  NeighbourState state = NeighbourState::kUnused;
  uint8_t attempts = 0;
  uint8_t waiting = 0;
  Tick confirmed = 0;  // last heard of
  Tick asked = 0;
  Tick used = 0;

  bool usable() const { return state >= NeighbourState::kKnown; }
};

class Neighbours {
 public:
  static constexpr size_t kWays = 8;
  static constexpr size_t kDynamicMax = 1024;  // a multiple of kWays
  static constexpr size_t kWaitingMax = 512;
  static constexpr uint8_t kWaitingPerHop = 32;
  static constexpr uint8_t kAttempts = 3;
  static constexpr Tick kRetry = 100;       // 1 s
  static constexpr Tick kReachable = 3000;  // 30 s

  // `seed` keeps a client from aiming at one set of the hosts' part.
  Neighbours(Arena& arena, size_t pinned_max, uint64_t seed);

  // Takes up the next hops of a table; cheap while their version is the same.
  void adopt(const SiteTable& table, Tick now);

  // An index for at(): a host on this port's network, made if need be. kNoIndex when all ways of its set wait.
  uint32_t on_link(PortIndex port, const IpAddress& address, Tick now);
  static uint32_t pinned(NextHopIndex next_hop) { return next_hop; }
  const Neighbour& at(uint32_t index) const { return entries_[index]; }
  size_t count() const { return entries_.size(); }  // unused ones included

  // Keeps a packet whose next hop is not usable (outcome held), or refuses it for want of room. The packet is
  // complete but for its destination MAC; `instance` is whom it is for, kNoIndex for a client.
  Outcome hold(uint32_t index, const Packet& packet, InstanceIndex instance, Tick now);
  // What an ARP or ND packet said. Only entries that exist are updated: nothing is learnt unasked. Without
  // `replace` a known address stays (RFC 4861 §7.2.5, override flag). REQUIRES: adopt(table) before.
  void learn(const SiteTable& table, PortIndex port, const IpAddress& address, const MacAddress& mac, Tick now,
             bool replace = true);
  // Fills the burst with held packets that may go (outcome transmit) or have waited in vain (drop).
  bool release(Burst& burst, const SiteTable& table, Tick now);

  // Whether this entry is to be asked for now; counts as asked when it says yes.
  bool ask(uint32_t index, Tick now);
  // Scans a bounded share of the entries; the next one to be asked for (already counted as asked), or kNoIndex
  // when this share is done.
  uint32_t next_question(Tick now);
  size_t held() const { return waiting_count_; }

 private:
  struct Waiting {
    Packet packet;
    uint32_t neighbour = kNoIndex;
    InstanceIndex instance = kNoIndex;
  };
  static constexpr uint32_t kScan = 256;  // entries a tick

  std::span<Neighbour> set_of(PortIndex port, const IpAddress& address) const;
  void learn(Neighbour& n, const MacAddress& mac, Tick now, bool replace);
  bool asks_for_ever(uint32_t index) const { return index < pinned_; }
  bool gave_up(const Neighbour& n) const { return !n.usable() && n.attempts > kAttempts; }

  std::span<Neighbour> entries_;  // pinned_max_ pinned ones, then kDynamicMax others
  std::span<Waiting> waiting_;
  size_t pinned_max_;
  size_t pinned_ = 0;
  uint64_t seed_;
  uint64_t adopted_ = 0;  // SiteLayout::version
  size_t waiting_count_ = 0;
  uint32_t cursor_ = 0, scanned_ = 0;
  Tick scan_tick_ = 0;
  bool news_ = false;  // something was learnt or given up since release()
};

}  // namespace margay::dp
