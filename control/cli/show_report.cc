// SPDX-License-Identifier: Apache-2.0
// show report
#include "control/cli/commands.h"
#include "control/cli/kinds.h"

namespace margay::control {
namespace {

const std::vector<std::string> kColumns = {"csci_id",       "age_s",
                                           "cs_id",         "epoch",
                                           "sequence",      "kind",
                                           "trigger",       "reasons",
                                           "gas",           "healthy_free",
                                           "degraded_free", "provisional",
                                           "over_limit",    "computing_time_ms",
                                           "minimum_ms",    "maximum_ms",
                                           "healthy",       "degraded",
                                           "unhealthy",     "unknown",
                                           "admin",         "data_plane_lost",
                                           "ledger_age_ms", "security_events"};

std::vector<std::string> reasons_of(const Report& report) {
  std::vector<std::string> reasons;
  for (size_t t = 0; t < kTriggers; ++t) {
    const auto reason = static_cast<Trigger>(t);
    if (report.reasons.has(reason)) reasons.emplace_back(name_of(reason));
  }
  return reasons;
}

void show(const std::string& csci_id, const SciStatistics& sci, Reply& reply) {
  const Report& r = *sci.last_report;
  const SciState& s = r.state;
  const auto slots = [&s](uint64_t Gas::*part) { return s.gas ? Cell((*s.gas).*part) : Cell(); };
  reply.row({csci_id,
             seconds_of(read_clocks().monotonic - sci.last_report_at),
             r.cs_id,
             r.epoch,
             r.sequence,
             r.full ? "full" : "delta",
             name_of(r.trigger),
             reasons_of(r),
             s.gas ? Cell(s.gas->value) : Cell(),
             slots(&Gas::healthy_free),
             slots(&Gas::degraded_free),
             slots(&Gas::provisional),
             slots(&Gas::over_limit),
             cell_of(s.computing_time.value),
             cell_of(s.computing_time.minimum),
             cell_of(s.computing_time.maximum),
             s.health.healthy,
             s.health.degraded,
             s.health.unhealthy,
             s.health.unknown,
             name_of(s.admin),
             s.data_plane_lost,
             r.ledger_age ? Cell(milliseconds_of(*r.ledger_age)) : Cell(),
             r.security_events.size()});
}

}  // namespace

void add_show_report(CommandTable& table, Service& service) {
  table.add({"show report [sci CSCI-ID]", "the last report of each SCI, and how many went out by trigger",
             "reads what was counted", [&service](const Arguments& arguments, Reply& reply) -> CommandResult {
               const auto& all = service.statistics().scis();
               reply.table("last", kColumns, Reply::Layout::kBlocks);
               const auto chosen = chosen_scis(service, arguments);
               for (const std::string& id : chosen) {
                 const auto sci = all.find(id);
                 if (sci != all.end() && sci->second.last_report) show(id, sci->second, reply);
               }
               reply.table("reports", {"csci_id", "trigger", "reports"});
               for (const std::string& id : chosen) {
                 const auto sci = all.find(id);
                 for (size_t t = 0; sci != all.end() && t < kTriggers; ++t) {
                   const uint64_t count = sci->second.reports[t];
                   if (count > 0) reply.row({id, name_of(static_cast<Trigger>(t)), count});
                 }
               }
               return {};
             }});
}

}  // namespace margay::control
