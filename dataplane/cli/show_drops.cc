// SPDX-License-Identifier: Apache-2.0
// show drops [all]
#include <numeric>

#include "dataplane/cli/commands.h"

namespace margay::dp {
namespace {

void show(const DataPlane& plane, bool zeros, Reply& reply) {
  reply.table("drops", {"reason", "count", "by_worker", "meaning"});
  for (size_t r = 1; r < kDropReasons; ++r) {
    std::vector<uint64_t> by_worker;
    for (const WorkerCounters& c : plane.shared.worker_counters) by_worker.push_back(c.drops[r].get());
    const uint64_t sum = std::accumulate(by_worker.begin(), by_worker.end(), uint64_t{0});
    const DropReasonText& text = kDropReasonTexts[r];
    if (sum > 0 || zeros) reply.row({text.name, sum, by_worker, text.meaning});
  }
}

}  // namespace

void add_show_drops(CommandTable& table, DataPlane& plane) {
  table.add({"show drops [all]", "dropped packets by reason and worker; reasons that never were only with all",
             "reads shared counters", [&plane](const Arguments& arguments, Reply& reply) -> CommandResult {
               show(plane, arguments.option("all") != nullptr, reply);
               return {};
             }});
}

}  // namespace margay::dp
