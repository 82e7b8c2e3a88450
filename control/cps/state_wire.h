// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a C-PS writes down, as the bytes of its state file (proto/margay/v1/c_ps_state.proto), and back. Pure functions;
// any thread.

#include <string>

#include "common/result.h"
#include "control/cps/core/saved_state.h"

namespace margay::cps {

std::string bytes_of(const SavedState& state, Nanoseconds now);
// The error names the field.
Result<SavedState> state_of(const std::string& bytes, Nanoseconds now);

}  // namespace margay::cps
