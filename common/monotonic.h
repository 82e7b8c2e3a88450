// SPDX-License-Identifier: Apache-2.0
#pragma once

// CLOCK_MONOTONIC, which all processes of a machine share: for times that one tells another. Any thread.

#include <time.h>

#include "common/units.h"

namespace margay {

inline Nanoseconds monotonic_now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<Nanoseconds>(now.tv_sec) * kSecond + static_cast<Nanoseconds>(now.tv_nsec);
}

}  // namespace margay
