// SPDX-License-Identifier: Apache-2.0
#include "common/health.h"

namespace margay {

std::string_view name_of(HealthState s) {
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

std::string_view name_of(Admin a) {
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

}  // namespace margay
