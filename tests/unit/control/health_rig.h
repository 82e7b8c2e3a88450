// SPDX-License-Identifier: Apache-2.0
#pragma once

// One health monitor that is shown outcomes, a second after each other.

#include "control/sci/health.h"

namespace margay::control::test {

inline constexpr auto kLiveness = CheckKind::kLiveness;
inline constexpr auto kReadiness = CheckKind::kReadiness;
inline constexpr auto kPerformance = CheckKind::kPerformance;
inline constexpr auto kHealthy = HealthState::kHealthy;
inline constexpr auto kDegraded = HealthState::kDegraded;
inline constexpr auto kUnhealthy = HealthState::kUnhealthy;
inline constexpr auto kUnknown = HealthState::kUnknown;

inline HealthConfig all_checks(Recovery recovery = Recovery::kStepwise) {
  return {.recovery = recovery, .readiness = ProbeConfig{}, .performance = PerformanceConfig{}};
}
inline HealthConfig liveness_only() { return {}; }

class HealthRig {
 public:
  explicit HealthRig(const HealthConfig& config) : monitor(config, now) {}
  HealthRig(const HealthConfig& config, HealthState known) : monitor(config, now, {known}) {}

  // One outcome, a second later. True: the state changed.
  bool see(CheckKind kind, Outcome outcome) {
    now += kSecond;
    last = monitor.on_check(kind, outcome, "detail", now);
    return last.has_value();
  }
  bool pass(CheckKind kind) { return see(kind, Outcome::kPass); }
  bool fail(CheckKind kind) { return see(kind, Outcome::kFail); }
  bool error(CheckKind kind) { return see(kind, Outcome::kError); }
  void repeat(int times, CheckKind kind, Outcome outcome) {
    for (int i = 0; i < times; ++i) see(kind, outcome);
  }
  HealthState state() const { return monitor.state(); }

  Nanoseconds now = 100 * kSecond;
  HealthMonitor monitor;
  std::optional<HealthChange> last;
};

}  // namespace margay::control::test
