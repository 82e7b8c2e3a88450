// SPDX-License-Identifier: Apache-2.0
#pragma once

// An instance's counters, summed over the workers. Each is true lately; together they are not one moment. Any thread.

#include <array>

#include "dataplane/core/fast_path.h"

namespace margay::dp {

struct InstanceTotals {
  uint64_t packets_in = 0, bytes_in = 0, packets_out = 0, bytes_out = 0;
  uint64_t active = 0, bindings = 0, opened = 0, provisional = 0, syn_unanswered = 0, resets = 0;
  std::array<uint64_t, kEndReasons> ended{};
  std::array<uint64_t, kRefusals> passed_over{};

  uint64_t ended_in_all() const;
};

InstanceTotals totals_of(const SharedState& shared, InstanceIndex instance);

struct InstanceDurations {
  Histogram handshakes, responses;
};

// Reads nothing of workers that never served the instance: a look would take pages for them.
InstanceDurations durations_of(const SharedState& shared, InstanceIndex instance);

}  // namespace margay::dp
