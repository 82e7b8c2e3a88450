// SPDX-License-Identifier: Apache-2.0
// show drops [all]
#include <numeric>
#include <span>

#include "dataplane/cli/commands.h"

namespace margay::dp {
namespace {

// One of the arrays of a worker's counters, by reason.
template <size_t kReasons>
void show(const DataPlane& plane, const std::array<ReasonText, kReasons>& texts,
          std::array<Counter, kReasons> WorkerCounters::*counters, bool zeros, Reply& reply) {
  for (size_t r = 1; r < kReasons; ++r) {
    std::vector<uint64_t> by_worker;
    for (const WorkerCounters& c : plane.shared.worker_counters) by_worker.push_back((c.*counters)[r].get());
    const uint64_t sum = std::accumulate(by_worker.begin(), by_worker.end(), uint64_t{0});
    if (sum > 0 || zeros) reply.row({texts[r].name, sum, by_worker, texts[r].meaning});
  }
}

}  // namespace

void add_show_drops(CommandTable& table, DataPlane& plane) {
  table.add({"show drops [all]",
             "packets dropped, and packets refused by a reset or an ICMP error, by reason and worker; reasons that "
             "never were only with all",
             "reads shared counters", [&plane](const Arguments& arguments, Reply& reply) -> CommandResult {
               const bool all = arguments.option("all") != nullptr;
               reply.table("drops", {"reason", "count", "by_worker", "meaning"});
               show(plane, kDropReasonTexts, &WorkerCounters::drops, all, reply);
               reply.table("refused", {"cause", "refused", "by_worker", "meaning"});
               show(plane, kRefusalTexts, &WorkerCounters::refused, all, reply);
               return {};
             }});
}

}  // namespace margay::dp
