// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where things are: ports, forwarders, endpoints of SCIs and instances, and how hosts are reached. The part of a site
// table that a change of health, limits or policy leaves alone, and that such tables share. Immutable once built.
//
// Indices are stable from one layout to the next as long as anything may name them; what is no longer part of the site
// keeps its index until no binding names it.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/net.h"
#include "common/result.h"
#include "dataplane/core/site_config.h"
#include "dataplane/core/units.h"

namespace margay::dp {

struct NextHop {
  PortIndex port = kNoPort;  // kNoPort: not in use
  IpAddress address;
  MacAddress mac;                        // zero: ask by ARP or ND
  NextHopIndex same_address = kNoIndex;  // another one with this address on this port, and another MAC address
};

struct TablePort {
  MacAddress mac;
  uint16_t vlan = 0;  // 0: untagged
  uint16_t mtu = 1500;
  bool has_kernel = false;
  std::vector<Prefix> addresses;
};

struct Frontend {
  Endpoint endpoint;
  SciIndex sci = kNoIndex;  // kNoIndex: not in use
};

// What stands behind a local address.
enum class LocalKind : uint8_t { kNone, kPort, kSci };

struct SiteLayout {
  uint64_t version = 1;
  std::vector<TablePort> ports;
  std::vector<ForwarderConfig> forwarders;
  std::vector<Frontend> frontends;
  std::vector<Endpoint> endpoints;                  // of instances; port 0: not in use
  std::vector<EndpointIndex> endpoint_of_instance;  // by InstanceIndex, for the flow table
  std::vector<NextHop> next_hops;
  std::vector<NextHopIndex> gateways_v4, gateways_v6;
  std::vector<std::pair<PortIndex, IpAddress>> announced;  // own and SCI addresses, each with its port

  FrontendIndex find_frontend(const IpAddress& address, uint16_t port_wire, Protocol protocol) const;
  EndpointIndex find_endpoint(const IpAddress& address, uint16_t port_wire, Protocol protocol) const;
  LocalKind local(const IpAddress& address) const;
  // Whether `port` answers ARP or ND for the address: the port whose network holds it; for an SCI's address on
  // no port's network, every port.
  bool answers_for(PortIndex port, const IpAddress& address) const;
  // The first next hop with this address on this port; the others follow by NextHop::same_address.
  NextHopIndex find_next_hop(PortIndex port, const IpAddress& address) const;
  // Whether a frame from this port, source MAC and VLAN may inject client packets (SCI-132).
  bool authorised(PortIndex port, const MacAddress& source, uint16_t vlan) const;

  // Open addressing by (address, port, protocol, kind).
  enum class SlotKind : uint8_t { kFree, kFrontend, kEndpoint, kPortAddress, kSciAddress, kNextHop };
  struct Slot {
    IpAddress address;
    uint16_t port = 0;  // wire order; 0 for addresses; a next hop's PortIndex
    Protocol protocol{};
    SlotKind kind = SlotKind::kFree;
    uint32_t index = kNoIndex;  // for addresses: the port that answers for it, kNoIndex: all
  };
  // The slot of the key, or the free one where it would go.
  size_t probe(const IpAddress& address, uint16_t port, Protocol protocol, SlotKind kind) const;
  std::vector<Slot> slots;  // a power of two, at most a quarter full
};

}  // namespace margay::dp
