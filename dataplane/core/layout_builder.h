// SPDX-License-Identifier: Apache-2.0
#pragma once

// Builds a layout: ports first, then SCIs with their instances. Where a layout ran before, what is still there keeps
// its index; what went keeps its own as long as keep_frontend() and keep_instance() say so, and becomes free for the
// layout after this one. Set-up; one thread.

#include <span>

#include "dataplane/core/site_layout.h"

namespace margay::dp {

class LayoutBuilder {
 public:
  // `before` may be null; `keys` is how many addresses and endpoints there will be. REQUIRES: one MAC address a port.
  LayoutBuilder(const SiteConfig& config, std::span<const MacAddress> macs, const SiteLayout* before, size_t keys);

  // Bindings may still name these, although they are no longer part of the site.
  void keep_frontend(FrontendIndex frontend) { layout_.frontends[frontend] = before_->frontends[frontend]; }
  void keep_instance(InstanceIndex instance, EndpointIndex endpoint);

  // The errors say what clashes.
  Result<FrontendIndex> add_frontend(const Endpoint& endpoint, SciIndex sci);
  struct Place {
    NextHopIndex next_hop = kNoIndex;
    EndpointIndex endpoint = kNoIndex;
    IpAddress source;  // our own address on the network of the next hop
  };
  // After all frontends: an instance must not stand at an address of an SCI.
  Result<Place> add_instance(InstanceIndex index, const InstanceConfig& instance, const SciPolicy& sci);

  SiteLayout finish() { return std::move(layout_); }

 private:
  void add_ports(std::span<const MacAddress> macs);
  void add_gateways();
  bool add(const IpAddress& address, uint16_t port, Protocol protocol, SiteLayout::SlotKind kind, uint32_t index);
  NextHopIndex add_next_hop(PortIndex port, const IpAddress& address, const std::optional<MacAddress>& mac);
  Result<void> check_mtu(NextHopIndex next_hop, const InstanceConfig& instance, const SciPolicy& sci) const;
  IpAddress own_address_near(NextHopIndex next_hop) const;
  EndpointIndex add_endpoint(const Endpoint& endpoint);
  void set_endpoint_of(InstanceIndex instance, EndpointIndex endpoint);

  const SiteConfig& config_;
  const SiteLayout* before_;
  SiteLayout layout_;
  std::vector<uint32_t> free_frontends_, free_endpoints_, free_hops_;
};

}  // namespace margay::dp
