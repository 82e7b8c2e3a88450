// SPDX-License-Identifier: Apache-2.0
#pragma once

// What each worker has seen lately of each instance's response times, for balance: weighted-response-time. An average
// that forgets: a sample counts an eighth. It is worth less the older its newest sample is, and nothing after kMemory:
// an instance that gets no requests is not judged for ever by what it once was.
//
// One word a worker and instance, the worker's own to write: time of the newest sample, and the average. Any worker
// reads; a value is whole and lately true.

#include <algorithm>
#include <cstdint>
#include <span>

#include "common/counters.h"
#include "dataplane/core/arena.h"
#include "dataplane/core/units.h"

namespace margay::dp {

class ResponseTimes {
 public:
  static constexpr Tick kMemory = ticks_of(30 * kSecond);

  struct Estimate {
    double microseconds = 0;
    double worth = 0;  // 0: nothing is known, to 1: seen now
  };

  ResponseTimes(Arena& arena, size_t workers, size_t instances)
      : workers_(workers),
        stride_((instances + kPerLine - 1) / kPerLine * kPerLine),
        words_(arena.make<Counter>(workers * stride_)) {}

  // Worker w.
  void add(WorkerIndex w, InstanceIndex i, uint32_t microseconds, Tick now) {
    Counter& word = words_[w * stride_ + i];
    const uint64_t seen = word.get();
    const uint64_t sample = std::min<uint64_t>(uint64_t{microseconds} * kParts, kAverageMax);
    const uint64_t before = worth(seen, now) > 0 ? average(seen) : sample;
    const uint64_t after = std::max<uint64_t>((before * 7 + sample + 4) / 8, 1);
    word.set(uint64_t{now} << 32 | after);
  }
  // Worker w: the index serves another instance.
  void forget(WorkerIndex w, InstanceIndex i) { words_[w * stride_ + i].set(0); }

  // Over all workers, each by the worth of what it knows.
  Estimate of(InstanceIndex i, Tick now) const {
    Estimate e;
    double sum = 0, worths = 0;
    for (size_t w = 0; w < workers_; ++w) {
      const uint64_t seen = words_[w * stride_ + i].get();
      const double its = worth(seen, now);
      sum += its * static_cast<double>(average(seen)) / kParts;
      worths += its;
      e.worth = std::max(e.worth, its);
    }
    if (worths > 0) e.microseconds = sum / worths;
    return e;
  }

 private:
  static constexpr size_t kPerLine = kCacheLine / sizeof(Counter);  // workers do not share lines
  static constexpr uint64_t kParts = 16;                            // of a microsecond
  static constexpr uint64_t kAverageMax = 0xffffffff;               // 268 seconds; 0: no sample

  static uint64_t average(uint64_t word) { return word & kAverageMax; }
  // Workers' clocks may be a tick apart.
  static double worth(uint64_t word, Tick now) {
    const auto at = static_cast<Tick>(word >> 32);
    const Tick age = tick_after(at, now) ? 0 : now - at;
    if (average(word) == 0 || age >= kMemory) return 0;
    return 1 - static_cast<double>(age) / kMemory;
  }

  size_t workers_, stride_;
  std::span<Counter> words_;
};

}  // namespace margay::dp
