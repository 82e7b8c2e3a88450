// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the fast path knows of the site: ports, forwarders, SCIs, instances and how to reach them. Immutable once
// built; a change builds another one, publishes it by RCU and frees the old one after every worker has passed a
// quiescent state. A copy shares what it does not change: a change costs what changed, not what exists. Built and freed
// by one thread at a time, read by workers.
//
// Indices of SCIs, instances, endpoints and next hops are stable from one table to the next as long as anything may
// name them; entries that are no longer part of the site stay in place and are marked so.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/net.h"
#include "common/shared_table/snapshot.h"
#include "dataplane/core/shared_array.h"
#include "dataplane/core/site_config.h"
#include "dataplane/core/site_layout.h"
#include "dataplane/core/tunnel.h"
#include "dataplane/core/units.h"

namespace margay::dp {

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
  Tick drain_deadline = 0;  // kDraining: sessions end then
  OnUnhealthy on_unhealthy = OnUnhealthy::kReset;
  bool gone = false;          // no longer part of the site: takes nothing, ends what it has
  uint8_t bytes_added = 0;    // tunnel.bytes
  Tick ramp_end = 0;          // from here on it gets its full share of new flows
  uint32_t max_sessions = 0;  // slots
  uint32_t limit = 0;         // the ledger's limit: what of max_sessions new flows may use (D-7)
  bool barred = false;        // by its SCI's policies
  float load = 0;             // what it reported (shared_table::InstanceRecord)
  uint32_t load_active = 0;
  Tick load_until = 0, load_lifetime = 0;  // lifetime 0: nothing is known
  std::string si_id;                       // empty: this index was never used
  Tunnel tunnel;

  // May it take a new flow at all? One rule for every algorithm (SCI-74, D-23, D-33).
  bool takes_new_flows(HealthState wanted) const {
    return admin == Admin::kEnabled && weight > 0 && health == wanted && !gone && !barred;
  }
  // May its existing sessions go on? (D-22, D-23, D-33; `set instance ... disable` ends them.)
  bool keeps_sessions(Tick now) const {
    if (unhealthy() || admin == Admin::kDisabled || gone) return false;
    return admin == Admin::kEnabled || !tick_after(now, drain_deadline);
  }
  // Its sessions end for its health.
  bool unhealthy() const { return health == HealthState::kUnhealthy && on_unhealthy != OnUnhealthy::kKeep; }
  // Its share of new flows, 26 to kFullShare: a tenth at first, all of it after the SCI's ramp.
  uint32_t share_of_new_flows(Tick ramp, Tick now) const {
    const Tick left = ramp_end - now;
    if (left == 0 || left > ramp) return kFullShare;
    return std::max(kFullShare / 10 + 1, static_cast<uint32_t>(uint64_t{kFullShare} * (ramp - left) / ramp));
  }
  static constexpr uint32_t kFullShare = 256;
  // Of the reported load: 1 when it was measured, 0 from load_until on.
  double worth_of_load(Tick now) const {
    const Tick left = load_until - now;
    if (left == 0 || left > load_lifetime) return 0;
    return static_cast<double>(left) / load_lifetime;
  }
};
static_assert(offsetof(Instance, limit) < kCacheLine && offsetof(Instance, tunnel) > kCacheLine);

struct Sci : SciPolicy {
  Tick established = 0, embryonic = 0, closing = 0, time_wait = 0, reset_grace = 0, unreplied = 0;
  Tick ramp = 0;
  std::vector<InstanceIndex> instances;
  std::vector<InstanceIndex> by_tier;      // the same, best first by the policies (SCI-78)
  std::vector<uint32_t> tier_ends;         // in there: behind those that are equally good
  std::vector<uint64_t> rendezvous_names;  // theirs, of consistent-hash
  uint16_t weight_max = 0;                 // at least each of theirs
  std::vector<FrontendIndex> frontends;
  std::shared_ptr<const shared_table::SciRecord> record;  // as it came; null: this index is not in use

