// SPDX-License-Identifier: Apache-2.0
#pragma once

// Time as pure code sees it: nanoseconds on a monotonic clock that the shell reads. Wall clock never comes in here.

#include <cstdint>
#include <limits>

namespace margay {

using Nanoseconds = uint64_t;
inline constexpr Nanoseconds kMillisecond = 1'000'000;
inline constexpr Nanoseconds kSecond = 1'000'000'000;
inline constexpr Nanoseconds kNever = std::numeric_limits<Nanoseconds>::max();

}  // namespace margay
