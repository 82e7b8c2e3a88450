// SPDX-License-Identifier: Apache-2.0
// set instance CSCI-ID SI-ID {drain [DEADLINE]|enable|disable|max-sessions N|weight N}, clear instance CSCI-ID SI-ID
#include <fmt/format.h>

#include "dataplane/cli/commands.h"
#include "dataplane/cli/names.h"

namespace margay::dp {
namespace {

using Edit = std::function<void(const DataPlane&, Override&, const Arguments&)>;

Nanoseconds drain_deadline(const DataPlane& plane, const Arguments& arguments) {
  if (const auto* given = arguments.option("DEADLINE")) {
    return static_cast<Nanoseconds>(given->front().duration().count());
  }
  return plane.table().scis[plane.table().sci_by_name(arguments[0].text())].drain_deadline;
}

void drain(const DataPlane& plane, Override& set, const Arguments& arguments) {
  set.admin = Admin::kDraining;
  set.drain_deadline = to_tick(plane.now() + drain_deadline(plane, arguments));
}

Edit admin(Admin wanted) {
  return [wanted](const DataPlane&, Override& set, const Arguments&) { set.admin = wanted; };
}

void add(CommandTable& table, DataPlane& plane, const std::string& line, const std::string& help, const Edit& edit) {
  table.add({line, help, "publishes a changed table by RCU; no worker stops or is waited for",
             [&plane, edit](const Arguments& arguments, Reply& reply) -> CommandResult {
               if (plane.table().sci_by_name(arguments[0].text()) == kNoIndex) {
                 return arguments[0].error("there is no such SCI");
               }
               if (plane.table().waiting) return arguments[0].error("no control plane has told of its instances yet");
               const InstanceIndex i = plane.table().instance_by_name(arguments[0].text(), arguments[1].text());
               if (i == kNoIndex) return arguments[1].error("there is no such instance");
               plane.set(i, [&](Override& set) { edit(plane, set, arguments); });
               const Instance& instance = plane.table().instances[i];
               const SlotView slots = plane.shared.slots.view(i);
               reply.table("instances", {"csci_id", "si_id", "admin", "weight", "max_sessions", "active", "over"});
               reply.row({arguments[0].text(), instance.si_id, name_of(instance.admin), instance.weight,
                          instance.max_sessions, slots.active, slots.over});
               return {};
             }});
}

}  // namespace

void add_set_instance(CommandTable& table, DataPlane& plane) {
  const std::string line = "set instance CSCI-ID SI-ID ";
  add(table, plane, line + "drain [DEADLINE]", "no new flows; sessions go on until the deadline (else the SCI's)",
      drain);
  add(table, plane, line + "enable", "take new flows again", admin(Admin::kEnabled));
  add(table, plane, line + "disable", "no new flows, and the sessions that it has end", admin(Admin::kDisabled));
  add(table, plane, line + "max-sessions MAX-SESSIONS", "another limit; sessions beyond it go on and show as over",
      [](const DataPlane&, Override& set, const Arguments& arguments) {
        set.max_sessions = static_cast<uint32_t>(arguments[2].number());
      });
  add(table, plane, line + "weight WEIGHT", "another weight; 0: no new flows",
      [](const DataPlane&, Override& set, const Arguments& arguments) {
        set.weight = static_cast<uint16_t>(arguments[2].number());
      });
  add(table, plane, "clear instance CSCI-ID SI-ID", "what an operator has set of it holds no longer",
      [](const DataPlane&, Override& set, const Arguments&) { set = Override{}; });
}

}  // namespace margay::dp
