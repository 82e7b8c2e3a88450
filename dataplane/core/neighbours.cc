// SPDX-License-Identifier: Apache-2.0
#include "dataplane/core/neighbours.h"

#include <algorithm>
#include <cstring>

namespace margay::dp {

Neighbours::Neighbours(Arena& arena, size_t pinned_max, uint64_t seed)
    : entries_(arena.make<Neighbour>(pinned_max + kDynamicMax)),
      waiting_(arena.make<Waiting>(kWaitingMax)),
      pinned_max_(pinned_max),
      seed_(seed) {}

void Neighbours::adopt(const SiteTable& table, Tick now) {
  if (adopted_ == table.layout().version) return;
  adopted_ = table.layout().version;
  pinned_ = std::min(table.next_hops.size(), pinned_max_);
  for (size_t i = 0; i < pinned_; ++i) {
    const NextHop& hop = table.next_hops[i];
    Neighbour& n = entries_[i];
    if (hop.port == kNoPort) {  // not in use; packets that wait for it are dropped with their instance
      const uint8_t waiting = n.waiting;
      n = {};
      n.waiting = waiting;
      continue;
    }
    const bool same = n.state != NeighbourState::kUnused && n.address == hop.address && n.port == hop.port;
    if (same && (n.state == NeighbourState::kStatic) == !hop.mac.is_zero() && (hop.mac.is_zero() || n.mac == hop.mac)) {
      continue;
    }
    const uint8_t waiting = n.waiting;
    n = {};
    n.waiting = waiting;
    n.address = hop.address;
    n.mac = hop.mac;
    n.port = hop.port;
    n.state = hop.mac.is_zero() ? NeighbourState::kAsking : NeighbourState::kStatic;
    n.asked = now - kRetry;
    news_ = true;
  }
}

std::span<Neighbour> Neighbours::set_of(PortIndex port, const IpAddress& address) const {
  uint64_t h = (address.high() ^ seed_) * 0x9e3779b97f4a7c15u;
  h ^= address.low() ^ port;
  h = (h ^ h >> 32) * (seed_ | 1);
  const size_t set = (h >> 32) * (kDynamicMax / kWays) >> 32;  // by the top bits, which depend on all others
  return entries_.subspan(pinned_max_ + set * kWays, kWays);
}

uint32_t Neighbours::on_link(PortIndex port, const IpAddress& address, Tick now) {
  const std::span<Neighbour> set = set_of(port, address);
  Neighbour* oldest = nullptr;
  for (Neighbour& n : set) {
    if (n.state != NeighbourState::kUnused && n.port == port && n.address == address) {
      n.used = now;
      return static_cast<uint32_t>(&n - entries_.data());
    }
    if (n.waiting > 0) continue;
    if (n.state == NeighbourState::kUnused) {
      if (oldest == nullptr || oldest->state != NeighbourState::kUnused) oldest = &n;
    } else if (oldest == nullptr || (oldest->state != NeighbourState::kUnused && tick_after(oldest->used, n.used))) {
      oldest = &n;
    }
  }
  if (oldest == nullptr) return kNoIndex;
  *oldest = {};
  oldest->address = address;
  oldest->port = port;
  oldest->state = NeighbourState::kIdle;
  oldest->used = now;
  return static_cast<uint32_t>(oldest - entries_.data());
}

Outcome Neighbours::hold(uint32_t index, const Packet& packet, InstanceIndex instance, Tick now) {
  Neighbour& n = entries_[index];
  if (n.state == NeighbourState::kIdle) {
    n.state = NeighbourState::kAsking;
    n.attempts = 0;
    n.asked = now - kRetry;
  }
  if (gave_up(n)) return Outcome::drop(DropReason::kNeighbourUnresolved);
  if (n.waiting >= kWaitingPerHop || waiting_count_ == waiting_.size()) {
    return Outcome::drop(DropReason::kNeighbourQueueFull);
  }
  ++n.waiting;
  waiting_[waiting_count_++] = {packet, index, instance};
  return Outcome::held();
}

void Neighbours::learn(Neighbour& n, const MacAddress& mac, Tick now, bool replace) {
  if (n.state == NeighbourState::kUnused || n.state == NeighbourState::kStatic) return;
  if (n.state == NeighbourState::kKnown && !replace && n.mac != mac) return;
  n.mac = mac;
  n.state = NeighbourState::kKnown;
  n.attempts = 0;
  n.confirmed = now;
  news_ = news_ || n.waiting > 0;
}

void Neighbours::learn(const SiteTable& table, PortIndex port, const IpAddress& address, const MacAddress& mac,
                       Tick now, bool replace) {
  for (Neighbour& n : set_of(port, address)) {
    if (n.port == port && n.address == address) learn(n, mac, now, replace);
  }
  for (NextHopIndex h = table.find_next_hop(port, address); h != kNoIndex; h = table.next_hops[h].same_address) {
    if (h < pinned_) learn(entries_[h], mac, now, replace);
  }
}

bool Neighbours::release(Burst& burst, const SiteTable& table, Tick now) {
  burst.count = 0;
  if (!news_) return false;
  size_t kept = 0;
  bool more = false;
  for (size_t i = 0; i < waiting_count_; ++i) {
    Waiting& w = waiting_[i];
    Neighbour& n = entries_[w.neighbour];
    const bool ready = n.usable() || gave_up(n);
    if (!ready || burst.count == kBurstMax) {
      more = more || ready;
      waiting_[kept++] = w;
      continue;
    }
    --n.waiting;
    const uint32_t k = burst.count++;
    burst.packets[k] = w.packet;
    if (!n.usable()) {
      burst.outcomes[k] = Outcome::drop(DropReason::kNeighbourUnresolved);
    } else if (w.instance != kNoIndex && !table.instances[w.instance].keeps_sessions(now)) {
      burst.outcomes[k] = Outcome::drop(DropReason::kInstanceGone);
    } else {
      std::memcpy(burst.packets[k].data, n.mac.bytes.data(), n.mac.bytes.size());
      burst.outcomes[k] = Outcome::transmit(n.port);
    }
  }
  waiting_count_ = kept;
  news_ = more;
  return burst.count > 0;
}

bool Neighbours::ask(uint32_t index, Tick now) {
  Neighbour& n = entries_[index];
  if (static_cast<int32_t>(now - n.asked) < static_cast<int32_t>(kRetry)) return false;
  if (n.state == NeighbourState::kKnown) {
    const bool wanted = asks_for_ever(index) || !tick_after(now, n.used + kReachable);
    if (!wanted || static_cast<int32_t>(now - n.confirmed) < static_cast<int32_t>(kReachable)) return false;
    if (n.attempts >= kAttempts) {
      n.state = NeighbourState::kAsking;
      n.attempts = 0;
    }
  } else if (n.state != NeighbourState::kAsking) {
    return false;
  }
  n.attempts = static_cast<uint8_t>(std::min<int>(n.attempts + 1, kAttempts + 1));
  if (gave_up(n)) {  // the last question had its second too
    news_ = news_ || n.waiting > 0;
    if (!asks_for_ever(index)) {
      if (n.waiting == 0) n.state = NeighbourState::kIdle;
      return false;
    }
  }
  n.asked = now;
  return true;
}

uint32_t Neighbours::next_question(Tick now) {
  if (scan_tick_ != now) {
    scan_tick_ = now;
    scanned_ = 0;
  }
  const auto total = static_cast<uint32_t>(pinned_ + kDynamicMax);
  while (scanned_ < std::min(kScan, total)) {
    ++scanned_;
    cursor_ = cursor_ + 1 < total ? cursor_ + 1 : 0;
    const uint32_t index = cursor_ < pinned_ ? cursor_ : static_cast<uint32_t>(pinned_max_ + (cursor_ - pinned_));
    if (entries_[index].state != NeighbourState::kUnused && ask(index, now)) return index;
  }
  return kNoIndex;
}

}  // namespace margay::dp
