// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a worker has seen lately of an instance's response times, for balance: weighted-response-time. An average that
// forgets: a sample counts an eighth. It is worth less the older its newest sample is, and nothing after kMemory: an
// instance that gets no requests is not judged for ever by what it once was.
//
// In one word, InstanceTimes::recent: time of the newest sample, and the average. The worker alone writes it; any
// thread reads, and what it reads is whole and lately true. SharedState joins those of all workers.

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "common/counters.h"
#include "dataplane/core/units.h"

namespace margay::dp {

class ResponseTime {
 public:
  static constexpr Tick kMemory = ticks_of(30 * kSecond);

  struct Estimate {
    double microseconds = 0;
    double worth = 0;  // 0: nothing is known, to 1: seen now
  };

  // The worker whose word it is.
  static void add(Counter& word, uint32_t microseconds, Tick now) {
    const uint64_t seen = word.get();
    const uint64_t sample = std::min<uint64_t>(uint64_t{microseconds} * kParts, kAverageMax);
    const uint64_t before = is_known(seen, now) ? average(seen) : sample;
    const uint64_t after = std::max<uint64_t>((before * 7 + sample + 4) / 8, 1);
    word.set(uint64_t{now} << 32 | after);
  }

  static Estimate of(const Counter& word, Tick now) {
    const uint64_t seen = word.get();
    if (!is_known(seen, now)) return {};
    return {static_cast<double>(average(seen)) / kParts, 1 - static_cast<double>(age(seen, now)) / kMemory};
  }

 private:
  static constexpr uint64_t kParts = 16;               // of a microsecond
  static constexpr uint64_t kAverageMax = 0xffffffff;  // 268 seconds; 0: no sample

  static uint64_t average(uint64_t word) { return word & kAverageMax; }
  // Workers' clocks may be a tick apart.
  static Tick age(uint64_t word, Tick now) {
    const auto at = static_cast<Tick>(word >> 32);
    return tick_after(at, now) ? 0 : now - at;
  }
  static bool is_known(uint64_t word, Tick now) { return average(word) != 0 && age(word, now) < kMemory; }
};
// In the line that a response writes anyway, behind the sum of all.
static_assert(offsetof(InstanceTimes, recent) % kCounterAlignment != 0);

}  // namespace margay::dp
