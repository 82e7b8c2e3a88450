// SPDX-License-Identifier: Apache-2.0
#pragma once

// The operator's own arguments for EAL, judged before EAL sees them: EAL passes over stray words, takes options by any
// beginning of their name, and answers a wrong one with its whole usage. Pure; any thread.

#include <span>
#include <string>

#include "common/result.h"

namespace margay::dp {

// Names of options, and that each has the value it needs; the values are EAL's to judge, but for --proc-type: another
// process must never run on this one's memory.
Result<void> check_eal_args(std::span<const std::string> args);

}  // namespace margay::dp
