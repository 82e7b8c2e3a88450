// SPDX-License-Identifier: Apache-2.0
// set instance CSCI-ID SI-ID {drain [DEADLINE]|enable|disable|max-sessions N|weight N}
#include <algorithm>

#include <fmt/format.h>

#include "dataplane/cli/commands.h"
#include "dataplane/cli/names.h"

namespace margay::dp {
namespace {

using Change = std::function<void(DataPlane&, SiteTable&, InstanceIndex, const Arguments&)>;

Nanoseconds drain_deadline(const DataPlane& plane, const Arguments& arguments) {
  if (const auto* given = arguments.option("DEADLINE")) {
    return static_cast<Nanoseconds>(given->front().duration().count());
  }
  const auto& scis = plane.config.scis;
  const auto found =
      std::find_if(scis.begin(), scis.end(), [&](const SciConfig& sci) { return sci.csci_id == arguments[0].text(); });
  return found == scis.end() ? SciConfig{}.drain_deadline : found->drain_deadline;
}

void drain(DataPlane& plane, SiteTable& next, InstanceIndex i, const Arguments& arguments) {
  next.instances.edit(i).admin = Admin::kDraining;
  next.instances.edit(i).drain_deadline = to_tick(plane.now() + drain_deadline(plane, arguments));
}

void set_admin(SiteTable& next, InstanceIndex i, Admin admin) {
  next.instances.edit(i).admin = admin;
  next.instances.edit(i).drain_deadline = 0;
}

void set_max_sessions(DataPlane& plane, SiteTable& next, InstanceIndex i, const Arguments& arguments) {
  const auto limit = static_cast<uint32_t>(arguments[2].number());
  next.instances.edit(i).max_sessions = limit;
  next.instances.edit(i).limit = limit;
  // The limit holds from here on, whichever table a worker has.
  plane.shared.set_limit(next, i, limit);
}

void add(CommandTable& table, DataPlane& plane, const std::string& rest, const std::string& help,
         const Change& change) {
  table.add({"set instance CSCI-ID SI-ID " + rest, help,
             "publishes a changed table by RCU; no worker stops or is waited for",
             [&plane, change](const Arguments& arguments, Reply& reply) -> CommandResult {
               const SiteTable& now = plane.table();
               if (now.sci_by_name(arguments[0].text()) == kNoIndex) return arguments[0].error("there is no such SCI");
               const InstanceIndex i = now.instance_by_name(arguments[0].text(), arguments[1].text());
               if (i == kNoIndex) return arguments[1].error("there is no such instance");
               std::unique_ptr<SiteTable> next = now.clone();
               change(plane, *next, i, arguments);
               plane.publish(std::move(next));
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
  add(table, plane, "drain [DEADLINE]", "no new flows; sessions go on until the deadline (else the SCI's)", drain);
  add(table, plane, "enable", "take new flows again",
      [](DataPlane&, SiteTable& next, InstanceIndex i, const Arguments&) { set_admin(next, i, Admin::kEnabled); });
  add(table, plane, "disable", "no new flows, and the sessions that it has end",
      [](DataPlane&, SiteTable& next, InstanceIndex i, const Arguments&) { set_admin(next, i, Admin::kDisabled); });
  add(table, plane, "max-sessions MAX-SESSIONS", "another limit; sessions beyond it go on and show as over",
      set_max_sessions);
  add(table, plane, "weight WEIGHT", "another weight; 0: no new flows",
      [](DataPlane&, SiteTable& next, InstanceIndex i, const Arguments& arguments) {
        next.instances.edit(i).weight = static_cast<uint16_t>(arguments[2].number());
      });
}

}  // namespace margay::dp
