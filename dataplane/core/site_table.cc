// SPDX-License-Identifier: Apache-2.0
#include "dataplane/core/site_table.h"

#include <algorithm>

#include "common/check.h"

namespace margay::dp {
namespace {

uint64_t mix(const IpAddress& address, uint16_t port, Protocol protocol, uint8_t kind) {
  const uint64_t rest = uint64_t{port} << 16 | uint64_t{static_cast<uint8_t>(protocol)} << 8 | kind;
  uint64_t h = (address.high() * 0x9e3779b97f4a7c15u) ^ (address.low() + rest * 0xd6e8feb86659fd93u);
  h = (h ^ h >> 32) * 0xff51afd7ed558ccdu;
  return h >> 32;  // the bits that depend on all others
}

}  // namespace

std::string_view word_of(Admin v) {
  switch (v) {
    case Admin::kEnabled:
      return "enabled";
    case Admin::kDraining:
      return "draining";
    case Admin::kDisabled:
      return "disabled";
  }
  return "?";
}

size_t SiteTable::probe(const IpAddress& address, uint16_t port, Protocol protocol, SlotKind kind) const {
  const size_t mask = slots_.size() - 1;
  size_t at = mix(address, port, protocol, static_cast<uint8_t>(kind)) & mask;
  for (;; at = (at + 1) & mask) {
    const Slot& s = slots_[at];
    if (s.kind == SlotKind::kFree) return at;
    if (s.kind == kind && s.port == port && s.protocol == protocol && s.address == address) return at;
  }
}

bool SiteTable::add(const IpAddress& address, uint16_t port, Protocol protocol, SlotKind kind, uint32_t index) {
  Slot& s = slots_[probe(address, port, protocol, kind)];
  if (s.kind != SlotKind::kFree) return false;
  s = {address, port, protocol, kind, index};
  return true;
}

void SiteTable::size_slots(size_t keys) { slots_.assign(std::bit_ceil(std::max<size_t>(16, keys * 4)), Slot{}); }

FrontendIndex SiteTable::find_frontend(const IpAddress& address, uint16_t port_wire, Protocol protocol) const {
  return slots_[probe(address, port_wire, protocol, SlotKind::kFrontend)].index;
}

EndpointIndex SiteTable::find_endpoint(const IpAddress& address, uint16_t port_wire, Protocol protocol) const {
  return slots_[probe(address, port_wire, protocol, SlotKind::kEndpoint)].index;
}

NextHopIndex SiteTable::find_next_hop(PortIndex port, const IpAddress& address) const {
  return slots_[probe(address, port, Protocol{}, SlotKind::kNextHop)].index;
}

LocalKind SiteTable::local(const IpAddress& address) const {
  if (slots_[probe(address, 0, Protocol{}, SlotKind::kPortAddress)].kind != SlotKind::kFree) return LocalKind::kPort;
  if (slots_[probe(address, 0, Protocol{}, SlotKind::kSciAddress)].kind != SlotKind::kFree) return LocalKind::kSci;
  return LocalKind::kNone;
}

bool SiteTable::answers_for(PortIndex port, const IpAddress& address) const {
  for (const SlotKind kind : {SlotKind::kPortAddress, SlotKind::kSciAddress}) {
    const Slot& s = slots_[probe(address, 0, Protocol{}, kind)];
    if (s.kind != SlotKind::kFree && (s.index == port || s.index == kNoIndex)) return true;
  }
  return false;
}

bool SiteTable::authorised(PortIndex port, const MacAddress& source, uint16_t vlan) const {
  return std::any_of(forwarders.begin(), forwarders.end(), [&](const ForwarderConfig& f) {
    return f.any ||
           ((f.port == kNoPort || f.port == port) && (!f.mac || *f.mac == source) && (!f.vlan || *f.vlan == vlan));
  });
}

SciIndex SiteTable::sci_by_name(std::string_view csci_id) const {
  for (size_t i = 0; i < scis.size(); ++i) {
    if (scis[i].csci_id == csci_id) return static_cast<SciIndex>(i);
  }
  return kNoIndex;
}

InstanceIndex SiteTable::instance_by_name(std::string_view csci_id, std::string_view si_id) const {
  const SciIndex sci = sci_by_name(csci_id);
  if (sci == kNoIndex) return kNoIndex;
  for (const InstanceIndex i : scis[sci].instances) {
    if (instances[i].si_id == si_id) return i;
  }
  return kNoIndex;
}

std::unique_ptr<SiteTable> SiteTable::build(const SiteConfig& config, std::span<const MacAddress> port_macs) {
  std::unique_ptr<SiteTable> table(new SiteTable);
  size_t keys = 0;
  for (const PortConfig& p : config.ports) keys += p.addresses.size() + p.gateways.size();
  for (const SciConfig& s : config.scis) keys += s.endpoints.size() * 2 + s.instances.size() * (s.endpoints.size() + 1);
  table->size_slots(keys);
  table->forwarders = config.forwarders;
  table->add_ports(config, port_macs);
  table->add_gateways(config);
  for (const SciConfig& sci : config.scis) table->add_sci(config, sci);
  return table;
}

void SiteTable::add_ports(const SiteConfig& config, std::span<const MacAddress> macs) {
  for (size_t p = 0; p < config.ports.size(); ++p) {
    const PortConfig& from = config.ports[p];
    ports.push_back({macs[p], from.vlan, from.mtu, !from.kernel.empty(), from.addresses});
    for (const Prefix& prefix : from.addresses) {
      add(prefix.address, 0, Protocol{}, SlotKind::kPortAddress, static_cast<uint32_t>(p));
      announced.emplace_back(static_cast<PortIndex>(p), prefix.address);
    }
  }
}

NextHopIndex SiteTable::add_next_hop(const SiteConfig& config, PortIndex port, const IpAddress& address,
                                     const std::optional<MacAddress>& mac) {
  MacAddress known = mac.value_or(MacAddress{});
  for (const auto& [neighbour, neighbour_mac] : config.ports[port].neighbours) {
    if (!mac && neighbour == address) known = neighbour_mac;
  }
  Slot& slot = slots_[probe(address, port, Protocol{}, SlotKind::kNextHop)];
  for (NextHopIndex n = slot.index; n != kNoIndex; n = next_hops[n].same_address) {
    if (next_hops[n].mac == known) return n;
  }
  next_hops.push_back({port, address, known, slot.index});
  slot = {address, port, Protocol{}, SlotKind::kNextHop, static_cast<NextHopIndex>(next_hops.size() - 1)};
  return slot.index;
}

void SiteTable::add_gateways(const SiteConfig& config) {
  for (size_t p = 0; p < config.ports.size(); ++p) {
    for (const IpAddress& gateway : config.ports[p].gateways) {
      auto& gateways = gateway.is_v4() ? gateways_v4 : gateways_v6;
      gateways.push_back(add_next_hop(config, static_cast<PortIndex>(p), gateway, {}));
    }
  }
}

void SiteTable::add_sci(const SiteConfig& config, const SciConfig& from) {
  Sci sci;
  sci.mode = from.mode;
  sci.balance = from.balance;
  sci.unknown_flow = from.unknown_flow;
  sci.when_none_healthy = from.when_none_healthy;
  sci.established = ticks_of(from.affinity_timeout);
  sci.embryonic = ticks_of(from.timers.embryonic);
  sci.closing = ticks_of(from.timers.closing);
  sci.time_wait = ticks_of(from.timers.time_wait);
  sci.reset_grace = ticks_of(from.timers.reset_grace);
  sci.unreplied = ticks_of(from.timers.unreplied);
  sci.provisional_share = from.provisional_share;
  sci.csci_id = from.csci_id;
  sci.cs_id = from.cs_id;
  const auto index = static_cast<SciIndex>(scis.size());
  for (const Endpoint& e : from.endpoints) {
    const auto frontend = static_cast<FrontendIndex>(frontends.size());
    add(e.address, to_wire16(e.port), e.protocol, SlotKind::kFrontend, frontend);
    frontends.push_back({e, index});
    sci.frontends.push_back(frontend);
    const PortIndex port = on_link(e.address);
    if (!add(e.address, 0, Protocol{}, SlotKind::kSciAddress, port == kNoPort ? kNoIndex : port)) continue;
    if (local(e.address) == LocalKind::kPort) continue;  // announced as the port's own
    for (size_t p = 0; p < ports.size(); ++p) {
      if (port == kNoPort || port == p) announced.emplace_back(static_cast<PortIndex>(p), e.address);
    }
  }
  scis.push_back(std::move(sci));
  for (const InstanceConfig& i : from.instances) add_instance(config, from, i);
}

void SiteTable::add_instance(const SiteConfig& config, const SciConfig& sci, const InstanceConfig& from) {
  Instance instance;
  instance.sci = static_cast<SciIndex>(scis.size() - 1);
  instance.address = from.address;
  instance.port = to_wire16(from.port);
  instance.weight = from.weight;
  instance.max_sessions = from.max_sessions;
  instance.si_id = from.id;
  const PortIndex port = on_link(from.address);
  const auto& gateways = from.address.is_v4() ? gateways_v4 : gateways_v6;
  MARGAY_CHECK(port != kNoPort || !gateways.empty());
  instance.next_hop = port != kNoPort ? add_next_hop(config, port, from.address, from.mac) : gateways.front();
  if (sci.mode == Mode::kNat) {
    const Endpoint endpoint{from.address, from.port, sci.endpoints.front().protocol};
    Slot& s = slots_[probe(endpoint.address, instance.port, endpoint.protocol, SlotKind::kEndpoint)];
    if (s.kind == SlotKind::kFree) {
      add(endpoint.address, instance.port, endpoint.protocol, SlotKind::kEndpoint,
          static_cast<uint32_t>(endpoints.size()));
      endpoints.push_back(endpoint);
    }
    instance.endpoint = s.index;
  }
  const auto index = static_cast<InstanceIndex>(instances.size());
  scis.back().instances.push_back(index);
  endpoint_of_instance.push_back(instance.endpoint);
  instances.push_back(std::move(instance));
}

}  // namespace margay::dp
