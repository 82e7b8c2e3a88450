// SPDX-License-Identifier: Apache-2.0
// sync
#include "control/cps/cli/commands.h"

namespace margay::cps {

void add_sync(CommandTable& table, CpsService& service) {
  table.add({"sync C-SMA", "ask the C-SMA for a snapshot of all its rows", "CSMA-160",
             [&service](const Arguments& arguments, Reply& reply) -> CommandResult {
               const std::string c_sma = arguments[0].text();
               if (!service.request_sync(c_sma)) return arguments[0].error("this C-SMA has no session");
               reply.field("asked", c_sma, "asked " + c_sma + " for a snapshot");
               return {};
             }});
}

}  // namespace margay::cps
