// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the fast path knows of the site: ports, forwarders, SCIs, instances and how to reach them. Immutable once
// built; a change builds another one, publishes it by RCU and frees the old one after every worker has passed a
// quiescent state. Built and freed by the control thread, read by workers.
//
// Indices of instances, endpoints and next hops are stable from one table to the next as long as anything may
// name them; entries that are no longer part of the site stay in place and are marked so.

#include <bit>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/net.h"
#include "dataplane/core/site_config.h"
#include "dataplane/core/units.h"

namespace margay::dp {

struct NextHop {
  PortIndex port = kNoPort;
  IpAddress address;
  MacAddress mac;                        // zero: ask by ARP or ND
  NextHopIndex same_address = kNoIndex;  // the next one of this port and address, with another MAC
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
  SciIndex sci = 0;
};

// Administrative condition of an instance, beside its health (D-33).
enum class Admin : uint8_t { kEnabled, kDraining, kDisabled };
std::string_view word_of(Admin v);

struct alignas(kCacheLine) Instance {  // what a hit reads lies in the first line
  SciIndex sci = 0;
  EndpointIndex endpoint = kNoIndex;
  NextHopIndex next_hop = kNoIndex;
  IpAddress address;
  uint16_t port = 0;  // wire order
  uint16_t generation = 1;
  uint16_t weight = 1;
  HealthState health = HealthState::kHealthy;
  Admin admin = Admin::kEnabled;
  Tick drain_deadline = 0;    // kDraining: sessions end then
  uint32_t max_sessions = 0;  // the ledger's limit, for show
  std::string si_id;

  // May it take a new flow at all? One rule for every algorithm (SCI-74, D-23, D-33).
  bool takes_new_flows(HealthState wanted) const { return admin == Admin::kEnabled && weight > 0 && health == wanted; }
  // May its existing sessions go on? (D-22, D-23, D-33; `set instance ... disable` ends them.)
  bool keeps_sessions(Tick now) const {
    if (health == HealthState::kUnhealthy || admin == Admin::kDisabled) return false;
    return admin == Admin::kEnabled || !tick_after(now, drain_deadline);
  }
};

struct Sci {
  Mode mode = Mode::kNat;
  Balance balance = Balance::kSlotBased;
  UnknownFlow unknown_flow = UnknownFlow::kReset;
  WhenNoneHealthy when_none_healthy = WhenNoneHealthy::kDegraded;
  Tick established = 0, embryonic = 0, closing = 0, time_wait = 0, reset_grace = 0, unreplied = 0;
  double provisional_share = 0.5;
  std::vector<InstanceIndex> instances;
  std::vector<FrontendIndex> frontends;
  std::string csci_id, cs_id;
};

// What stands behind a local address.
enum class LocalKind : uint8_t { kNone, kPort, kSci };

class SiteTable {
 public:
  // REQUIRES: what check_site (dataplane/site_sections.h) asks of a configuration; one MAC address a port
  static std::unique_ptr<SiteTable> build(const SiteConfig& config, std::span<const MacAddress> port_macs);
  // A copy to change and publish.
  std::unique_ptr<SiteTable> clone() const { return std::unique_ptr<SiteTable>(new SiteTable(*this)); }

  uint64_t version = 1;
  uint64_t next_hops_version = 1;  // changes only when next_hops do
  bool forwarding = true;          // `stop` clears it: every packet of an SCI is dropped as stopped
  std::vector<TablePort> ports;
  std::vector<ForwarderConfig> forwarders;
  std::vector<Frontend> frontends;
  std::vector<Endpoint> endpoints;  // of instances
  std::vector<Sci> scis;
  std::vector<Instance> instances;                  // by InstanceIndex
  std::vector<EndpointIndex> endpoint_of_instance;  // the same by itself, for the flow table
  std::vector<NextHop> next_hops;
  std::vector<NextHopIndex> gateways_v4, gateways_v6;
  std::vector<std::pair<PortIndex, IpAddress>> announced;  // own and SCI addresses, each with its port

  FrontendIndex find_frontend(const IpAddress& address, uint16_t port_wire, Protocol protocol) const;
  EndpointIndex find_endpoint(const IpAddress& address, uint16_t port_wire, Protocol protocol) const;
  LocalKind local(const IpAddress& address) const;
  // Whether `port` answers ARP or ND for the address: the port whose network holds it; for an SCI's address on
  // no port's network, every port.
  bool answers_for(PortIndex port, const IpAddress& address) const;
  PortIndex on_link(const IpAddress& address) const { return port_on_link(ports, address); }
  // The first next hop with this address on this port; the others follow by NextHop::same_address.
  NextHopIndex find_next_hop(PortIndex port, const IpAddress& address) const;
  // Whether a frame from this port, source MAC and VLAN may inject client packets (SCI-132).
  bool authorised(PortIndex port, const MacAddress& source, uint16_t vlan) const;

  // By name, for commands; kNoIndex when there is none.
  SciIndex sci_by_name(std::string_view csci_id) const;
  InstanceIndex instance_by_name(std::string_view csci_id, std::string_view si_id) const;

 private:
  SiteTable() = default;
  SiteTable(const SiteTable&) = default;

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
  bool add(const IpAddress& address, uint16_t port, Protocol protocol, SlotKind kind, uint32_t index);
  void size_slots(size_t keys);

  void add_ports(const SiteConfig& config, std::span<const MacAddress> macs);
  void add_gateways(const SiteConfig& config);
  void add_sci(const SiteConfig& config, const SciConfig& sci);
  void add_instance(const SiteConfig& config, const SciConfig& sci, const InstanceConfig& instance);
  NextHopIndex add_next_hop(const SiteConfig& config, PortIndex port, const IpAddress& address,
                            const std::optional<MacAddress>& mac);

  std::vector<Slot> slots_;  // a power of two, at most a quarter full
};

// Slots that unproven flows may hold of an instance with this limit (D-45): the share, rounded down, at least one.
constexpr uint32_t provisional_limit(double share, uint32_t max_sessions) {
  if (max_sessions == 0) return 0;
  const auto n = static_cast<uint32_t>(share * max_sessions);
  return n > 0 ? n : 1;
}

}  // namespace margay::dp
