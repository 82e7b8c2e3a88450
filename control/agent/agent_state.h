// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the C-SMA knows, as the bytes of its state file (proto/margay/v1/c_sma_state.proto), and back. Pure functions;
// any thread.

#include <string>

#include "common/result.h"
#include "control/c_sma/saved_state.h"

namespace margay::control {

std::string bytes_of(const c_sma::SavedState& state);
// The error names the field.
Result<c_sma::SavedState> agent_state_of(const std::string& bytes);

}  // namespace margay::control
