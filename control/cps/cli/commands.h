// SPDX-License-Identifier: Apache-2.0
#pragma once

// margay-cps's commands, each in a small file of its own. Handlers run in whoever's turn it is (common/cli/executor.h):
// they must not wait.

#include "common/cli/command_table.h"
#include "control/cps/cps_service.h"

namespace margay::cps {

// REQUIRES: table and service outlive each other's use
void register_commands(CommandTable& table, CpsService& service);

void add_show_table(CommandTable& table, CpsService& service);
void add_show_sessions(CommandTable& table, CpsService& service);
void add_select(CommandTable& table, CpsService& service);
void add_sync(CommandTable& table, CpsService& service);

}  // namespace margay::cps
