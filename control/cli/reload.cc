// SPDX-License-Identifier: Apache-2.0
// reload
#include "control/cli/commands.h"

namespace margay::control {

void add_reload(CommandTable& table, Service& service) {
  table.add({"reload", "read the site file again; what is wrong in it leaves everything as it is",
             "as SIGHUP does: states, counts and bindings stay",
             [&service](const Arguments&, Reply& reply) -> CommandResult {
               const auto changes = service.reload();
               if (!changes) return changes.error();
               reply.field("file", service.site().spec().site.file);
               reply.table("changes", {"change"});
               for (const std::string& change : *changes) reply.row({change});
               return {};
             }});
}

}  // namespace margay::control
