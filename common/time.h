// SPDX-License-Identifier: Apache-2.0
#pragma once

// Time as all of Margay counts it: nanoseconds on a monotonic clock that the caller names. Wall clock time is never
// used for timers, ages or order.

#include <cstdint>

namespace margay {

using Nanoseconds = uint64_t;
inline constexpr Nanoseconds kMillisecond = 1'000'000;
inline constexpr Nanoseconds kSecond = 1'000'000'000;

}  // namespace margay
