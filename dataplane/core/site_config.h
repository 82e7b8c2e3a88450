// SPDX-License-Identifier: Apache-2.0
#pragma once

// The data plane's part of the site file, parsed and checked: plain values, one struct a section. Read once
// at start by dataplane/site_reader.cc; the core builds its SiteTable from it. Key names, defaults and units
// as in the reference site file; defaults from the requirement catalogue, Part C.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/net.h"
#include "dataplane/core/units.h"

namespace margay::dp {

enum class Mode : uint8_t { kNat, kL2Dsr };
enum class Balance : uint8_t { kRoundRobin, kLeastConnections, kSlotBased };
enum class UnknownFlow : uint8_t { kReset, kDrop, kAdopt };
enum class WhenNoneHealthy : uint8_t { kDegraded, kReject };
enum class WhenFull : uint8_t { kReject };
enum class Idle : uint8_t { kSpin, kSleep };
// Health of a service instance (SCI-53); the static table takes every instance as HEALTHY.
enum class HealthState : uint8_t { kHealthy, kDegraded, kUnhealthy, kUnknown };

// The site file's words for them.
std::string_view word_of(Mode v);
std::string_view word_of(Balance v);
std::string_view word_of(UnknownFlow v);
std::string_view word_of(WhenNoneHealthy v);
std::string_view word_of(WhenFull v);
std::string_view word_of(Idle v);
std::string_view word_of(HealthState v);

struct PortConfig {
  std::string name;
  std::string device;  // PCI address, or an EAL vdev with its arguments
  std::optional<MacAddress> mac;
  std::string kernel;   // exception path's interface name; empty: none
  uint16_t vlan = 0;    // 0: untagged
  uint16_t mtu = 1500;  // bytes of IP packet
  std::vector<Prefix> addresses;
  std::vector<IpAddress> gateways;
  std::vector<std::pair<IpAddress, MacAddress>> neighbours;
};

// The port whose network holds the address, or kNoPort; the longest prefix wins.
template <class Port>
PortIndex port_on_link(const std::vector<Port>& ports, const IpAddress& address) {
  PortIndex best = kNoPort;
  int best_length = -1;
  for (size_t p = 0; p < ports.size(); ++p) {
    for (const Prefix& prefix : ports[p].addresses) {
      if (prefix.length > best_length && prefix.contains(address)) {
        best = static_cast<PortIndex>(p);
        best_length = prefix.length;
      }
    }
  }
  return best;
}

// A rule that lets a frame inject client packets: every member that is set must match.
struct ForwarderConfig {
  bool any = false;
  PortIndex port = kNoPort;  // kNoPort: any port
  std::optional<MacAddress> mac;
  std::optional<uint16_t> vlan;
};

struct InstanceConfig {
  std::string id;  // SI-ID
  IpAddress address;
  uint16_t port = 0;
  std::optional<MacAddress> mac;
  uint32_t max_sessions = 0;  // slots
  uint16_t weight = 1;        // 0: takes no new flow
};

struct TimersConfig {  // all in nanoseconds
  Nanoseconds embryonic = 5 * kSecond;
  Nanoseconds closing = 10 * kSecond;
  Nanoseconds time_wait = 60 * kSecond;
  Nanoseconds reset_grace = 2 * kSecond;
  Nanoseconds unreplied = 5 * kSecond;  // UDP
};

struct SciConfig {
  std::string csci_id;
  std::string cs_id;
  std::vector<Endpoint> endpoints;
  Mode mode = Mode::kNat;
  Balance balance = Balance::kSlotBased;
  Nanoseconds affinity_timeout = 300 * kSecond;  // UDP default: 60 s
  TimersConfig timers;
  WhenNoneHealthy when_none_healthy = WhenNoneHealthy::kDegraded;
  WhenFull when_full = WhenFull::kReject;
  UnknownFlow unknown_flow = UnknownFlow::kReset;
  double provisional_share = 0.5;  // of an instance's limit, at least one slot (D-45)
  Nanoseconds drain_deadline = 600 * kSecond;
  std::vector<InstanceConfig> instances;
};

struct SiteConfig {
  std::string file;  // where it was read from, for messages
  std::string site;
  std::string cli_socket = "/run/margay/cli.sock";
  uint16_t workers = 1;
  Idle idle = Idle::kSpin;
  uint32_t flows = 1'000'000;  // bindings over all workers
  std::vector<PortConfig> ports;
  std::vector<ForwarderConfig> forwarders;
  std::vector<SciConfig> scis;
};

// Bytes of a packet buffer for frames on a port of this MTU, a power of two; and on any port of the site.
size_t buffer_bytes(uint16_t mtu);
size_t buffer_bytes(const SiteConfig& site);

}  // namespace margay::dp
