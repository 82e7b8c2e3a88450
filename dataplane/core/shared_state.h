// SPDX-License-Identifier: Apache-2.0
#pragma once

// What all workers of a site share, made once before the first worker: slot ledgers, private to this process, and
// counters, which may lie in memory that the control plane reads (common/shared_table/counters.h).

#include <algorithm>
#include <span>

#include "common/shared_table/counters.h"
#include "dataplane/core/arena.h"
#include "dataplane/core/response_time.h"
#include "dataplane/core/site_table.h"
#include "dataplane/core/slot_ledger.h"

namespace margay::dp {

struct SharedState {
  using Counters = shared_table::CountersView<std::byte>;

  // Counters elsewhere: not touched here, so that pages are taken as indices come into use. REQUIRES: they are zero.
  SharedState(Arena& arena, Counters memory)
      : workers(memory.shape().workers),
        instances_max(memory.shape().instances),
        scis_max(memory.shape().scis),
        slots(arena, workers, instances_max),
        provisional(arena, workers, instances_max),
        stopped(memory.stopped()),
        settings(memory.settings()),
        sci_counters(memory.scis()),
        instance_counters(memory.instances()),
        instance_times(memory.times()),
        worker_counters(memory.workers()) {}

  // Counters in the arena too.
  SharedState(Arena& arena, size_t worker_count, size_t instance_limit, size_t sci_limit)
      : SharedState(arena,
                    counters_in(arena, {static_cast<uint32_t>(worker_count), static_cast<uint32_t>(instance_limit),
                                        static_cast<uint32_t>(sci_limit)})) {}

  // Control thread, before the workers start.
  void open_instances(const SiteTable& table) {
    for (InstanceIndex i = 0; i < table.instances.size(); ++i) open(table, i);
  }

  // Control thread, before the workers start: begins the use of an index that sessions came over with, `unproven` of
  // which hold provisional slots. Their active counters stand already.
  void open_with(const SiteTable& table, InstanceIndex i, uint32_t unproven) {
    const Instance& instance = table.instances[i];
    slots.open(i, instance.generation, instance.limit, static_cast<uint32_t>(active(i)));
    provisional.open(i, instance.generation, provisional_limit(share(table, i), instance.limit), unproven);
    shared_table::OperatorSetting nothing;
    nothing.generation = instance.generation;
    settings[i].set(nothing.pack());
  }

  // The table's thread: begins the use of an index that nobody uses.
  void open(const SiteTable& table, InstanceIndex i) {
    const Instance& instance = table.instances[i];
    slots.open(i, instance.generation, instance.limit);
    provisional.open(i, instance.generation, provisional_limit(share(table, i), instance.limit));
  }

  // The table's thread, where it is another one than before. 0 <= limit <= SlotLedger::kLimitMax.
  void set_limit(const SiteTable& table, InstanceIndex i, uint32_t limit) {
    const uint32_t unproven = provisional_limit(share(table, i), limit);
    if (slots.limit(i) != limit) slots.set_limit(i, limit);
    if (provisional.limit(i) != unproven) provisional.set_limit(i, unproven);
  }

  InstanceCounters& counters(WorkerIndex w, InstanceIndex i) { return instance_counters[w * instances_max + i]; }
  const InstanceCounters& counters(WorkerIndex w, InstanceIndex i) const {
    return instance_counters[w * instances_max + i];
  }
  InstanceTimes& times(WorkerIndex w, InstanceIndex i) { return instance_times[w * instances_max + i]; }
  const InstanceTimes& times(WorkerIndex w, InstanceIndex i) const { return instance_times[w * instances_max + i]; }

  // The worker that it names: what it counted for an instance that had this index earlier is forgotten.
  // REQUIRES: no binding names that one.
  void serve(WorkerIndex w, InstanceIndex i, uint16_t generation) {
    if (counters(w, i).generation.get() == generation) return;
    counters(w, i).serve(generation);
    times(w, i).clear();
  }

  // By the worker that it names.
  void refuse(WorkerIndex w, SciIndex sci, Refusal why) {
    worker_counters[w].refused[static_cast<size_t>(why)].add();
    sci_counters[w * scis_max + sci].refused[static_cast<size_t>(why)].add();
  }

  // Client packets of an SCI refused for this cause, over all workers. Any thread.
  uint64_t refused(SciIndex sci, Refusal why) const {
    uint64_t sum = 0;
    for (size_t w = 0; w < workers; ++w)
      sum += sci_counters[w * scis_max + sci].refused[static_cast<size_t>(why)].get();
    return sum;
  }

  // Entries that name the instance, slot or not, over all workers. Any thread.
  uint64_t bindings(InstanceIndex i) const {
    uint64_t sum = 0;
    for (size_t w = 0; w < workers; ++w) sum += counters(static_cast<WorkerIndex>(w), i).bindings.get();
    return sum;
  }

  // Sessions that hold a slot, over all workers. Any thread.
  uint64_t active(InstanceIndex i) const {
    uint64_t sum = 0;
    for (size_t w = 0; w < workers; ++w) sum += counters(static_cast<WorkerIndex>(w), i).active.get();
    return sum;
  }

  // The worker that it names: an instance took so long to answer a request.
  void add_response(WorkerIndex w, InstanceIndex i, uint32_t microseconds, Tick now) {
    InstanceTimes& seen = times(w, i);
    seen.responses.add(Nanoseconds{microseconds} * 1000);
    ResponseTime::add(seen.recent, microseconds, now);
  }
  // Lately, over all workers, each by the worth of what it knows. Any thread. Pages of workers that never served the
  // instance are not touched.
  ResponseTime::Estimate response_time(InstanceIndex i, Tick now) const {
    ResponseTime::Estimate all;
    double sum = 0, worths = 0;
    for (WorkerIndex w = 0; w < workers; ++w) {
      if (counters(w, i).generation.get() == 0) continue;
      const ResponseTime::Estimate its = ResponseTime::of(times(w, i).recent, now);
      sum += its.worth * its.microseconds;
      worths += its.worth;
      all.worth = std::max(all.worth, its.worth);
    }
    if (worths > 0) all.microseconds = sum / worths;
    return all;
  }

  size_t workers;
  size_t instances_max, scis_max;
  SlotLedger slots;
  SlotLedger provisional;       // what unproven flows hold of them (D-45)
  std::span<Counter> stopped;   // one, for the control plane: 1 while packets of SCIs are dropped
  std::span<Counter> settings;  // OperatorSetting by instance, packed; the table's thread writes
  std::span<SciCounters> sci_counters;
  std::span<InstanceCounters> instance_counters;
  std::span<InstanceTimes> instance_times;
  std::span<WorkerCounters> worker_counters;

 private:
  struct alignas(kCacheLine) Line {
    std::byte bytes[kCacheLine];
  };

  static Counters counters_in(Arena& arena, shared_table::CountersShape shape) {
    const std::span<Line> lines = arena.make<Line>(shared_table::counters_bytes(shape) / sizeof(Line));
    if (arena.counting()) return Counters({}, shape);
    return shared_table::make_counters(std::as_writable_bytes(lines), shape);
  }

  static double share(const SiteTable& table, InstanceIndex i) {
    return table.scis[table.instances[i].sci].provisional_share;
  }
};

}  // namespace margay::dp
