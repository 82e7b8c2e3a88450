// SPDX-License-Identifier: Apache-2.0
// A flow's first packet: select an instance, take a slot, bind (SCI-76, SCI-86, SCI-90), or refuse (SCI-79).
#include <algorithm>

#include "dataplane/core/fast_path.h"

namespace margay::dp {

[[gnu::cold, gnu::noinline]] void FastPath::miss(Context& c, uint32_t lane) {
  const uint32_t i = lanes_[lane].packet;
  // An earlier packet of this burst may have begun the flow.
  const EntryIndex e = flows_.find(keys_[lane], hashes_[lane], c.table.endpoint_of_instance);
  if (e != kNoIndex && hit(c, lane, e)) {
    counters_.hits.add();
    return;
  }
  counters_.misses.add();
  const Parsed& p = parsed_[i];
  if (keys_[lane].direction == Direction::kFromInstance) {
    c.burst.outcomes[i] = Outcome::drop(DropReason::kStrayFromInstance);
  } else if (p.layer == Layer::kTcp && (p.tcp_flags & (kSyn | kAck | kRst)) != kSyn) {
    unknown_flow(c, lane);
  } else {
    new_flow(c, lane);
  }
}

// TCP in mid-flow without a binding: after a restart, an eviction, or a move of the forwarder's hash.
void FastPath::unknown_flow(Context& c, uint32_t lane) {
  const uint32_t i = lanes_[lane].packet;
  Outcome& outcome = c.burst.outcomes[i];
  const bool answerable = (parsed_[i].tcp_flags & kRst) == 0;  // RFC 9293 §3.10.7.1: no RST for a RST
  switch (c.table.scis[traces_[i].sci].unknown_flow) {
    case UnknownFlow::kAdopt:
      if (!answerable || (parsed_[i].tcp_flags & (kSyn | kFin)) != 0) break;
      if (resets_.take(c.now)) return new_flow(c, lane);
      outcome = Outcome::drop(DropReason::kUnknownFlowRateLimited);
      return;
    case UnknownFlow::kReset:
      if (!answerable) break;
      if (!resets_.take(c.now)) {
        outcome = Outcome::drop(DropReason::kUnknownFlowRateLimited);
        return;
      }
      return reset(c, i, Refusal::kUnknownFlow);
    case UnknownFlow::kDrop:
      break;
  }
  outcome = Outcome::drop(DropReason::kUnknownFlow);
}

// Two outcomes that must not be mixed up (D-46): no instance may take flows, or all of them are full.
void FastPath::new_flow(Context& c, uint32_t lane) {
  const uint32_t i = lanes_[lane].packet;
  const Sci& sci = c.table.scis[traces_[i].sci];
  Attempt attempt;
  Refusal why = select_and_bind(c, lane, HealthState::kHealthy, attempt);
  if (!attempt.candidates && sci.when_none_healthy == WhenNoneHealthy::kDegraded) {
    why = select_and_bind(c, lane, HealthState::kDegraded, attempt);
  }
  if (traces_[i].new_binding) return to_instance(c, lane, traces_[i].entry);
  if (!attempt.candidates) why = c.table.waiting ? Refusal::kNoSnapshot : Refusal::kNoHealthyInstance;
  if (why == Refusal::kNone) {
    too_big(c, i, attempt.mtu);
  } else {
    reject(c, i, why);
  }
}

// Offers the flow to the candidates, best first, until one takes it. kNone: bound, or too long for every one.
Refusal FastPath::select_and_bind(Context& c, uint32_t lane, HealthState wanted, Attempt& attempt) {
  const uint32_t i = lanes_[lane].packet;
  const SciIndex sci = traces_[i].sci;
  attempt.candidates = selector_.begin(c.table, sci, wanted, c.tick, keys_[lane]);
  // Only a TCP flow that begins with a SYN and whose replies are seen can prove itself (D-45).
  const bool provisional =
      parsed_[i].layer == Layer::kTcp && c.table.scis[sci].mode == Mode::kNat && (parsed_[i].tcp_flags & kSyn) != 0;
  Refusal why = Refusal::kNone;
  for (InstanceIndex k = selector_.next(); k != kNoIndex; k = selector_.next()) {
    uint8_t flags = 0;
    if (const uint16_t mtu = c.table.mtu_to(c.table.instances[k]); parsed_[i].ip_length > mtu) {
      attempt.mtu = std::max(attempt.mtu, mtu);
      continue;
    }
    Refusal its = charge(c.table, k, flags, provisional);
    if (its == Refusal::kNone) {
      its = bind(c, lane, k, flags);
      if (its == Refusal::kNone) {
        selector_.chosen(k);
        return its;
      }
      uncharge(k, flags);
      if (its == Refusal::kFlowTableFull) return its;
    }
    shared_.counters(config_.self, k).pass_over(its);
    why = std::max(why, its);
  }
  return why;
}

Refusal FastPath::charge(const SiteTable& table, InstanceIndex i, uint8_t& flags, bool provisional) {
  const uint16_t generation = table.instances[i].generation;
  shared_.serve(config_.self, i, generation);
  if (!shared_.slots.take(i, generation, config_.self)) return Refusal::kNoFreeSlot;
  flags = kHoldsSlot;
  if (!provisional) return Refusal::kNone;
  if (shared_.provisional.take(i, generation, config_.self)) {
    flags |= kHoldsProvisional;
    return Refusal::kNone;
  }
  shared_.slots.put(i, config_.self);
  return Refusal::kProvisionalSpent;
}

void FastPath::uncharge(InstanceIndex i, uint8_t flags) {
  shared_.slots.put(i, config_.self);
  if ((flags & kHoldsProvisional) != 0) shared_.provisional.put(i, config_.self);
}

// Makes the entry and puts its keys in, both or none. kNone: bound.
Refusal FastPath::bind(Context& c, uint32_t lane, InstanceIndex i, uint8_t flags) {
  const uint32_t packet = lanes_[lane].packet;
  const FlowKey& key = keys_[lane];
  const Instance& instance = c.table.instances[i];
  const bool two_way = instance.endpoint != kNoIndex;
  FlowKey reply = key;
  reply.direction = Direction::kFromInstance;
  reply.service = instance.endpoint;
  const uint64_t reply_hash =
      two_way ? hash_key(config_.secret, lanes_[lane].client_hash, reply.direction, reply.service) : 0;
  if (two_way && flows_.find(reply, reply_hash, c.table.endpoint_of_instance) != kNoIndex) {
    return Refusal::kEndpointConflict;
  }
  const EntryIndex e = allocate(c.table);
  if (e == kNoIndex) return Refusal::kFlowTableFull;
  FlowEntry& entry = flows_[e];
  entry = {};
  entry.client = key.client;
  entry.client_port = key.client_port;
  entry.protocol = key.protocol;
  entry.frontend = key.service;
  entry.instance = i;
  entry.instance_generation = instance.generation;
  entry.flags = static_cast<uint8_t>(flags | (two_way ? kTwoKeys : 0));
  if (!insert_keys(e, hashes_[lane], reply_hash)) return Refusal::kFlowTableFull;
  begin_binding(c, packet, e);
  return Refusal::kNone;
}

// Both or none; then the entry is free again.
bool FastPath::insert_keys(EntryIndex e, uint64_t hash, uint64_t reply_hash) {
  const bool two_way = (flows_[e].flags & kTwoKeys) != 0;
  const bool inserted = flows_.insert(e, Direction::kFromClient, hash);
  if (inserted && (!two_way || flows_.insert(e, Direction::kFromInstance, reply_hash))) return true;
  if (inserted) flows_.erase(e, Direction::kFromClient, hash);
  flows_.release(e);
  counters_.flow_insert_failed.add();
  return false;
}

void FastPath::begin_binding(Context& c, uint32_t packet, EntryIndex e) {
  FlowEntry& entry = flows_[e];
  const Parsed& p = parsed_[packet];
  if (p.layer == Layer::kUdp) {
    entry.state = FlowState::kUdpUnreplied;
  } else if ((p.tcp_flags & kSyn) != 0) {
    begin_tcp(entry, p);
    if ((entry.flags & kTwoKeys) != 0) entry.instance_next = to_microseconds(c.now);
  } else {
    adopt_tcp(entry, p);
    entry.flags |= kAdopted;
  }
  entry.last_seen = c.tick;
  make_whole(entry);
  const bool asks = (entry.flags & kTwoKeys) != 0 && p.l4_payload > 0 && entry.state != FlowState::kSynSent;
  asks ? requests_.start(e, to_microseconds(c.now)) : requests_.forget(e);
  const Sci& sci = c.table.scis[c.table.instances[entry.instance].sci];
  wheel_of(entry.state).insert(e, entry.last_seen + timeout(entry, sci));
  InstanceCounters& counters = shared_.counters(config_.self, entry.instance);
  counters.active.add();
  counters.opened.add();
  counters.bindings.add();
  if ((entry.flags & kHoldsProvisional) != 0) counters.provisional.add();
  audit_adjust(e, entry.instance, +1);
  PacketTrace& trace = traces_[packet];
  trace.new_binding = true;
  trace.slot_change = +1;
  trace.entry = e;
  trace.instance = entry.instance;
  trace.state_after = entry.state;
}

// Never silence (SCI-80): a reset, or ICMP port unreachable.
void FastPath::reject(Context& c, uint32_t i, Refusal why) {
  parsed_[i].layer == Layer::kTcp ? reset(c, i, why) : answer_with(c, i, kPortUnreachable, why);
}

// To a packet without DF too: we make no fragments, and its sender can.
[[gnu::cold, gnu::noinline]] void FastPath::too_big(Context& c, uint32_t i, uint16_t mtu) {
  answer_with(c, i, packet_too_big(mtu), Refusal::kTooBig);
}

void FastPath::answer_with(Context& c, uint32_t i, IcmpError error, Refusal why) {
  Packet& packet = c.burst.packets[i];
  if (!icmp_.take(c.now)) {
    c.burst.outcomes[i] = Outcome::drop(DropReason::kRejectRateLimited);
  } else if (!turn_into_icmp_error(packet, parsed_[i], c.table.ports[packet.port], error)) {
    c.burst.outcomes[i] = Outcome::drop(DropReason::kNoHeadroom);
  } else {
    answered(c, i, why);
  }
}

void FastPath::reset(Context& c, uint32_t i, Refusal why) {
  Packet& packet = c.burst.packets[i];
  turn_into_reset(packet, parsed_[i], c.table.ports[packet.port]);
  answered(c, i, why);
}

// The packet is the answer now.
void FastPath::answered(Context& c, uint32_t i, Refusal why) {
  shared_.refuse(config_.self, traces_[i].sci, why);
  traces_[i].refused = why;
  c.burst.outcomes[i] = Outcome::transmit(c.burst.packets[i].port);
}

}  // namespace margay::dp
