// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dpdk/clock.h"

#include <rte_cycles.h>

namespace margay::dp {
namespace {

__extension__ using Wide = unsigned __int128;
constexpr unsigned kShift = 32;
uint64_t nanoseconds_per_tick = 0;  // times 2^kShift; written once, before any worker

}  // namespace

void start_clock() { nanoseconds_per_tick = static_cast<uint64_t>((Wide{kSecond} << kShift) / rte_get_tsc_hz()); }

Nanoseconds tsc_now() { return static_cast<Nanoseconds>(Wide{rte_rdtsc()} * nanoseconds_per_tick >> kShift); }

}  // namespace margay::dp
