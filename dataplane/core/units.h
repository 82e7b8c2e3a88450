// SPDX-License-Identifier: Apache-2.0
#pragma once

// Units and ids of the data plane. Each id is an index into one array of the site table or of a worker's
// memory; kNoIndex says "no such thing".

#include <cstddef>
#include <cstdint>
#include <limits>

#include "common/units.h"

namespace margay::dp {

// On the shell's monotonic clock: the TSC in production, the captures' own stamps in replay.
using margay::kMillisecond;
using margay::kNoPort;
using margay::kPortsMax;
using margay::kSecond;
using margay::kTickLength;
using margay::kWorkersMax;
using margay::Nanoseconds;
using margay::PortIndex;
using margay::WorkerIndex;

// Time in a flow entry: 10 ms units, modulo 2^32 (497 days). Compare only by tick_after() or a difference:
// every timeout is far below half of the range.
using Tick = uint32_t;
constexpr Tick to_tick(Nanoseconds t) { return static_cast<Tick>(t / kTickLength); }
constexpr Tick ticks_of(Nanoseconds span) {  // rounded up: a timer never runs out early
  return static_cast<Tick>((span + kTickLength - 1) / kTickLength);
}
constexpr bool tick_after(Tick a, Tick b) { return static_cast<int32_t>(a - b) > 0; }

// Short times: microseconds modulo 2^32. A difference is right below 71 minutes, and too small by as much beyond.
constexpr uint32_t to_microseconds(Nanoseconds t) { return static_cast<uint32_t>(t / 1000); }

using SciIndex = uint32_t;
using FrontendIndex = uint32_t;  // one (address, port, protocol) of one SCI
using EndpointIndex = uint32_t;  // one (address, port, protocol) of an instance; SCIs may share it
using InstanceIndex = uint32_t;  // stable while any binding or slot names it
using NextHopIndex = uint32_t;
using EntryIndex = uint32_t;  // into a worker's flow entries

inline constexpr uint32_t kNoIndex = std::numeric_limits<uint32_t>::max();

inline constexpr size_t kBurstMax = 32;   // packets per burst
inline constexpr size_t kCacheLine = 64;  // bytes

}  // namespace margay::dp
