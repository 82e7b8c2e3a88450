// SPDX-License-Identifier: Apache-2.0
// show health
#include "control/cli/commands.h"
#include "control/cli/kinds.h"

namespace margay::control {
namespace {

void show_sci(const std::string& csci_id, const Sci& sci, Reply& reply) {
  const SciState state = sci.state();
  const HealthSummary& h = state.health;
  reply.row({csci_id, name_of(h.sci_health()), h.healthy, h.degraded, h.unhealthy, h.unknown, name_of(state.admin),
             state.data_plane_lost, state.gas ? Cell(state.gas->value) : Cell(), cell_of(state.computing_time.value)});
}

void show_instances(Service& service, const std::string& csci_id, const Sci& sci, Reply& reply) {
  const Nanoseconds now = read_clocks().monotonic;
  for (const InstanceDetail& instance : sci.state().instances) {
    const InstanceStatistics* statistics = service.statistics().find(csci_id, instance.id);
    const bool changed = statistics != nullptr && statistics->last_change;
    reply.row({csci_id, instance.id, name_of(instance.health), seconds_of(now - sci.monitor(instance.id)->since()),
               name_of(instance.admin), instance.limit, instance.active,
               changed ? Cell(words_of(statistics->last_change->cause)) : Cell()});
  }
}

}  // namespace

void add_show_health(CommandTable& table, Service& service) {
  table.add(
      {"show health [sci CSCI-ID]", "health of each SCI and instance, since when and why", "reads the cores",
       [&service](const Arguments& arguments, Reply& reply) -> CommandResult {
         const auto& scis = service.site().scis();
         const auto chosen = chosen_scis(service, arguments);
         reply.table("scis", {"csci_id", "health", "healthy", "degraded", "unhealthy", "unknown", "admin",
                              "data_plane_lost", "gas", "computing_time_ms"});
         for (const std::string& id : chosen) {
           if (const auto sci = scis.find(id); sci != scis.end()) show_sci(id, sci->second, reply);
         }
         reply.table("instances", {"csci_id", "si_id", "health", "for_s", "admin", "limit", "active", "last_change"});
         for (const std::string& id : chosen) {
           const auto sci = scis.find(id);
           if (sci != scis.end() && reply.wanted()) show_instances(service, id, sci->second, reply);
         }
         return {};
       }});
}

}  // namespace margay::control
