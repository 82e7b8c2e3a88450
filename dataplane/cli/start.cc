// SPDX-License-Identifier: Apache-2.0
// start
#include "dataplane/cli/commands.h"

namespace margay::dp {

void add_start(CommandTable& table, DataPlane& plane) {
  table.add({"start", "forward packets (as at the daemon's start)", "publishes a changed table by RCU",
             [&plane](const Arguments&, Reply& reply) -> CommandResult {
               const bool changed = plane.set_forwarding(true);
               reply.field("forwarding", true, changed ? "packets are forwarded" : "packets are forwarded already");
               return {};
             }});
}

}  // namespace margay::dp
