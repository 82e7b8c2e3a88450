// SPDX-License-Identifier: Apache-2.0
#pragma once

// What all workers of a site share, made once before the first worker: slot ledgers and counters.

#include <span>

#include "common/counters.h"
#include "dataplane/core/arena.h"
#include "dataplane/core/site_table.h"
#include "dataplane/core/slot_ledger.h"

namespace margay::dp {

struct SharedState {
  SharedState(Arena& arena, size_t worker_count, size_t instance_limit, size_t sci_limit)
      : workers(worker_count),
        instances_max(instance_limit),
        scis_max(sci_limit),
        slots(arena, worker_count, instance_limit),
        provisional(arena, worker_count, instance_limit),
        sci_counters(arena.make<SciCounters>(worker_count * sci_limit)),
        instance_counters(arena.make<InstanceCounters>(worker_count * instance_limit)),
        worker_counters(arena.make<WorkerCounters>(worker_count)) {}

  // Control thread, before the workers start.
  void open_instances(const SiteTable& table) {
    for (InstanceIndex i = 0; i < table.instances.size(); ++i) open(table, i);
  }

  // The table's thread: begins the use of an index that nobody uses.
  void open(const SiteTable& table, InstanceIndex i) {
    const Instance& instance = table.instances[i];
    slots.open(i, instance.generation, instance.limit);
    provisional.open(i, instance.generation, provisional_limit(share(table, i), instance.limit));
  }

  // Control thread: `set instance ... max-sessions`. 0 <= limit <= SlotLedger::kLimitMax.
  void set_limit(const SiteTable& table, InstanceIndex i, uint32_t limit) {
    slots.set_limit(i, limit);
    provisional.set_limit(i, provisional_limit(share(table, i), limit));
  }

  InstanceCounters& counters(WorkerIndex w, InstanceIndex i) { return instance_counters[w * instances_max + i]; }
  const InstanceCounters& counters(WorkerIndex w, InstanceIndex i) const {
    return instance_counters[w * instances_max + i];
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

  size_t workers;
  size_t instances_max, scis_max;
  SlotLedger slots;
  SlotLedger provisional;  // what unproven flows hold of them (D-45)
  std::span<SciCounters> sci_counters;
  std::span<InstanceCounters> instance_counters;
  std::span<WorkerCounters> worker_counters;

 private:
  static double share(const SiteTable& table, InstanceIndex i) {
    return table.scis[table.instances[i].sci].provisional_share;
  }
};

}  // namespace margay::dp
