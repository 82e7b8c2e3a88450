// SPDX-License-Identifier: Apache-2.0
// stop
#include "dataplane/cli/commands.h"

namespace margay::dp {

void add_stop(CommandTable& table, DataPlane& plane) {
  table.add({"stop", "drop every packet of an SCI, counted as stopped; bindings stay",
             "publishes a changed table by RCU", [&plane](const Arguments&, Reply& reply) -> CommandResult {
               const bool changed = plane.set_forwarding(false);
               reply.field("forwarding", false,
                           changed ? "packets are dropped as stopped" : "packets are dropped as stopped already");
               return {};
             }});
}

}  // namespace margay::dp
