// SPDX-License-Identifier: Apache-2.0
#pragma once

// The conditions of a service instance, as both planes name them.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/share.h"

namespace margay {

// Health of a service instance (SCI-53). Not to be mixed with the state of a source of reports, which has a type of
// its own (D-5).
enum class HealthState : uint8_t { kHealthy, kDegraded, kUnhealthy, kUnknown };
inline constexpr size_t kHealthStates = 4;

constexpr std::string_view name_of(HealthState s) {
  switch (s) {
    case HealthState::kHealthy:
      return "HEALTHY";
    case HealthState::kDegraded:
      return "DEGRADED";
    case HealthState::kUnhealthy:
      return "UNHEALTHY";
    case HealthState::kUnknown:
      return "UNKNOWN";
  }
  return "?";
}

// New flows and GAS want one of these two; UNKNOWN counts as UNHEALTHY until confirmed (SCI-60).
constexpr bool serves(HealthState s) { return s == HealthState::kHealthy || s == HealthState::kDegraded; }

// D-7's product: how many sessions an instance in this state may hold before it takes no new flow.
constexpr uint32_t limit_of(HealthState s, uint32_t max_sessions, Share degradation_factor) {
  if (!serves(s)) return 0;
  return s == HealthState::kDegraded ? degradation_factor.floor_of(max_sessions) : max_sessions;
}

// Administrative condition of an instance, beside its health (D-33).
enum class Admin : uint8_t { kEnabled, kDraining, kDisabled };

constexpr std::string_view name_of(Admin a) {
  switch (a) {
    case Admin::kEnabled:
      return "enabled";
    case Admin::kDraining:
      return "draining";
    case Admin::kDisabled:
      return "disabled";
  }
  return "?";
}

// How many instances are in which state (SCI-118).
struct HealthSummary {
  uint32_t healthy = 0, degraded = 0;
  uint32_t unhealthy = 0;  // UNKNOWN included (D-6)
  uint32_t unknown = 0;    // how many of those

  constexpr void count(HealthState s) {
    if (s == HealthState::kHealthy) {
      ++healthy;
    } else if (s == HealthState::kDegraded) {
      ++degraded;
    } else {
      ++unhealthy;
      if (s == HealthState::kUnknown) ++unknown;
    }
  }
  // D-4: HEALTHY, DEGRADED or UNHEALTHY
  constexpr HealthState sci_health() const {
    if (healthy > 0) return HealthState::kHealthy;
    return degraded > 0 ? HealthState::kDegraded : HealthState::kUnhealthy;
  }
  bool operator==(const HealthSummary&) const = default;
};

}  // namespace margay
