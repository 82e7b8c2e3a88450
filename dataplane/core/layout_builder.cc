// SPDX-License-Identifier: Apache-2.0
#include "dataplane/core/layout_builder.h"

#include <algorithm>
#include <bit>

namespace margay::dp {

using SlotKind = SiteLayout::SlotKind;

namespace {

// The next index for a new element: one that was free before, else one more.
template <class T>
uint32_t take_index(std::vector<uint32_t>& free, std::vector<T>& elements) {
  if (free.empty()) {
    elements.emplace_back();
    return static_cast<uint32_t>(elements.size() - 1);
  }
  const uint32_t index = free.back();
  free.pop_back();
  return index;
}

// Among next hops of one address, the one with this MAC address.
NextHopIndex find(const SiteLayout& layout, NextHopIndex first, const MacAddress& mac) {
  NextHopIndex n = first;
  while (n != kNoIndex && layout.next_hops[n].mac != mac) n = layout.next_hops[n].same_address;
  return n;
}

}  // namespace

LayoutBuilder::LayoutBuilder(const SiteConfig& config, std::span<const MacAddress> macs, const SiteLayout* before,
                             size_t keys)
    : config_(config), before_(before) {
  if (before_ != nullptr) {
    layout_.version = before_->version + 1;
    layout_.frontends.resize(before_->frontends.size());
    layout_.endpoints.resize(before_->endpoints.size());
    layout_.next_hops.resize(before_->next_hops.size());
    layout_.endpoint_of_instance.assign(before_->endpoint_of_instance.size(), kNoIndex);
    for (uint32_t i = 0; i < before_->frontends.size(); ++i) {
      if (before_->frontends[i].sci == kNoIndex) free_frontends_.push_back(i);
    }
    for (uint32_t i = 0; i < before_->endpoints.size(); ++i) {
      if (before_->endpoints[i].port == 0) free_endpoints_.push_back(i);
    }
    for (uint32_t i = 0; i < before_->next_hops.size(); ++i) {
      if (before_->next_hops[i].port == kNoPort) free_hops_.push_back(i);
    }
  }
  for (const PortConfig& p : config.ports) keys += p.addresses.size() + p.gateways.size();
  layout_.slots.assign(std::bit_ceil(std::max<size_t>(16, keys * 4)), {});
  layout_.forwarders = config.forwarders;
  add_ports(macs);
  add_gateways();
}

bool LayoutBuilder::add(const IpAddress& address, uint16_t port, Protocol protocol, SlotKind kind, uint32_t index) {
  SiteLayout::Slot& s = layout_.slots[layout_.probe(address, port, protocol, kind)];
  if (s.kind != SlotKind::kFree) return false;
  s = {address, port, protocol, kind, index};
  return true;
}

void LayoutBuilder::add_ports(std::span<const MacAddress> macs) {
  for (size_t p = 0; p < config_.ports.size(); ++p) {
    const PortConfig& from = config_.ports[p];
    layout_.ports.push_back({macs[p], from.vlan, from.mtu, !from.kernel.empty(), from.addresses});
    for (const Prefix& prefix : from.addresses) {
      add(prefix.address, 0, Protocol{}, SlotKind::kPortAddress, static_cast<uint32_t>(p));
      layout_.announced.emplace_back(static_cast<PortIndex>(p), prefix.address);
    }
  }
}

void LayoutBuilder::add_gateways() {
  for (size_t p = 0; p < config_.ports.size(); ++p) {
    for (const IpAddress& gateway : config_.ports[p].gateways) {
      auto& gateways = gateway.is_v4() ? layout_.gateways_v4 : layout_.gateways_v6;
      gateways.push_back(add_next_hop(static_cast<PortIndex>(p), gateway, {}));
    }
  }
}

NextHopIndex LayoutBuilder::add_next_hop(PortIndex port, const IpAddress& address,
                                         const std::optional<MacAddress>& mac) {
  MacAddress known = mac.value_or(MacAddress{});
  for (const auto& [neighbour, neighbour_mac] : config_.ports[port].neighbours) {
    if (!mac && neighbour == address) known = neighbour_mac;
  }
  SiteLayout::Slot& slot = layout_.slots[layout_.probe(address, port, Protocol{}, SlotKind::kNextHop)];
  const NextHopIndex here = find(layout_, slot.index, known);
  if (here != kNoIndex) return here;
  NextHopIndex index = before_ != nullptr ? find(*before_, before_->find_next_hop(port, address), known) : kNoIndex;
  if (index == kNoIndex) index = take_index(free_hops_, layout_.next_hops);
  layout_.next_hops[index] = {port, address, known, slot.index};
  slot = {address, port, Protocol{}, SlotKind::kNextHop, index};
  return index;
}

Result<FrontendIndex> LayoutBuilder::add_frontend(const Endpoint& e, SciIndex sci) {
  const uint16_t port_wire = to_wire16(e.port);
  FrontendIndex index = before_ != nullptr ? before_->find_frontend(e.address, port_wire, e.protocol) : kNoIndex;
  if (index != kNoIndex && before_->frontends[index].sci != sci) index = kNoIndex;  // another SCI had it
  if (index == kNoIndex) index = take_index(free_frontends_, layout_.frontends);
  if (!add(e.address, port_wire, e.protocol, SlotKind::kFrontend, index)) {
    return Error{e.format() + " belongs to another SCI already"};
  }
  layout_.frontends[index] = {e, sci};
  const PortIndex port = port_on_link(config_.ports, e.address);
  const bool first = add(e.address, 0, Protocol{}, SlotKind::kSciAddress, port == kNoPort ? kNoIndex : port);
  if (!first || layout_.local(e.address) == LocalKind::kPort) return index;  // announced already
  for (size_t p = 0; p < layout_.ports.size(); ++p) {
    if (port == kNoPort || port == p) layout_.announced.emplace_back(static_cast<PortIndex>(p), e.address);
  }
  return index;
}

Result<LayoutBuilder::Place> LayoutBuilder::add_instance(InstanceIndex index, const InstanceConfig& instance,
                                                         const SciPolicy& sci) {
  const IpAddress& address = instance.address;
  if (layout_.local(address) != LocalKind::kNone) return Error{address.format() + " is an address of the SCI itself"};
  const PortIndex port = port_on_link(config_.ports, address);
  const auto& gateways = address.is_v4() ? layout_.gateways_v4 : layout_.gateways_v6;
  if (port == kNoPort && sci.mode == Mode::kL2Dsr) {
    return Error{address.format() + " is on no port's network, which l2-dsr needs"};
  }
  if (port == kNoPort && gateways.empty()) {
    return Error{address.format() + " is on no port's network and there is no gateway of its family"};
  }
  Place place;
  place.next_hop = port != kNoPort ? add_next_hop(port, address, instance.mac) : gateways.front();
  if (auto done = check_mtu(place.next_hop, instance, sci); !done) return done.error();
  place.source = own_address_near(place.next_hop);
  if (!is_one_way(sci.mode)) place.endpoint = add_endpoint({address, instance.port, sci.endpoints.front().protocol});
  set_endpoint_of(index, place.endpoint);
  return place;
}

Result<void> LayoutBuilder::check_mtu(NextHopIndex next_hop, const InstanceConfig& instance,
                                      const SciPolicy& sci) const {
  const uint16_t mtu = layout_.ports[layout_.next_hops[next_hop].port].mtu;
  const uint16_t needed = mtu_needed(sci, instance.address);
  if (!is_tunnel(sci.mode) || mtu >= needed) return {};
  return Error{"mtu " + std::to_string(mtu) + " of its port, expected at least " + std::to_string(needed) +
               " in mode " + std::string(word_of(sci.mode))};
}

// On the network that holds the next hop; its port has one of the same family in any case.
IpAddress LayoutBuilder::own_address_near(NextHopIndex next_hop) const {
  const NextHop& hop = layout_.next_hops[next_hop];
  const Prefix* best = nullptr;
  for (const Prefix& prefix : layout_.ports[hop.port].addresses) {
    if (prefix.contains(hop.address) && (best == nullptr || prefix.length > best->length)) best = &prefix;
  }
  return best != nullptr ? best->address : IpAddress{};
}

EndpointIndex LayoutBuilder::add_endpoint(const Endpoint& e) {
  const uint16_t port_wire = to_wire16(e.port);
  const EndpointIndex here = layout_.find_endpoint(e.address, port_wire, e.protocol);
  if (here != kNoIndex) return here;
  EndpointIndex index = before_ != nullptr ? before_->find_endpoint(e.address, port_wire, e.protocol) : kNoIndex;
  if (index == kNoIndex) index = take_index(free_endpoints_, layout_.endpoints);
  add(e.address, port_wire, e.protocol, SlotKind::kEndpoint, index);
  layout_.endpoints[index] = e;
  return index;
}

void LayoutBuilder::keep_instance(InstanceIndex instance, EndpointIndex endpoint) {
  set_endpoint_of(instance, endpoint);
  if (endpoint != kNoIndex) layout_.endpoints[endpoint] = before_->endpoints[endpoint];
}

void LayoutBuilder::set_endpoint_of(InstanceIndex instance, EndpointIndex endpoint) {
  auto& all = layout_.endpoint_of_instance;
  if (all.size() <= instance) all.resize(instance + 1, kNoIndex);
  all[instance] = endpoint;
}

}  // namespace margay::dp
