// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <time.h>

#include "common/monotonic.h"
#include "common/time_point.h"

namespace margay::control {

// What the clocks say. Any thread.
inline Time read_clocks() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return {.monotonic = monotonic_now(), .unix_ms = int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000};
}

}  // namespace margay::control