  bool gone() const { return record == nullptr; }
};

class SiteTable {
 public:
  // The static table of a site file: every instance is HEALTHY.
  // REQUIRES: what check_site (common/site/site_sections.h) asks of a configuration; one MAC address a port
  static std::unique_ptr<SiteTable> build(const SiteConfig& config, std::span<const MacAddress> port_macs);
  // The table before a control plane's first snapshot: the SCIs of the site file answer, and refuse (no_snapshot), for
  // every instance is UNKNOWN, with limit 0, in generation 0.
  static std::unique_ptr<SiteTable> waiting_for_control(const SiteConfig& config,
                                                        std::span<const MacAddress> port_macs);
  // A site without SCIs, for a control plane to fill.
  static std::unique_ptr<SiteTable> without_scis(const SiteConfig& config, std::span<const MacAddress> port_macs);
  // A copy in which every index of an SCI or an instance is free.
  std::unique_ptr<SiteTable> without_scis() const;
  // A copy to change and publish.
  std::unique_ptr<SiteTable> clone() const { return std::unique_ptr<SiteTable>(new SiteTable(*this)); }

  uint64_t version = 1;     // of tables in this process
  uint64_t generation = 0;  // of the control plane's last snapshot, 0: none yet
  bool waiting = false;     // for the first snapshot: no index of an SCI or an instance is in use yet
  bool forwarding = true;   // `stop` clears it: every packet of an SCI is dropped as stopped
  SharedArray<Sci, 16> scis;
  SharedArray<Instance, 64> instances;  // by InstanceIndex

  // Of the layout.
  std::span<const TablePort> ports;
  std::span<const Frontend> frontends;
  std::span<const Endpoint> endpoints;
  std::span<const EndpointIndex> endpoint_of_instance;
  std::span<const NextHop> next_hops;

  const SiteLayout& layout() const { return *layout_; }
  void set_layout(SiteLayout layout);
  FrontendIndex find_frontend(const IpAddress& address, uint16_t port_wire, Protocol protocol) const {
    return layout_->find_frontend(address, port_wire, protocol);
  }
  EndpointIndex find_endpoint(const IpAddress& address, uint16_t port_wire, Protocol protocol) const {
    return layout_->find_endpoint(address, port_wire, protocol);
  }
  LocalKind local(const IpAddress& address) const { return layout_->local(address); }
  bool answers_for(PortIndex port, const IpAddress& address) const { return layout_->answers_for(port, address); }
  NextHopIndex find_next_hop(PortIndex port, const IpAddress& address) const {
    return layout_->find_next_hop(port, address);
  }
  bool authorised(PortIndex port, const MacAddress& source, uint16_t vlan) const {
    return layout_->authorised(port, source, vlan);
  }
  // Longest IP packet of a client that reaches the instance: its port's MTU less what its tunnel adds.
  uint16_t mtu_to(const Instance& i) const {
    return static_cast<uint16_t>(ports[next_hops[i.next_hop].port].mtu - i.bytes_added);
  }
  PortIndex on_link(const IpAddress& address) const { return port_on_link(layout_->ports, address); }

  // By name, for commands; kNoIndex when there is none.
  SciIndex sci_by_name(std::string_view csci_id) const;
  InstanceIndex instance_by_name(std::string_view csci_id, std::string_view si_id) const;

 private:
  SiteTable() = default;
  SiteTable(const SiteTable&) = default;

  std::shared_ptr<const SiteLayout> layout_;
};

// Slots that unproven flows may hold of an instance with this limit (D-45): the share, rounded down, at least one.
constexpr uint32_t provisional_limit(double share, uint32_t max_sessions) {
  if (max_sessions == 0) return 0;
  const auto n = static_cast<uint32_t>(share * max_sessions);
  return n > 0 ? n : 1;
}

}  // namespace margay::dp
