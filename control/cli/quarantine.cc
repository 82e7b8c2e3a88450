// SPDX-License-Identifier: Apache-2.0
// show quarantine, quarantine release, quarantine drop, reset epoch
#include "control/cli/commands.h"
#include "control/cli/kinds.h"

namespace margay::control {
namespace {

constexpr char kOperator[] = "operator by CLI";

}  // namespace

void add_show_quarantine(CommandTable& table, Service& service) {
  table.add({"show quarantine", "reports that wait for a second one or for an operator, and why", "reads them",
             [&service](const Arguments&, Reply& reply) -> CommandResult {
               const Nanoseconds now = read_clocks().monotonic;
               reply.table("quarantine", {"csci_id", "identity", "reason", "detail", "gas", "computing_time_ms",
                                          "health", "since_s", "times"});
               for (const c_sma::Quarantine::Item* item : service.agent()->core().quarantine().list()) {
                 const SciState& s = item->report.state;
                 reply.row({item->report.csci_id, item->identity, item->judgement.reason(), item->judgement.detail,
                            s.gas ? Cell(s.gas->value) : Cell(), cell_of(s.computing_time.value),
                            name_of(s.health.sci_health()), seconds_of(now - item->since), item->times});
               }
               return {};
             }});
}

void add_quarantine(CommandTable& table, Service& service) {
  const auto order = [&](const char* pattern, const char* help, auto event) {
    table.add({pattern, help, "audited", [&service, event](const Arguments& arguments, Reply& reply) -> CommandResult {
                 const std::string csci_id = arguments[0].text();
                 if (service.agent()->core().quarantine().find(csci_id) == nullptr) {
                   return arguments[0].error("nothing of this SCI waits in quarantine");
                 }
                 auto e = event;
                 e.csci_id = csci_id;
                 e.who = kOperator;
                 service.agent()->tell(e, read_clocks());
                 reply.field("csci_id", csci_id);
                 return {};
               }});
  };
  order("quarantine release SOURCE", "believe what waits in quarantine", c_sma::QuarantineRelease{});
  order("quarantine drop SOURCE", "forget what waits in quarantine", c_sma::QuarantineDrop{});
  table.add({"reset epoch SOURCE", "take the SCI's next report for new, whatever its epoch (D-14)", "audited",
             [&service](const Arguments& arguments, Reply& reply) -> CommandResult {
               service.agent()->tell(c_sma::EpochReset{arguments[0].text(), kOperator}, read_clocks());
               reply.field("csci_id", arguments[0].text());
               return {};
             }});
}

}  // namespace margay::control
