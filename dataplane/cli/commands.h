// SPDX-License-Identifier: Apache-2.0
#pragma once

// The data plane's commands. Each stands in a small file of its own, named after it, and reads through DataPlane
// alone: shared counters and ledgers, which anyone may read at any time, the site table, and, by bounded jobs through
// the mailboxes, a worker's private memory. No command stops a worker or waits for one longer than kPatience.
//
// Handlers run on the control thread (or under the mutex that stands for it, see common/cli/executor.h).

#include "common/cli/command_table.h"
#include "dataplane/data_plane.h"

namespace margay::dp {

// Adds every command. REQUIRES: plane.now is set; table and plane outlive each other's use.
void register_commands(CommandTable& table, DataPlane& plane);

// One function a file, in the order of `help`.
void add_show_port(CommandTable& table, DataPlane& plane);
void add_clear_port(CommandTable& table, DataPlane& plane);
void add_show_sci(CommandTable& table, DataPlane& plane);
void add_show_instance(CommandTable& table, DataPlane& plane);
void add_set_instance(CommandTable& table, DataPlane& plane);
void add_show_flow(CommandTable& table, DataPlane& plane);
void add_show_slots(CommandTable& table, DataPlane& plane);
void add_show_slots_audit(CommandTable& table, DataPlane& plane);
void add_show_drops(CommandTable& table, DataPlane& plane);
void add_show_neighbours(CommandTable& table, DataPlane& plane);
void add_show_table(CommandTable& table, DataPlane& plane);
void add_show_workers(CommandTable& table, DataPlane& plane);
void add_show_bindings(CommandTable& table, DataPlane& plane);
void add_show_config(CommandTable& table, DataPlane& plane);
void add_record_table(CommandTable& table, DataPlane& plane);
void add_start(CommandTable& table, DataPlane& plane);
void add_stop(CommandTable& table, DataPlane& plane);

}  // namespace margay::dp
