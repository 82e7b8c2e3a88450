// SPDX-License-Identifier: Apache-2.0
#pragma once

// The workers' clock: the time stamp counter in nanoseconds, monotonic and the same on every core. Any thread,
// once start_clock() has been called (by Eal::start).

#include "dataplane/core/units.h"

namespace margay::dp {

void start_clock();
Nanoseconds tsc_now();

}  // namespace margay::dp
