// SPDX-License-Identifier: Apache-2.0
// show sci
#include "dataplane/cli/commands.h"
#include "dataplane/cli/names.h"
#include "dataplane/cli/totals.h"

namespace margay::dp {
namespace {

void show(const DataPlane& plane, const Sci& sci, Reply& reply) {
  const SiteTable& table = plane.table();
  uint64_t eligible = 0, limit = 0, free = 0, active = 0, bindings = 0, opened = 0, refused = 0;
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
    refused += totals.refused_full;
  }
  reply.row({sci.csci_id, sci.cs_id, endpoints_of(table, sci), word_of(sci.mode), word_of(sci.balance),
             sci.instances.size(), eligible, active, limit, free, bindings, opened, refused});
}

}  // namespace

void add_show_sci(CommandTable& table, DataPlane& plane) {
  table.add({"show sci", "each SCI: what it serves, and its sessions against its limits",
             "reads shared counters and ledgers", [&plane](const Arguments&, Reply& reply) -> CommandResult {
               const bool on = plane.table().forwarding;
               reply.field("forwarding", on, on ? "forwarding" : "stopped by command: every packet is dropped");
               reply.table("scis", {"csci_id", "cs_id", "endpoints", "mode", "balance", "instances", "eligible",
                                    "active", "limit", "free", "bindings", "opened", "passed_over_full"});
               for (const Sci& sci : plane.table().scis) {
                 if (reply.wanted()) show(plane, sci, reply);
               }
               return {};
             }});
}

}  // namespace margay::dp
