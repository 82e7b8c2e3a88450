// SPDX-License-Identifier: Apache-2.0
#include "control/sci/aggregate.h"

#include <algorithm>
#include <limits>

namespace margay::control {

uint32_t limit_of(const InstanceInput& i, Share degradation_factor) {
  if (!contributes(i)) return 0;
  return margay::limit_of(i.health, i.operators_max.value_or(i.max_sessions), degradation_factor);
}

// No sum overflows: fewer than 2^32 instances of at most 2^32 - 1 slots each.
Gas aggregate_gas(std::span<const InstanceInput> instances, Share degradation_factor, Share safety_margin) {
  Gas gas;
  for (const InstanceInput& i : instances) {
    if (!contributes(i)) continue;
    const uint32_t limit = limit_of(i, degradation_factor);
    const uint32_t free = limit > i.active ? limit - i.active : 0;
    (i.health == HealthState::kDegraded ? gas.degraded_free : gas.healthy_free) += free;
    gas.provisional += i.provisional;
    gas.over_limit += i.active > limit ? i.active - limit : 0;
  }
  constexpr uint64_t kFieldMax = std::numeric_limits<uint32_t>::max();
  gas.value = safety_margin.floor_of(static_cast<uint32_t>(std::min(gas.healthy_free + gas.degraded_free, kFieldMax)));
  return gas;
}

}  // namespace margay::control
