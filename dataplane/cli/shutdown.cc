// SPDX-License-Identifier: Apache-2.0
// shutdown
#include "dataplane/cli/commands.h"

namespace margay::dp {

void add_shutdown(CommandTable& table, DataPlane& plane) {
  table.add({"shutdown", "end the daemon; without `dataplane.bindings` every binding is lost", "as SIGTERM does",
             [&plane](const Arguments&, Reply& reply) -> CommandResult {
               plane.stop.store(true, std::memory_order_relaxed);  // looked at by everyone again and again
               reply.field("shutdown", true, "the daemon ends");
               reply.end_session();
               return {};
             }});
}

}  // namespace margay::dp
