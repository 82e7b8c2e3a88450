// SPDX-License-Identifier: Apache-2.0
#pragma once

// Metric Aggregator, first half: Global Available Slots and the Health Summary (SCI-32..36, 66..69; D-4, D-6, D-7).
// Pure functions of what is known of each instance; computing_time.h is the other half.

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "common/health.h"
#include "common/histogram.h"
#include "common/share.h"
#include "common/units.h"

namespace margay::control {

struct InstanceInput {
  HealthState health = HealthState::kUnknown;
  Admin admin = Admin::kEnabled;
  uint32_t max_sessions = 0;
  std::optional<uint32_t> operators_max = {};  // stands over max_sessions
  uint32_t active = 0;                         // slots held
  uint32_t provisional = 0;                    // those of them that no proven flow holds (D-45)
  uint32_t weight = 1;                         // 0: takes no new flow
  bool barred = false;                         // takes none either

  const Histogram* responses = nullptr;           // of requests, in the window
  std::optional<Nanoseconds> response_time = {};  // measured elsewhere; counts where no request was seen
  std::optional<uint32_t> input_tokens = {};      // of a request, on average
};

// Takes new flows and counts in GAS and Computing Time.
constexpr bool contributes(const InstanceInput& i) {
  return serves(i.health) && i.admin == Admin::kEnabled && i.weight > 0 && !i.barred;
}

// What the instance may hold before it takes no new flow (D-7); 0 where it does not contribute.
uint32_t limit_of(const InstanceInput& i, Share degradation_factor);

struct Gas {
  uint32_t value = 0;  // with the safety margin; stays at the field's greatest value where more would be free
  // The ledger's breakdown (D-42), without the margin, over the instances that contribute.
  uint64_t healthy_free = 0, degraded_free = 0;
  uint64_t provisional = 0;
  uint64_t over_limit = 0;  // held above the limits, free nowhere
  bool operator==(const Gas&) const = default;
};
Gas aggregate_gas(std::span<const InstanceInput> instances, Share degradation_factor, Share safety_margin);

}  // namespace margay::control
