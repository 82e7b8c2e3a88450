// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a site says of its SCIs, as far as both planes know it: plain values with the defaults of the requirement
// catalogue, Part C. The site file is read into it, and snapshots carry it from the control plane to the data plane.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/net.h"
#include "common/units.h"

namespace margay {

enum class Mode : uint8_t { kNat, kL2Dsr, kIpip, kGue };
enum class Balance : uint8_t {
  kRoundRobin,
  kLeastConnections,
  kSlotBased,
  kWeightedResponseTime,
  kResourceAware,
  kConsistentHash
};
enum class UnknownFlow : uint8_t { kReset, kDrop, kAdopt };
enum class WhenNoneHealthy : uint8_t { kDegraded, kReject };
enum class WhenFull : uint8_t { kReject };
enum class OnUnhealthy : uint8_t { kReset, kRebind, kKeep };  // D-22
enum class UdpChecksum : uint8_t { kComputed, kZero };

// As the site file and show spell them: "l2-dsr".
std::string_view word_of(Mode v);
std::string_view word_of(Balance v);
std::string_view word_of(UnknownFlow v);
std::string_view word_of(WhenNoneHealthy v);
std::string_view word_of(WhenFull v);
std::string_view word_of(OnUnhealthy v);
std::string_view word_of(UdpChecksum v);

// The client's packets reach an instance as they are, and its answers go round the SCI.
constexpr bool is_one_way(Mode mode) { return mode != Mode::kNat; }
// ... inside a packet of the site's own.
constexpr bool is_tunnel(Mode mode) { return mode == Mode::kIpip || mode == Mode::kGue; }

inline constexpr uint32_t kSessionsMax = (1u << 24) - 1;  // of one instance: 24 bits in the slot ledger
inline constexpr uint8_t kSecurityLevelMax = 10;          // CSMA-42
inline constexpr size_t kIdBytesMax = 255;                // of a CS-ID, CSCI-ID or SI-ID (D-25); and a site's name

struct InstanceConfig {
  std::string id;  // SI-ID
  IpAddress address;
  uint16_t port = 0;
  std::optional<MacAddress> mac;
  uint32_t max_sessions = 0;  // slots
  uint16_t weight = 1;        // 0: takes no new flow
  uint8_t preference = 100;   // those with the highest take new flows, others while these are full (SCI-78)
  uint32_t price = 0;         // the SCI's where the site file gives none
  uint8_t security_level = 0;

  friend bool operator==(const InstanceConfig&, const InstanceConfig&) = default;
};

struct TimersConfig {
  Nanoseconds embryonic = 5 * kSecond;
  Nanoseconds closing = 10 * kSecond;
  Nanoseconds time_wait = 60 * kSecond;
  Nanoseconds reset_grace = 2 * kSecond;
  Nanoseconds unreplied = 5 * kSecond;  // UDP

  friend bool operator==(const TimersConfig&, const TimersConfig&) = default;
};

// Generic UDP Encapsulation (draft-ietf-intarea-gue).
struct GueConfig {
  uint16_t port = 6080;  // of the instances, as IANA has assigned it
  uint8_t variant = 0;   // 0: a header of 4 bytes says what follows; 1: the client's packet follows the UDP header
  UdpChecksum checksum = UdpChecksum::kComputed;

  friend bool operator==(const GueConfig&, const GueConfig&) = default;
};

inline constexpr uint16_t kMssAsItIs = 0, kMssByMtu = 65535;  // SciPolicy::mss_clamp
inline constexpr uint16_t kMssMin = 536, kMssMax = 8960;      // RFC 9293 §3.7.1; what fits the largest MTU

// An SCI without its instances.
struct SciPolicy {
  std::string csci_id;
  std::string cs_id;
  std::vector<Endpoint> endpoints;
  Mode mode = Mode::kNat;
  GueConfig gue;
  uint16_t mss_clamp = kMssAsItIs;  // largest MSS that a SYN may announce, or kMssByMtu
  Balance balance = Balance::kSlotBased;
  bool cheapest_first = false;                   // among instances of one preference (SCI-78)
  uint8_t security_level_min = 0;                // of an instance that takes new flows (SCI-78)
  Nanoseconds affinity_timeout = 300 * kSecond;  // UDP default: 60 s
  TimersConfig timers;
  WhenNoneHealthy when_none_healthy = WhenNoneHealthy::kDegraded;
  WhenFull when_full = WhenFull::kReject;
  OnUnhealthy on_unhealthy = OnUnhealthy::kReset;
  UnknownFlow unknown_flow = UnknownFlow::kReset;
  double provisional_share = 0.5;   // of an instance's limit, at least one slot (D-45)
  double degradation_factor = 0.5;  // D-7
  Nanoseconds drain_deadline = 600 * kSecond;
  Nanoseconds ramp = 10 * kSecond;  // from an instance's first service or recovery to its full share of new flows

  friend bool operator==(const SciPolicy&, const SciPolicy&) = default;
};

struct SciConfig : SciPolicy {
  std::vector<InstanceConfig> instances;
};

// Bytes that the SCI's mode puts in front of a client's IP packet on its way to an instance at this address.
uint16_t bytes_added(const SciPolicy& sci, const IpAddress& instance);
// The smallest MTU towards such an instance: what every IPv6 packet of 1280 bytes needs (RFC 8200 §5), and every IPv4
// packet of 68 (RFC 791), if the SCI has clients of that family. Fragments of our own are not made.
uint16_t mtu_needed(const SciPolicy& sci, const IpAddress& instance);

}  // namespace margay
