// SPDX-License-Identifier: Apache-2.0
// show site, show updates
#include "control/cli/commands.h"
#include "control/cli/kinds.h"

namespace margay::control {

void add_show_site(CommandTable& table, Service& service) {
  table.add({"show site", "what is advertised: each row as it was committed last, the site's own without csci_id",
             "reads the rows", [&service](const Arguments&, Reply& reply) -> CommandResult {
               const Nanoseconds now = read_clocks().monotonic;
               reply.table("rows", {"cs_id", "csci_id", "gas", "computing_time_ms", "minimum_ms", "maximum_ms", "price",
                                    "reputation", "security_level", "health", "source", "scis", "restored", "age_s",
                                    "epoch", "commit"});
               for (const auto& [cs_id, part] : service.agent()->store().parts()) {
                 for (const auto& [csci_id, entry] : part.entries) {
                   if (!entry.row) continue;
                   if (!reply.wanted()) return {};
                   const northbound::Row& r = *entry.row;
                   const northbound::Metrics& m = r.metrics;
                   reply.row({cs_id, csci_id ? Cell(*csci_id) : Cell(), cell_of(m.gas), cell_of(m.computing_time_ms),
                              cell_of(m.computing_time_minimum_ms), cell_of(m.computing_time_maximum_ms),
                              cell_of(m.price), cell_of(m.reputation), cell_of(m.security_level), name_of(r.sci_health),
                              r.source ? Cell(northbound::name_of(*r.source)) : Cell(), csci_id ? Cell() : Cell(r.scis),
                              r.restored, seconds_of(now - r.measured_at), r.version.epoch, r.version.commit});
                 }
               }
               return {};
             }});
}

void add_show_updates(CommandTable& table, Service& service) {
  table.add({"show updates", "verdicts on reports by name, and commits of rows by CS-ID", "reads what was counted",
             [&service](const Arguments&, Reply& reply) -> CommandResult {
               const Agent& agent = *service.agent();
               const Agent::Verdicts& counted = agent.verdicts();
               reply.table("verdicts", {"verdict", "reports"});
               for (size_t v = 0; v < c_sma::kVerdicts; ++v) {
                 reply.row({c_sma::name_of(static_cast<c_sma::Verdict>(v)), counted.verdicts[v]});
               }
               reply.table("reasons", {"reason", "reports"});
               for (const auto& [reason, count] : counted.reasons) reply.row({reason, count});
               reply.table("cs_ids", {"cs_id", "rows", "newest_commit", "newest_critical", "last_cause"});
               for (const auto& [cs_id, part] : agent.store().parts()) {
                 const auto cause = counted.causes.find(cs_id);
                 reply.row({cs_id, part.rows, part.newest, part.newest_critical,
                            cause == counted.causes.end() ? Cell() : Cell(c_sma::name_of(cause->second))});
               }
               reply.field("commits", counted.commits);
               reply.field("critical", counted.critical);
               reply.field("first_round_over", agent.core().first_round_over());
               return {};
             }});
}

}  // namespace margay::control
