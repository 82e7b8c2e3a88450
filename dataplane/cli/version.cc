// SPDX-License-Identifier: Apache-2.0
// version
#include "dataplane/cli/commands.h"

namespace margay::dp {

void add_version(CommandTable& table, DataPlane&) {
  table.add({"version", "the daemon's version", "reads nothing", [](const Arguments&, Reply& reply) -> CommandResult {
               reply.field("version", MARGAY_VERSION, "margay-dataplane " MARGAY_VERSION);
               return {};
             }});
}

}  // namespace margay::dp
