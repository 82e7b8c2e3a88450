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

enum class Mode : uint8_t { kNat, kL2Dsr };
enum class Balance : uint8_t { kRoundRobin, kLeastConnections, kSlotBased };
enum class UnknownFlow : uint8_t { kReset, kDrop, kAdopt };
enum class WhenNoneHealthy : uint8_t { kDegraded, kReject };
enum class WhenFull : uint8_t { kReject };
enum class OnUnhealthy : uint8_t { kReset, kRebind, kKeep };  // D-22

// As the site file and show spell them: "l2-dsr".
std::string_view word_of(Mode v);
std::string_view word_of(Balance v);
std::string_view word_of(UnknownFlow v);
std::string_view word_of(WhenNoneHealthy v);
std::string_view word_of(WhenFull v);
std::string_view word_of(OnUnhealthy v);

inline constexpr uint32_t kSessionsMax = (1u << 24) - 1;  // of one instance: 24 bits in the slot ledger
inline constexpr size_t kIdBytesMax = 255;                // of a CS-ID, CSCI-ID or SI-ID (D-25); and a site's name

struct InstanceConfig {
  std::string id;  // SI-ID
  IpAddress address;
  uint16_t port = 0;
  std::optional<MacAddress> mac;
  uint32_t max_sessions = 0;  // slots
  uint16_t weight = 1;        // 0: takes no new flow

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

// An SCI without its instances.
struct SciPolicy {
  std::string csci_id;
  std::string cs_id;
  std::vector<Endpoint> endpoints;
  Mode mode = Mode::kNat;
  Balance balance = Balance::kSlotBased;
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

}  // namespace margay
