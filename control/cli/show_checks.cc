// SPDX-License-Identifier: Apache-2.0
// show checks
#include "control/cli/commands.h"
#include "control/cli/kinds.h"

namespace margay::control {
namespace {

constexpr std::string_view kOutcomes[] = {"pass", "fail", "error"};

void show(const std::string& csci_id, const SciStatistics& sci, Nanoseconds now, Reply& reply) {
  for (const auto& [id, instance] : sci.instances) {
    for (size_t k = 0; k < instance.checks.size(); ++k) {
      if (!instance.checks[k]) continue;
      const CheckCounts& c = *instance.checks[k];
      const bool passed = c.latency.count() > 0;
      reply.row({csci_id, id, name_of(static_cast<CheckKind>(k)), kOutcomes[static_cast<size_t>(c.last)],
                 seconds_of(now - c.last_at), milliseconds_of(c.last_latency),
                 passed ? Cell(milliseconds_of(c.latency.mean())) : Cell(), c.of(Outcome::kPass), c.of(Outcome::kFail),
                 c.of(Outcome::kError), c.last_detail.empty() ? Cell() : Cell(c.last_detail)});
    }
    reply.row({csci_id, id, "scrape", Cell(), Cell(), Cell(), Cell(), instance.scrapes_passed, instance.scrapes_failed,
               Cell(), Cell()});
  }
}

}  // namespace

void add_show_checks(CommandTable& table, Service& service) {
  table.add({"show checks [sci CSCI-ID]", "each instance's checks: last answer, latency, counts; how late work begins",
             "reads what was counted", [&service](const Arguments& arguments, Reply& reply) -> CommandResult {
               const Statistics& statistics = service.statistics();
               const Histogram& slip = statistics.slip();
               reply.field("under_way", service.site().asking());
               reply.field("slip_mean_ms", slip.count() > 0 ? Cell(milliseconds_of(slip.mean())) : Cell());
               reply.field("slip_max_ms", milliseconds_of(statistics.slip_max()));
               reply.table("checks", {"csci_id", "si_id", "check", "last", "age_s", "latency_ms", "mean_ms", "passed",
                                      "failed", "errors", "detail"});
               const Nanoseconds now = read_clocks().monotonic;
               for (const std::string& id : chosen_scis(service, arguments)) {
                 const auto sci = statistics.scis().find(id);
                 if (sci != statistics.scis().end() && reply.wanted()) show(id, sci->second, now, reply);
               }
               return {};
             }});
}

}  // namespace margay::control
