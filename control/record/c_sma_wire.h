// SPDX-License-Identifier: Apache-2.0
#pragma once

// Values of the C-SMA's core as messages of proto/margay/v1, and back; the rules are those of wire.h. Pure functions;
// any thread.

#include <cstdint>

#include "common/result.h"
#include "common/time_point.h"
#include "control/c_sma/events.h"
#include "control/c_sma/saved_state.h"

namespace margay::v1 {
class CSmaConfig;
class CSmaStart;
class CSmaState;
class Record;
}  // namespace margay::v1

namespace margay::control {

// What a CSma is made from, but for the time, and the epoch of what it advertises (above 0).
struct CSmaBeginning {
  c_sma::CSmaConfig config;
  c_sma::SavedState saved = {};
  uint64_t epoch = 1;
};

// Fill in the message, which is empty before.
void to_wire(const c_sma::CSmaConfig& config, v1::CSmaConfig& out);
void to_wire(const c_sma::SavedState& state, v1::CSmaState& out);
void to_wire(const CSmaBeginning& beginning, v1::CSmaStart& out);
// Those that a Record holds: its time and body.
void to_wire(const c_sma::Event& event, Time at, v1::Record& out);
void to_wire(const c_sma::Action& action, Time at, v1::Record& out);

Result<c_sma::CSmaConfig> config_of(const v1::CSmaConfig& config);
Result<c_sma::SavedState> saved_state_of(const v1::CSmaState& state);
// The configuration of a start that has none is `otherwise`; nullptr: that is an error.
Result<CSmaBeginning> beginning_of(const v1::CSmaStart& start, const c_sma::CSmaConfig* otherwise);
Result<void> event_of(const v1::Record& record, c_sma::Event& out);

}  // namespace margay::control
