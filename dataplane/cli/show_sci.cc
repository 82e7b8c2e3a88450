// SPDX-License-Identifier: Apache-2.0
// show sci
#include "dataplane/cli/commands.h"
#include "dataplane/cli/names.h"
#include "dataplane/cli/totals.h"

namespace margay::dp {
namespace {

uint64_t refused_in_all(const DataPlane& plane, SciIndex index) {
  uint64_t sum = 0;
  for (size_t r = 0; r < kRefusals; ++r) sum += plane.shared.refused(index, static_cast<Refusal>(r));
  return sum;
}

void show(const DataPlane& plane, SciIndex index, Reply& reply) {
  const SiteTable& table = plane.table();
  const Sci& sci = table.scis[index];
  uint64_t eligible = 0, limit = 0, free = 0, active = 0, bindings = 0, opened = 0;
  for (const InstanceIndex i : sci.instances) {
    const SlotView slots = plane.shared.slots.view(i);
    const InstanceTotals totals = totals_of(plane.shared, i);
    const bool takes = table.instances[i].takes_new_flows(HealthState::kHealthy);
    eligible += takes;
    free += takes ? slots.free() : 0;
    limit += slots.limit;
    active += totals.active;
    bindings += totals.bindings;
    opened += totals.opened;
  }
  reply.row({sci.csci_id, sci.cs_id, endpoints_of(table, sci), word_of(sci.mode), word_of(sci.balance),
             sci.instances.size(), eligible, active, limit, free, bindings, opened, refused_in_all(plane, index)});
}

void show_refused(const DataPlane& plane, SciIndex index, Reply& reply) {
  for (size_t r = 1; r < kRefusals; ++r) {
    const uint64_t count = plane.shared.refused(index, static_cast<Refusal>(r));
    if (count > 0) reply.row({plane.table().scis[index].csci_id, kRefusalTexts[r].name, count});
  }
}

}  // namespace

void add_show_sci(CommandTable& table, DataPlane& plane) {
  table.add({"show sci", "each SCI: what it serves, and its sessions against its limits",
             "reads shared counters and ledgers", [&plane](const Arguments&, Reply& reply) -> CommandResult {
               const bool on = plane.table().forwarding;
               reply.field("forwarding", on, on ? "forwarding" : "stopped by command: every packet is dropped");
               reply.table("scis", {"csci_id", "cs_id", "endpoints", "mode", "balance", "instances", "eligible",
                                    "active", "limit", "free", "bindings", "opened", "refused"});
               const auto scis = static_cast<SciIndex>(plane.table().scis.size());
               for (SciIndex s = 0; s < scis && reply.wanted(); ++s) {
                 if (!plane.table().scis[s].gone()) show(plane, s, reply);
               }
               reply.table("refused", {"csci_id", "cause", "refused"});
               for (SciIndex s = 0; s < scis && reply.wanted(); ++s) show_refused(plane, s, reply);
               return {};
             }});
}

}  // namespace margay::dp
