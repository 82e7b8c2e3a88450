// SPDX-License-Identifier: Apache-2.0
#include "control/northbound/core/row.h"

namespace margay::northbound {

std::string_view name_of(SourceState s) {
  switch (s) {
    case SourceState::kActive:
      return "ACTIVE";
    case SourceState::kHealthy:
      return "HEALTHY";
    case SourceState::kStale:
      return "STALE";
    case SourceState::kFailed:
      return "FAILED";
  }
  return "?";
}

std::string_view name_of(WithdrawReason r) {
  switch (r) {
    case WithdrawReason::kFailed:
      return "FAILED";
    case WithdrawReason::kEvicted:
      return "EVICTED";
    case WithdrawReason::kDeregistered:
      return "DEREGISTERED";
    case WithdrawReason::kRevoked:
      return "REVOKED";
    case WithdrawReason::kUnauthorised:
      return "UNAUTHORISED";
    case WithdrawReason::kAdmin:
      return "ADMIN";
    case WithdrawReason::kScope:
      return "SCOPE";
  }
  return "?";
}

}  // namespace margay::northbound
