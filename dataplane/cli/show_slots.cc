// SPDX-License-Identifier: Apache-2.0
// show slots
#include "dataplane/cli/commands.h"
#include "dataplane/cli/totals.h"

namespace margay::dp {
namespace {

std::vector<std::string> slot_columns() {
  std::vector<std::string> names{
      "csci_id",           "si_id", "limit", "active", "pool", "idle", "over", "provisional_active",
      "provisional_limit", "opened"};
  for (size_t r = 0; r < kEndReasons; ++r) names.emplace_back(name_of(static_cast<EndReason>(r)));
  return names;
}

void show_ledger(const DataPlane& plane, const Sci& sci, InstanceIndex i, Reply& reply) {
  const SlotView s = plane.shared.slots.view(i);
  const SlotView p = plane.shared.provisional.view(i);
  const InstanceTotals totals = totals_of(plane.shared, i);
  std::vector<Cell> cells{
      sci.csci_id,  plane.table().instances[i].si_id, s.limit, s.active, s.pool, s.idle, s.over, p.active, p.limit,
      totals.opened};
  for (const uint64_t ended : totals.ended) cells.emplace_back(ended);
  reply.row(std::move(cells));
}

}  // namespace

void add_show_slots(CommandTable& table, DataPlane& plane) {
  table.add({"show slots", "each instance's slots: limit, taken, free and where; released so far, by reason",
             "reads shared ledgers and counters; figures of a moment that moves",
             [&plane](const Arguments&, Reply& reply) -> CommandResult {
               reply.table("slots", slot_columns());
               for (const Sci& sci : plane.table().scis) {
                 for (const InstanceIndex i : sci.instances) {
                   if (reply.wanted()) show_ledger(plane, sci, i, reply);
                 }
               }
               return {};
             }});
}

}  // namespace margay::dp
