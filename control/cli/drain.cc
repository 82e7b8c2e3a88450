// SPDX-License-Identifier: Apache-2.0
// drain, undrain
#include "control/cli/commands.h"
#include "control/cli/kinds.h"

namespace margay::control {
namespace {

CommandResult drain(Service& service, const Arguments& arguments, bool on, Reply& reply) {
  const std::string& csci_id = arguments[0].text();
  if (service.site().scis().count(csci_id) == 0) return arguments[0].error("this SCI has not begun yet");
  const bool one = arguments.size() > 1;
  const auto id = one ? std::optional(arguments[1].text()) : std::nullopt;
  service.site().tell(csci_id, OperatorDrain{id, on}, read_clocks());
  reply.field("draining", on,
              csci_id + (one ? " " + *id : std::string()) + (on ? " takes no new sessions" : " takes new sessions"));
  return {};
}

}  // namespace

void add_drain(CommandTable& table, Service& service) {
  for (const char* what : {"CSCI-ID", "CSCI-ID SI-ID"}) {
    table.add({std::string("drain ") + what, "no new sessions; those that are there live until the drain deadline",
               "tells the core; over a restart of the control plane the data plane remembers it",
               [&service](const Arguments& a, Reply& reply) { return drain(service, a, true, reply); }});
  }
  for (const char* what : {"CSCI-ID", "CSCI-ID SI-ID"}) {
    table.add({std::string("undrain ") + what, "new sessions again", "tells the core",
               [&service](const Arguments& a, Reply& reply) { return drain(service, a, false, reply); }});
  }
}

}  // namespace margay::control
