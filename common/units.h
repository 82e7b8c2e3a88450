// SPDX-License-Identifier: Apache-2.0
#pragma once

// Time as pure code sees it: nanoseconds on a monotonic clock that the shell reads. Wall clock never comes in here.
// And what both planes know of the data plane's size: its ports, workers and timers.

#include <cstddef>
#include <cstdint>
#include <limits>

namespace margay {

using Nanoseconds = uint64_t;
inline constexpr Nanoseconds kMillisecond = 1'000'000;
inline constexpr Nanoseconds kSecond = 1'000'000'000;
inline constexpr Nanoseconds kNever = std::numeric_limits<Nanoseconds>::max();

inline constexpr Nanoseconds kTickLength = 10 * kMillisecond;  // resolution of the data plane's timers

using WorkerIndex = uint8_t;
using PortIndex = uint8_t;
inline constexpr PortIndex kNoPort = std::numeric_limits<PortIndex>::max();
inline constexpr size_t kWorkersMax = 32;
inline constexpr size_t kPortsMax = 16;

}  // namespace margay
