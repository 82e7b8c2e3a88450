// SPDX-License-Identifier: Apache-2.0
#include "control/c_sma/source_state.h"

#include <array>
#include <cstddef>

namespace margay::c_sma {

SourceState next_state(SourceState state, SourceEvent event) {
  constexpr auto kActive = SourceState::kActive;
  constexpr auto kHealthy = SourceState::kHealthy;
  constexpr auto kStale = SourceState::kStale;
  constexpr auto kFailed = SourceState::kFailed;
  static constexpr std::array<std::array<SourceState, 4>, 4> kTable = {{
      // kReport  kSign     kTtl     kGrace
      {kHealthy, kActive, kStale, kActive},    // ACTIVE
      {kHealthy, kHealthy, kStale, kHealthy},  // HEALTHY
      {kHealthy, kActive, kStale, kFailed},    // STALE
      {kHealthy, kActive, kFailed, kFailed},   // FAILED
  }};
  return kTable[static_cast<size_t>(state)][static_cast<size_t>(event)];
}

}  // namespace margay::c_sma
