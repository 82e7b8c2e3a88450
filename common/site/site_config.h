// SPDX-License-Identifier: Apache-2.0
#pragma once

// What both planes read of the site file, parsed and checked: plain values, one struct a section, filled by
// common/site/site_reader.cc. Key names, defaults and units as in the reference site file; defaults from the
// requirement catalogue, Part C.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/net.h"
#include "common/sci_config.h"
#include "common/units.h"

namespace margay {

enum class Idle : uint8_t { kSpin, kSleep };

// The site file's words for them.
std::string_view word_of(Idle v);

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

  friend bool operator==(const PortConfig&, const PortConfig&) = default;
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

  friend bool operator==(const ForwarderConfig&, const ForwarderConfig&) = default;
};

struct SiteConfig {
  std::string file;  // where it was read from, for messages
  std::string site;
  std::string cli_socket = "/run/margay/cli.sock";
  std::string control_socket;  // where the control plane connects; empty: none, every instance counts as HEALTHY
  uint16_t workers = 1;
  Idle idle = Idle::kSpin;
  uint32_t flows = 1'000'000;  // bindings over all workers
  std::string bindings;        // file that they live in; empty: they end with the process
  std::vector<PortConfig> ports;
  std::vector<ForwarderConfig> forwarders;
  std::vector<SciConfig> scis;
};

}  // namespace margay
