// SPDX-License-Identifier: Apache-2.0
#include "dataplane/cli/totals.h"

#include <numeric>

namespace margay::dp {

uint64_t InstanceTotals::ended_in_all() const { return std::accumulate(ended.begin(), ended.end(), uint64_t{0}); }

InstanceTotals totals_of(const SharedState& shared, InstanceIndex instance) {
  InstanceTotals t;
  for (size_t w = 0; w < shared.workers; ++w) {
    const InstanceCounters& c = shared.counters(static_cast<WorkerIndex>(w), instance);
    t.packets_in += c.packets_in.get();
    t.bytes_in += c.bytes_in.get();
    t.packets_out += c.packets_out.get();
    t.bytes_out += c.bytes_out.get();
    t.active += c.active.get();
    t.bindings += c.bindings.get();
    t.opened += c.opened.get();
    t.provisional += c.provisional.get();
    t.syn_unanswered += c.syn_unanswered.get();
    t.resets += c.resets.get();
    for (size_t r = 0; r < kEndReasons; ++r) t.ended[r] += c.ended[r].get();
    for (size_t r = 0; r < kRefusals; ++r) t.passed_over[r] += c.passed_over[r].get();
  }
  return t;
}

InstanceDurations durations_of(const SharedState& shared, InstanceIndex instance) {
  InstanceDurations d;
  for (WorkerIndex w = 0; w < shared.workers; ++w) {
    if (shared.counters(w, instance).generation.get() == 0) continue;
    shared.times(w, instance).handshakes.add_to(d.handshakes);
    shared.times(w, instance).responses.add_to(d.responses);
  }
  return d;
}

}  // namespace margay::dp
