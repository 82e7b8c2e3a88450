// SPDX-License-Identifier: Apache-2.0
// quit
#include "dataplane/cli/commands.h"

namespace margay::dp {

void add_quit(CommandTable& table, DataPlane&) {
  table.add({"quit", "end this shell; the daemon goes on", "touches nothing",
             [](const Arguments&, Reply& reply) -> CommandResult {
               reply.end_session();
               return {};
             }});
}

}  // namespace margay::dp
