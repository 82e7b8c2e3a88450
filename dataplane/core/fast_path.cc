// SPDX-License-Identifier: Apache-2.0
#include "dataplane/core/fast_path.h"

#include <algorithm>
#include <cstring>

#include "dataplane/core/wire.h"

namespace margay::dp {

FastPath::FastPath(const FastPathConfig& config, SharedState& shared, Arena& arena, Nanoseconds now)
    : config_(config),
      shared_(shared),
      counters_(shared.worker_counters[config.self]),
      flows_(config.entries.empty() ? FlowTable(arena, config.flows) : FlowTable(arena, config.entries)),
      closed_(arena, flows_.entries(), to_tick(now)),
      transient_(arena, flows_.entries(), to_tick(now)),
      steady_(arena, flows_.entries(), to_tick(now)),
      neighbours_(arena, shared.instances_max + kGatewaysMax, config.secret.words[0]),
      selector_(arena, shared, config.self, config.workers, shared.instances_max),
      requests_(arena),
      resets_(config.resets),
      icmp_(config.icmp),
      ticked_(to_tick(now)),
      audited_(arena.make<uint32_t>(shared.instances_max)) {}

// The packet's story. Each stage runs over the whole burst, so that the memory latency of one packet hides behind
// the work on the others.
void FastPath::process(Burst& burst, const SiteTable& table, Nanoseconds now) {
  Context c{burst, table, now, to_tick(now)};
  neighbours_.adopt(table, c.tick);
  counters_.packets.add(burst.count);
  lane_count_ = miss_count_ = 0;
  for (uint32_t i = 0; i < burst.count; ++i) parsed_[i] = parse(burst.packets[i]);
  for (uint32_t i = 0; i < burst.count; ++i) classify(c, i);
  flows_.find_bulk({keys_.data(), lane_count_}, {hashes_.data(), lane_count_}, table.endpoint_of_instance,
                   {found_.data(), lane_count_});
  for (uint32_t lane = 0; lane < lane_count_; ++lane) {
    // An entry may have been ended by an earlier packet of this burst; none is allocated before the misses.
    const EntryIndex e = found_[lane];
    const bool bound = e != kNoIndex && flows_[e].state != FlowState::kFree && hit(c, lane, e);
    if (!bound) misses_[miss_count_++] = lane;
  }
  counters_.hits.add(lane_count_ - miss_count_);
  for (uint32_t m = 0; m < miss_count_; ++m) miss(c, misses_[m]);
  count_outcomes(c);
}

// Whose is it? Gives the packet an outcome, or a lane when it belongs to a flow.
void FastPath::classify(Context& c, uint32_t i) {
  const Parsed& p = parsed_[i];
  const Packet& packet = c.burst.packets[i];
  Outcome& outcome = c.burst.outcomes[i];
  traces_[i] = {};
  if (p.error != DropReason::kNone) {
    outcome = Outcome::drop(p.error);
    return;
  }
  const TablePort& port = c.table.ports[packet.port];
  const MacAddress destination = load_mac(packet.data);
  if ((packet.data[6] & 1) != 0) {  // nobody sends from a group
    outcome = Outcome::drop(DropReason::kBadAddress);
    return;
  }
  if (destination != port.mac && !destination.is_group()) {
    outcome = Outcome::drop(DropReason::kNotOurMac);
    return;
  }
  if (p.vlan != port.vlan) {
    outcome = Outcome::drop(DropReason::kVlanMismatch);
    return;
  }
  if (p.layer == Layer::kOther) return to_kernel(c, i, DropReason::kUnknownEthertype);
  if (p.layer == Layer::kArp) return arp(c, i);
  if (p.layer == Layer::kTcp || p.layer == Layer::kUdp) {
    const auto protocol = static_cast<Protocol>(p.protocol);
    const FrontendIndex frontend = c.table.find_frontend(p.destination, p.destination_port, protocol);
    if (frontend != kNoIndex) return add_lane(c, i, Direction::kFromClient, frontend);
    const EndpointIndex endpoint = c.table.find_endpoint(p.source, p.source_port, protocol);
    if (endpoint != kNoIndex && c.table.local(p.destination) == LocalKind::kNone) {
      return add_lane(c, i, Direction::kFromInstance, endpoint);
    }
  }
  local_packet(c, i, c.table.local(p.destination));
}

// Admission of either side, then the owner: its own flows get a lane, the others go over.
void FastPath::add_lane(Context& c, uint32_t i, Direction direction, uint32_t service) {
  const Parsed& p = parsed_[i];
  const Packet& packet = c.burst.packets[i];
  const bool from_client = direction == Direction::kFromClient;
  if (load_mac(packet.data).is_group()) {  // RFC 1812 §5.3.4, RFC 1122 §3.2.2: neither forwarded nor refused
    c.burst.outcomes[i] = Outcome::drop(DropReason::kNotOurMac);
    return;
  }
  if (!c.table.forwarding) {
    c.burst.outcomes[i] = Outcome::drop(DropReason::kStopped);
    return;
  }
  if (from_client && !c.table.authorised(packet.port, load_mac(packet.data + 6), p.vlan)) {
    c.burst.outcomes[i] = Outcome::drop(DropReason::kUnauthorisedForwarder);
    return;
  }
  if (p.ttl <= 1) {  // before it can change a binding that it never reaches
    c.burst.outcomes[i] = Outcome::drop(DropReason::kTtlExceeded);
    return;
  }
  FlowKey key{from_client ? p.source : p.destination, from_client ? p.source_port : p.destination_port,
              static_cast<Protocol>(p.protocol), direction, service};
  const uint64_t client_hash = hash_client(config_.secret, key.client, key.client_port, key.protocol);
  const WorkerIndex owner = owner_of(client_hash, config_.workers);
  if (owner != config_.self) {
    c.burst.outcomes[i] = Outcome::hand_over(owner);
    if (!from_client) counters_.replies_handed_over.add();
    return;
  }
  traces_[i].direction = direction;
  if (from_client) traces_[i].sci = c.table.frontends[service].sci;
  lanes_[lane_count_] = {i, service, client_hash};
  keys_[lane_count_] = key;
  hashes_[lane_count_] = hash_key(config_.secret, client_hash, direction, service);
  ++lane_count_;
}

// A packet of a bound flow (SCI-73, SCI-84). False: the binding is ended, and the packet begins another.
bool FastPath::hit(Context& c, uint32_t lane, EntryIndex e) {
  const uint32_t i = lanes_[lane].packet;
  FlowEntry& entry = flows_[e];
  const Instance& instance = c.table.instances[entry.instance];
  PacketTrace& trace = traces_[i];
  const bool from_client = keys_[lane].direction == Direction::kFromClient;
  if (from_client && is_tcp(entry.state) && starts_anew(entry, parsed_[i])) [[unlikely]] {
    end_binding(e, EndReason::kReplaced, c.table);
    return false;
  }
  if (!instance.keeps_sessions(c.tick) || instance.generation != entry.instance_generation) [[unlikely]] {
    return lost_instance(c, lane, e);
  }
  if (!from_client && c.table.next_hops[instance.next_hop].port != c.burst.packets[i].port) [[unlikely]] {
    c.burst.outcomes[i] = Outcome::drop(DropReason::kInstanceWrongPort);
    return true;
  }
  trace.entry = e;
  trace.instance = entry.instance;
  trace.sci = instance.sci;
  trace.state_before = entry.state;
  track(c, i, e, keys_[lane].direction);
  trace.state_after = entry.state;
  if (from_client) {
    to_instance(c, lane, e);
  } else {
    to_client(c, i, e, lanes_[lane].client_hash);
  }
  return true;
}

// State and timers of the binding.
void FastPath::track(Context& c, uint32_t i, EntryIndex e, Direction direction) {
  FlowEntry& entry = flows_[e];
  const bool two_way = (entry.flags & kTwoKeys) != 0;
  if (!is_tcp(entry.state)) {
    entry.last_seen = c.tick;
    if (two_way && parsed_[i].l4_payload > 0) time_response(c, e, direction);
    // The instance's answer; in one-way modes, where none is seen, the client's second packet.
    const bool replied = direction == Direction::kFromInstance || !two_way;
    if (replied && entry.state == FlowState::kUdpUnreplied) {
      set_state(e, FlowState::kUdpReplied, c.table.scis[traces_[i].sci]);
    }
    return;
  }
  const uint32_t& next = direction == Direction::kFromClient ? entry.client_next : entry.instance_next;
  const uint32_t next_before = next;
  const TcpChange change = track_tcp(entry, parsed_[i], direction, two_way);
  if (change.refreshed) entry.last_seen = c.tick;
  if (change.proven && (entry.flags & kHoldsProvisional) != 0) release_provisional(e);
  // New data alone: what is repeated neither begins a request nor a response.
  if (two_way && parsed_[i].l4_payload > 0 && next != next_before) time_response(c, e, direction);
  if (change.next == entry.state) return;
  change_state(c, i, e, direction, change.next, next_before);
}

// What a change of a TCP connection's state means for its slot and the counters; not on the way of an ordinary hit.
// `next_before` is the sender's sequence number before this packet; of an instance that answers a SYN, when that came.
void FastPath::change_state(Context& c, uint32_t i, EntryIndex e, Direction direction, FlowState next,
                            uint32_t next_before) {
  FlowEntry& entry = flows_[e];
  if (entry.state == FlowState::kSynSent && next == FlowState::kSynReceived) {
    const uint32_t took = to_microseconds(c.now) - next_before;
    shared_.times(config_.self, entry.instance).handshakes.add(Nanoseconds{took} * 1000);
  } else if (entry.state == FlowState::kSynSent) {
    entry.instance_next = 0;
  }
  if (next == FlowState::kTimeWait && (entry.flags & kHoldsSlot) != 0) {
    release_slot(e, EndReason::kFin);
    traces_[i].slot_change = -1;
  }
  if (next == FlowState::kResetGrace && direction == Direction::kFromInstance) {
    shared_.counters(config_.self, entry.instance).resets.add();
  }
  set_state(e, next, c.table.scis[traces_[i].sci]);
}

// The client's data starts the watch, again and again; the instance's first data stops it.
void FastPath::time_response(Context& c, EntryIndex e, Direction direction) {
  const uint32_t now = to_microseconds(c.now);
  if (direction == Direction::kFromClient) {
    requests_.start(e, now);
  } else if (const auto took = requests_.stop(e, now)) {
    shared_.add_response(config_.self, flows_[e].instance, *took, c.tick);
  }
}

// Rewrites a client's packet and sends it to the bound instance.
void FastPath::to_instance(Context& c, uint32_t lane, EntryIndex e) {
  const uint32_t i = lanes_[lane].packet;
  const FlowEntry& entry = flows_[e];
  const Instance& instance = c.table.instances[entry.instance];
  Parsed& p = parsed_[i];
  Packet& packet = c.burst.packets[i];
  const uint16_t mtu = c.table.mtu_to(instance);
  if (p.ip_length > mtu) [[unlikely]]
    return too_big(c, i, mtu);
  InstanceCounters& counters = shared_.counters(config_.self, entry.instance);
  counters.packets_in.add();
  counters.bytes_in.add(packet.length);
  if ((p.tcp_flags & kSyn) != 0) [[unlikely]]
    clamp_mss(c, i, instance);
  if ((entry.flags & kTwoKeys) != 0) {
    translate(packet, p, End::kDestination, instance.address, instance.port);
  } else if (instance.bytes_added == 0) {
    decrement_ttl(packet, p);
  } else if (packet.headroom >= instance.bytes_added) {
    decrement_ttl(packet, p);
    encapsulate(packet, p, instance.tunnel, instance.address, hashes_[lane]);
  } else {
    c.burst.outcomes[i] = Outcome::drop(DropReason::kNoHeadroom);
    return;
  }
  send_to(c, i, Neighbours::pinned(instance.next_hop), entry.instance);
}

// Puts the SCI's own address back and sends an instance's packet to the client (SCI-18, SCI-127).
void FastPath::to_client(Context& c, uint32_t i, EntryIndex e, uint64_t client_hash) {
  const FlowEntry& entry = flows_[e];
  Packet& packet = c.burst.packets[i];
  const uint32_t neighbour = neighbour_of_client(c.table, entry.client, client_hash, c.tick, c.burst.outcomes[i]);
  if (neighbour == kNoIndex) return;
  if (parsed_[i].ip_length > c.table.ports[neighbours_.at(neighbour).port].mtu) {
    c.burst.outcomes[i] = Outcome::drop(DropReason::kTooBig);
    return;
  }
  InstanceCounters& counters = shared_.counters(config_.self, entry.instance);
  counters.packets_out.add();
  counters.bytes_out.add(packet.length);
  if ((parsed_[i].tcp_flags & kSyn) != 0) [[unlikely]]
    clamp_mss(c, i, c.table.instances[entry.instance]);
  const Endpoint& shown = c.table.frontends[entry.frontend].endpoint;
  translate(packet, parsed_[i], End::kSource, shown.address, to_wire16(shown.port));
  send_to(c, i, neighbour, kNoIndex);
}

// The next hop towards a client: itself on a port's network, else a gateway of its family, the same one for a
// client as long as it answers. kNoIndex: the outcome says why.
uint32_t FastPath::neighbour_of_client(const SiteTable& table, const IpAddress& client, uint64_t client_hash, Tick now,
                                       Outcome& outcome) {
  const PortIndex port = table.on_link(client);
  if (port != kNoPort) {
    const uint32_t n = neighbours_.on_link(port, client, now);
    if (n == kNoIndex) outcome = Outcome::drop(DropReason::kNeighbourTableFull);
    return n;
  }
  const auto& gateways = client.is_v4() ? table.layout().gateways_v4 : table.layout().gateways_v6;
  if (gateways.empty()) {
    outcome = Outcome::drop(DropReason::kNoRoute);
    return kNoIndex;
  }
  const size_t first = (client_hash >> 32) * gateways.size() >> 32;
  for (size_t k = 0; k < gateways.size(); ++k) {
    const size_t at = first + k < gateways.size() ? first + k : first + k - gateways.size();
    if (neighbours_.at(Neighbours::pinned(gateways[at])).usable()) return Neighbours::pinned(gateways[at]);
  }
  return Neighbours::pinned(gateways[first]);
}

// Of a SYN, or of the answer to one: no end is to send segments that do not get through between client and instance.
[[gnu::cold, gnu::noinline]] void FastPath::clamp_mss(Context& c, uint32_t i, const Instance& instance) {
  uint16_t limit = c.table.scis[instance.sci].mss_clamp;
  if (limit == kMssAsItIs) return;
  const Parsed& p = parsed_[i];
  if (limit == kMssByMtu) {
    const uint16_t headers = (p.is_v4 ? kIpv4Bytes : kIpv6Bytes) + kTcpBytes;
    limit = static_cast<uint16_t>(std::max<int>(c.table.mtu_to(instance) - headers, 1));
  }
  limit_mss(c.burst.packets[i], p, limit);
}

void FastPath::send_to(Context& c, uint32_t i, uint32_t neighbour, InstanceIndex instance) {
  const Neighbour& n = neighbours_.at(neighbour);
  Packet& packet = c.burst.packets[i];
  Outcome& outcome = c.burst.outcomes[i];
  if (!set_link_layer(packet, parsed_[i], n.mac, c.table.ports[n.port])) {
    outcome = Outcome::drop(DropReason::kNoHeadroom);
  } else if (n.usable()) {
    outcome = Outcome::transmit(n.port);
  } else {
    outcome = neighbours_.hold(neighbour, packet, instance, c.tick);
    if (neighbours_.ask(neighbour, c.tick)) ask(c.table, neighbour);
  }
}

void FastPath::to_kernel(Context& c, uint32_t i, DropReason without_kernel) {
  Packet& packet = c.burst.packets[i];
  const TablePort& port = c.table.ports[packet.port];
  if (!port.has_kernel) {
    c.burst.outcomes[i] = Outcome::drop(without_kernel);
    return;
  }
  if (parsed_[i].tagged) {  // the kernel's interface stands behind the tag
    std::array<uint8_t, 12> macs;
    std::memcpy(macs.data(), packet.data, macs.size());
    packet.trim_front(kVlanBytes);
    std::memcpy(packet.data, macs.data(), macs.size());
  }
  c.burst.outcomes[i] = Outcome::kernel(packet.port);
}

void FastPath::process_from_kernel(Burst& burst, PortIndex port, const SiteTable& table) {
  counters_.packets.add(burst.count);
  const uint16_t vlan = table.ports[port].vlan;
  for (uint32_t i = 0; i < burst.count; ++i) {
    Packet& packet = burst.packets[i];
    burst.outcomes[i] = Outcome::transmit(port);
    if (packet.length < kEthernetBytes) {
      burst.outcomes[i] = Outcome::drop(DropReason::kTooShort);
    } else if (vlan != 0 && packet.headroom < kVlanBytes) {
      burst.outcomes[i] = Outcome::drop(DropReason::kNoHeadroom);
    } else if (vlan != 0) {
      packet.prepend(kVlanBytes);
      std::memmove(packet.data, packet.data + kVlanBytes, 12);
      store16(packet.data + 12, to_wire16(kEtherVlan));
      store16(packet.data + 14, to_wire16(vlan));
    }
    if (burst.outcomes[i].verdict == Verdict::kDrop) counters_.drop(burst.outcomes[i].reason);
  }
}

void FastPath::count_outcomes(Context& c) {
  for (uint32_t i = 0; i < c.burst.count; ++i) {
    switch (c.burst.outcomes[i].verdict) {
      case Verdict::kTransmit:
      case Verdict::kKernel:
      case Verdict::kHandOver:
        break;
      case Verdict::kHeld:
        counters_.held.add();
        break;
      case Verdict::kConsumed:
        counters_.consumed.add();
        break;
      case Verdict::kDrop:
        counters_.drop(c.burst.outcomes[i].reason);
        break;
    }
  }
}

bool FastPath::release_held(Burst& burst, const SiteTable& table, Nanoseconds now) {
  if (!neighbours_.release(burst, table, to_tick(now))) return false;
  counters_.released.add(burst.count);
  for (uint32_t i = 0; i < burst.count; ++i) {
    if (burst.outcomes[i].verdict == Verdict::kDrop) counters_.drop(burst.outcomes[i].reason);
  }
  return true;
}

bool FastPath::tick(const SiteTable& table, Nanoseconds now, uint32_t limit) {
  const Tick tick = to_tick(now);
  const bool more = expire(table, tick, limit);
  if (tick == ticked_) return more;
  ticked_ = tick;
  neighbours_.adopt(table, tick);
  for (uint32_t n = neighbours_.next_question(tick); n != kNoIndex; n = neighbours_.next_question(tick)) {
    ask(table, n);
  }
  announce_some(table, tick);
  audit(table, tick);
  return more;
}

}  // namespace margay::dp
