// SPDX-License-Identifier: Apache-2.0
// show workers
#include <numeric>

#include "dataplane/cli/ask_workers.h"
#include "dataplane/cli/commands.h"

namespace margay::dp {
namespace {

class Occupancy : public WorkerJob {
 public:
  void run(FastPath& fast_path, const SiteTable& table) override {
    used = fast_path.flows();
    capacity = fast_path.table().capacity();
    held = fast_path.held();
    table_version = table.version;
  }
  size_t used = 0, capacity = 0, held = 0;
  uint64_t table_version = 0;
};

double share_of(uint64_t part, uint64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

void show(AskWorkers& ask, size_t w, const WorkerCounters& c, Reply& reply) {
  Occupancy o;
  const bool answers = ask.run(static_cast<WorkerIndex>(w), o);
  const uint64_t refused = std::accumulate(c.refused.begin(), c.refused.end(), uint64_t{0},
                                           [](uint64_t sum, const Counter& n) { return sum + n.get(); });
  const auto known = [&](uint64_t n) { return answers ? Cell(n) : Cell(); };
  reply.row({w,
             answers,
             known(o.table_version),
             c.packets.get(),
             c.hits.get(),
             c.misses.get(),
             c.handed_over.get(),
             c.taken_over.get(),
             c.transmitted.get(),
             c.to_kernel.get(),
             c.from_kernel.get(),
             c.consumed.get(),
             c.own_frames.get(),
             known(o.held),
             known(o.used),
             known(o.capacity),
             c.evicted.get(),
             c.flow_insert_failed.get(),
             refused,
             c.replies_handed_over.get(),
             c.timers_fired.get(),
             c.timers_late.get(),
             c.polls.get(),
             share_of(c.idle_polls.get(), c.polls.get())});
}

}  // namespace

void add_show_workers(CommandTable& table, DataPlane& plane) {
  table.add({"show workers", "what each worker has done, how full it is, and whether it answers",
             "one small job in each worker; reads shared counters",
             [&plane](const Arguments&, Reply& reply) -> CommandResult {
               AskWorkers ask(plane);
               reply.table("workers",
                           {"worker",       "answers",     "table_version", "packets",      "hits",
                            "misses",       "handed_over", "taken_over",    "transmitted",  "to_kernel",
                            "from_kernel",  "consumed",    "own_frames",    "held_packets", "flows",
                            "flows_max",    "evicted",     "insert_failed", "refused",      "replies_handed_over",
                            "timers_fired", "timers_late", "polls",         "idle_share"},
                           Reply::Layout::kBlocks);
               for (size_t w = 0; w < ask.count(); ++w) show(ask, w, plane.shared.worker_counters[w], reply);
               ask.show_unanswered(reply);
               return {};
             }});
}

}  // namespace margay::dp
