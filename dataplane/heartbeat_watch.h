// SPDX-License-Identifier: Apache-2.0
#pragma once

// Notices workers that make no progress: a heartbeat that stood still for kPatience. Each stall is told once,
// and its end once. Pure; control thread only, to be asked a few times a second.

#include <span>
#include <vector>

#include "common/counters.h"
#include "dataplane/core/units.h"

namespace margay::dp {

class HeartbeatWatch {
 public:
  static constexpr Nanoseconds kPatience = kSecond;

  struct News {
    WorkerIndex worker = 0;
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

}  // namespace margay::dp
