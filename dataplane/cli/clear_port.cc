// SPDX-License-Identifier: Apache-2.0
// clear port stats {all|PORT}
#include <fmt/format.h>

#include "dataplane/cli/commands.h"
#include "dataplane/cli/kinds.h"

namespace margay::dp {
namespace {

CommandResult clear(DataPlane& plane, PortIndex port, Reply& reply) {
  const std::string& name = plane.config.ports[port].name;
  if (Result<void> r = plane.ports.clear_stats(port); !r) return in("port " + name, r.error());
  reply.row({name, true});
  return {};
}

}  // namespace

void add_clear_port(CommandTable& table, DataPlane& plane) {
  const std::string safety = "asks the driver; the counters of workers and instances stay";
  table.add({"clear port stats all", "set the statistics of every port to 0", safety,
             [&plane](const Arguments&, Reply& reply) -> CommandResult {
               reply.table("ports", {"port", "cleared"});
               for (size_t p = 0; p < plane.config.ports.size(); ++p) {
                 if (CommandResult r = clear(plane, static_cast<PortIndex>(p), reply); !r) return r;
               }
               return {};
             }});
  table.add({"clear port stats PORT", "set the statistics of one port to 0", safety,
             [&plane](const Arguments& arguments, Reply& reply) -> CommandResult {
               const std::optional<PortIndex> port = port_of(plane, arguments[0]);
               if (!port) return arguments[0].error("there is no such port");
               reply.table("ports", {"port", "cleared"});
               return clear(plane, *port, reply);
             }});
}

}  // namespace margay::dp
