// SPDX-License-Identifier: Apache-2.0
#include "dataplane/core/site_layout.h"

#include <algorithm>

namespace margay::dp {
namespace {

uint64_t mix(const IpAddress& address, uint16_t port, Protocol protocol, uint8_t kind) {
  const uint64_t rest = uint64_t{port} << 16 | uint64_t{static_cast<uint8_t>(protocol)} << 8 | kind;
  uint64_t h = (address.high() * 0x9e3779b97f4a7c15u) ^ (address.low() + rest * 0xd6e8feb86659fd93u);
  h = (h ^ h >> 32) * 0xff51afd7ed558ccdu;
  return h >> 32;  // the bits that depend on all others
}

}  // namespace

size_t SiteLayout::probe(const IpAddress& address, uint16_t port, Protocol protocol, SlotKind kind) const {
  const size_t mask = slots.size() - 1;
  size_t at = mix(address, port, protocol, static_cast<uint8_t>(kind)) & mask;
  for (;; at = (at + 1) & mask) {
    const Slot& s = slots[at];
    if (s.kind == SlotKind::kFree) return at;
    if (s.kind == kind && s.port == port && s.protocol == protocol && s.address == address) return at;
  }
}

FrontendIndex SiteLayout::find_frontend(const IpAddress& address, uint16_t port_wire, Protocol protocol) const {
  return slots[probe(address, port_wire, protocol, SlotKind::kFrontend)].index;
}

EndpointIndex SiteLayout::find_endpoint(const IpAddress& address, uint16_t port_wire, Protocol protocol) const {
  return slots[probe(address, port_wire, protocol, SlotKind::kEndpoint)].index;
}

NextHopIndex SiteLayout::find_next_hop(PortIndex port, const IpAddress& address) const {
  return slots[probe(address, port, Protocol{}, SlotKind::kNextHop)].index;
}

LocalKind SiteLayout::local(const IpAddress& address) const {
  if (slots[probe(address, 0, Protocol{}, SlotKind::kPortAddress)].kind != SlotKind::kFree) return LocalKind::kPort;
  if (slots[probe(address, 0, Protocol{}, SlotKind::kSciAddress)].kind != SlotKind::kFree) return LocalKind::kSci;
  return LocalKind::kNone;
}

bool SiteLayout::answers_for(PortIndex port, const IpAddress& address) const {
  for (const SlotKind kind : {SlotKind::kPortAddress, SlotKind::kSciAddress}) {
    const Slot& s = slots[probe(address, 0, Protocol{}, kind)];
    if (s.kind != SlotKind::kFree && (s.index == port || s.index == kNoIndex)) return true;
  }
  return false;
}

bool SiteLayout::authorised(PortIndex port, const MacAddress& source, uint16_t vlan) const {
  return std::any_of(forwarders.begin(), forwarders.end(), [&](const ForwarderConfig& f) {
    return f.any ||
           ((f.port == kNoPort || f.port == port) && (!f.mac || *f.mac == source) && (!f.vlan || *f.vlan == vlan));
  });
}

}  // namespace margay::dp
