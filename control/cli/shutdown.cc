// SPDX-License-Identifier: Apache-2.0
// shutdown
#include "control/cli/commands.h"

namespace margay::control {

void add_shutdown(CommandTable& table, Service& service) {
  table.add({"shutdown", "end the daemon after its last reports; the data plane goes on with the last table",
             "as SIGTERM does", [&service](const Arguments&, Reply& reply) -> CommandResult {
               service.stop();
               reply.field("shutdown", true, "the daemon ends");
               reply.end_session();
               return {};
             }});
}

}  // namespace margay::control
