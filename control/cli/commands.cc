// SPDX-License-Identifier: Apache-2.0
#include "control/cli/commands.h"

#include "common/cli/common_commands.h"

namespace margay::control {

void register_commands(CommandTable& table, Service& service) {
  add_reload(table, service);
  add_shutdown(table, service);
  add_quit(table);
  add_help(table);
  add_version(table, "margay-control");
}

}  // namespace margay::control
