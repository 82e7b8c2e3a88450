// SPDX-License-Identifier: Apache-2.0
#pragma once

// The conditions of a service instance that both planes know.

#include <cstdint>
#include <string_view>

namespace margay {

// Health of a service instance (SCI-53). Not to be mixed with the state of an SCI as a source of reports (D-5).
enum class HealthState : uint8_t { kHealthy, kDegraded, kUnhealthy, kUnknown };
inline constexpr size_t kHealthStates = 4;
std::string_view name_of(HealthState s);  // "HEALTHY"

// Administrative condition of an instance, beside its health (D-33).
enum class Admin : uint8_t { kEnabled, kDraining, kDisabled };
std::string_view name_of(Admin a);  // "enabled"

}  // namespace margay
