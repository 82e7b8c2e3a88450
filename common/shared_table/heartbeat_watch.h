// SPDX-License-Identifier: Apache-2.0
#pragma once

// Notices workers that make no progress: a heartbeat that stood still for kPatience. Each stall is told once,
// and its end once. Both planes watch: the data plane itself, and the control plane in the memory that they share,
// which a frozen process does not change either. Pure; one thread, to be asked a few times a second.

#include <cstdint>
#include <span>
#include <vector>

#include "common/counters.h"
#include "common/units.h"

namespace margay::shared_table {

class HeartbeatWatch {
 public:
  static constexpr Nanoseconds kPatience = kSecond;

  struct News {
    uint32_t worker = 0;
    bool stalled = false;  // else: goes on
    Nanoseconds stood_still = 0;
  };

  HeartbeatWatch(std::span<const WorkerCounters> workers, Nanoseconds now)
      : workers_(workers), seen_(workers.size(), Seen{.since = now}) {}

  std::vector<News> look(Nanoseconds now);

 private:
  struct Seen {
    uint64_t heartbeat = 0;
    Nanoseconds since = 0;
    bool stalled = false;
  };
  std::span<const WorkerCounters> workers_;
  std::vector<Seen> seen_;
};

}  // namespace margay::shared_table
