// SPDX-License-Identifier: Apache-2.0
#pragma once

// The state machine of an SCI as a source of reports (CSMA-77..83, 163). Not the health of an instance (D-5). ACTIVE is
// where a source begins, and where one is that gave a sign of life whose values nobody believes yet.

#include <cstdint>

#include "control/northbound/core/row.h"

namespace margay::c_sma {

using northbound::SourceState;

enum class SourceEvent : uint8_t {
  kReport,  // its values are believed
  kSign,    // one in quarantine: it lives
  kTtl,     // nothing within the TTL (CSMA-67)
  kGrace,   // nor within the grace after it (CSMA-70)
};

SourceState next_state(SourceState state, SourceEvent event);

}  // namespace margay::c_sma
