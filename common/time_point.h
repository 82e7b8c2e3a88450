// SPDX-License-Identifier: Apache-2.0
#pragma once

// A point in time, as the control plane's pure cores are told it.

#include <cstdint>

#include "common/units.h"

namespace margay {

struct Time {
  Nanoseconds monotonic = 0;
  int64_t unix_ms = 0;  // for time stamps that others read, and for judging theirs; never for order, ages or timers
};

}  // namespace margay
