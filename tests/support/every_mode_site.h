// SPDX-License-Identifier: Apache-2.0
#pragma once

// A site that has everything a hit can meet: each mode, IPv4 and IPv6, TCP and UDP, one SCI each, and flows
// to it. Clients stand behind a router on port 0, instances on port 1; all next hops are known by configuration.

#include <cstdint>
#include <string>
#include <vector>

#include "dataplane/core/site_table.h"
#include "tests/support/packet_builder.h"

namespace margay::test {

inline const std::vector<MacAddress> kSitePortMacs{mac("02:00:00:00:0f:00"), mac("02:00:00:00:0f:01")};
inline const MacAddress kSiteRouter = mac("02:00:00:00:00:01"), kSiteInstance = mac("02:00:00:00:01:01");

// One of the sixteen kinds of flow.
struct FlowKind {
  dp::Mode mode = dp::Mode::kNat;
  bool v6 = false, udp = false;

  static constexpr uint32_t kCount = 16;
  static FlowKind of(uint32_t k) {
    constexpr dp::Mode kModes[] = {dp::Mode::kNat, dp::Mode::kL2Dsr, dp::Mode::kIpip, dp::Mode::kGue};
    return {kModes[k % 4], (k & 4) != 0, (k & 8) != 0};
  }
  bool two_way() const { return !is_one_way(mode); }
  uint16_t port() const { return udp ? 53 : 80; }
  uint16_t instance_port() const { return static_cast<uint16_t>(two_way() ? 8000 + port() : port()); }
  std::string text(const std::string& v4_address, const std::string& v6_address, uint16_t port_number) const {
    return (v6 ? "[" + v6_address + "]" : v4_address) + ":" + std::to_string(port_number);
  }
  std::string sci() const {
    const auto host = std::to_string(10 + 10 * static_cast<int>(mode));
    return text("192.0.2." + host, "2001:db8::" + host, port());
  }
  // 0 <= n < 100
  std::string instance(uint32_t n) const {
    const uint32_t host = n + (two_way() ? 11 : 111);
    return text("10.1.0." + std::to_string(host), "2001:db8:1::" + std::to_string(host), instance_port());
  }
  // The n-th client flow, n < 2^24: another address for each 16, another port for each.
  std::string client(uint32_t n) const {
    const auto high = std::to_string(n >> 12 & 0xff), low = std::to_string(n >> 4 & 0xff);
    return text("100.64." + high + "." + low, "2001:db8:c:" + high + "::" + low,
                static_cast<uint16_t>(20000 + n % 40000));
  }
  PacketBuilder from_client(const std::string& from) const {
    return (udp ? test::udp(from, sci()) : test::tcp(from, sci())).ether(kSiteRouter, kSitePortMacs[0]);
  }
  PacketBuilder from_instance(const std::string& from, const std::string& to) const {  // nat
    return (udp ? test::udp(from, to) : test::tcp(from, to)).ether(kSiteInstance, kSitePortMacs[1]);
  }
};

inline dp::SciConfig sci_of(const FlowKind& kind, uint32_t instances, uint32_t max_sessions) {
  const AddressPort shown = *AddressPort::parse(kind.sci());
  dp::SciConfig s;
  s.csci_id = kind.sci() + (kind.udp ? "/udp" : "/tcp");
  s.cs_id = "service";
  s.endpoints = {{shown.address, shown.port, kind.udp ? Protocol::kUdp : Protocol::kTcp}};
  s.mode = kind.mode;
  for (uint32_t n = 0; n < instances; ++n) {
    const AddressPort behind = *AddressPort::parse(kind.instance(n));
    dp::InstanceConfig i;
    i.id = "si-" + std::to_string(n);
    i.address = behind.address;
    i.port = behind.port;
    i.mac = kSiteInstance;
    i.max_sessions = max_sessions;
    s.instances.push_back(i);
  }
  return s;
}

// SCI number k is of FlowKind::of(k).
inline dp::SiteConfig every_mode_site(uint32_t instances, uint32_t max_sessions) {
  dp::SiteConfig site;
  site.ports.resize(2);
  site.ports[0].name = "net0";
  site.ports[0].addresses = {*Prefix::parse("192.0.2.2/24"), *Prefix::parse("2001:db8::2/64")};
  site.ports[0].gateways = {ip("192.0.2.1"), ip("2001:db8::1")};
  site.ports[0].neighbours = {{ip("192.0.2.1"), kSiteRouter}, {ip("2001:db8::1"), kSiteRouter}};
  site.ports[1].name = "net1";
  site.ports[1].addresses = {*Prefix::parse("10.1.0.2/24"), *Prefix::parse("2001:db8:1::2/64")};
  dp::ForwarderConfig forwarder;
  forwarder.port = 0;
  forwarder.mac = kSiteRouter;
  site.forwarders = {forwarder};
  for (uint32_t k = 0; k < FlowKind::kCount; ++k) site.scis.push_back(sci_of(FlowKind::of(k), instances, max_sessions));
  return site;
}

}  // namespace margay::test
