// SPDX-License-Identifier: Apache-2.0
#include "dataplane/cli/commands.h"

#include "common/check.h"
#include "common/cli/common_commands.h"
#include "dataplane/cli/kinds.h"

namespace margay::dp {

void register_commands(CommandTable& table, DataPlane& plane) {
  MARGAY_CHECK(plane.now != nullptr && !plane.mailboxes.empty());
  add_kinds(table, plane);
  using Add = void (*)(CommandTable&, DataPlane&);
  for (const Add add :
       {add_show_port, add_show_sci, add_show_instance, add_show_flow, add_show_slots, add_show_slots_audit,
        add_show_drops, add_show_neighbours, add_show_table, add_show_workers, add_show_bindings, add_show_config,
        add_clear_port, add_set_instance, add_record_table, add_start, add_stop}) {
    add(table, plane);
  }
  add_shutdown(table, "end the daemon; without `dataplane.bindings` every binding is lost",
               [&plane] { plane.stop.store(true, std::memory_order_relaxed); });  // looked at again and again
  add_quit(table);
  add_help(table);
  add_version(table, "margay-dataplane");
}

}  // namespace margay::dp
