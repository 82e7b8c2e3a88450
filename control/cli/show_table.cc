// SPDX-License-Identifier: Apache-2.0
// show table
#include "control/cli/commands.h"
#include "control/cli/kinds.h"

namespace margay::control {
namespace {

void show_link(const DataPlaneLink::Status& status, const TablePlan& plan, Reply& reply) {
  reply.field("connected", status.connected);
  reply.field("alive", status.alive);
  if (!status.why.empty()) reply.field("why", status.why);
  reply.field("workers", status.workers);
  reply.field("connections", status.connections);
  reply.field("generation", plan.generation());
  reply.field("under_way", plan.under_way());
  reply.field("acked", status.acked);
  reply.field("taken", status.taken);
  reply.field("refused", status.refused);
  if (!status.last_refusal.empty()) reply.field("last_refusal", status.last_refusal);
}

}  // namespace

void add_show_table(CommandTable& table, Service& service) {
  table.add({"show table", "what the data plane is told of each instance, and how far it has taken it",
             "reads the plan and the link's counts", [&service](const Arguments&, Reply& reply) -> CommandResult {
               const TablePlan& plan = service.site().plan();
               show_link(service.site().link().status(), plan, reply);
               reply.table("instances", {"csci_id", "si_id", "index", "generation", "health", "admin", "limit",
                                         "max_sessions", "weight"});
               for (const auto& [csci_id, sci] : plan.scis()) {
                 for (const auto& i : sci.instances) {
                   reply.row({csci_id, i.config.id, plan.placed() ? Cell(i.index) : Cell(), i.generation,
                              name_of(i.health), name_of(i.admin), i.limit, i.config.max_sessions, i.config.weight});
                 }
                 if (!reply.wanted()) break;
               }
               return {};
             }});
}

}  // namespace margay::control
