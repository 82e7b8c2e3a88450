// SPDX-License-Identifier: Apache-2.0
// show table
#include <fmt/format.h>

#include "common/monotonic.h"
#include "dataplane/cli/commands.h"

namespace margay::dp {
namespace {

using shared_table::InstanceRecord;

double seconds_since(Nanoseconds then) {
  const Nanoseconds now = monotonic_now();
  return now > then ? static_cast<double>(now - then) / static_cast<double>(kSecond) : 0;
}

std::string sentence_of(const DataPlane& plane, const TableStatus& status) {
  const SiteTable& table = plane.table();
  if (status.control != 0) {
    return fmt::format("control plane: process {}, connected for {:.1f} s", status.control,
                       seconds_since(status.since));
  }
  if (table.waiting) return "no control plane has sent a table yet: new flows are refused as no_snapshot";
  return fmt::format("fail-static: forwarding on by the table of generation {}, without a control plane for {:.1f} s",
                     table.generation, seconds_since(status.since));
}

void show_link(const DataPlane& plane, Reply& reply) {
  if (!plane.table_status) {
    reply.field("control", "none", "no control plane (dataplane.control: none): every instance counts as HEALTHY");
    return;
  }
  const TableStatus status = plane.table_status();
  const bool connected = status.control != 0;
  reply.field("control", plane.config.control_socket);
  reply.field("connected", connected, sentence_of(plane, status));
  reply.field("fail_static", !connected && !plane.table().waiting);
  reply.field("pid", connected ? Cell(status.control) : Cell());
  reply.field("seconds", status.since > 0 ? Cell(seconds_since(status.since)) : Cell());
  reply.field("generation", plane.table().generation);
  reply.field("acked", status.acked);
  reply.field("connections", status.connections);
  reply.field("taken", status.taken);
  reply.field("refused", status.refused);
  reply.field("last_refusal", status.last_refusal.empty() ? Cell() : Cell(status.last_refusal));
  reply.field("stalled_workers", std::vector<uint64_t>(status.stalled.begin(), status.stalled.end()));
}

void show_recording(const DataPlane& plane, Reply& reply) {
  const auto recording = plane.recording();
  reply.field("recording", recording ? Cell(recording->path) : Cell());
  reply.field("recorded_lines", recording ? Cell(recording->lines) : Cell());
  reply.field("recording_ended", recording && !recording->fault.empty() ? Cell(recording->fault) : Cell());
}

template <class T>
Cell known(const std::optional<T>& value) {
  return value ? Cell(*value) : Cell();
}

void show(const DataPlane& plane, const Sci& sci, const InstanceRecord& record, Reply& reply) {
  const Instance& instance = plane.table().instances[record.index];
  const std::optional<Override> set = plane.override_of(record.index);
  const bool sets_admin = set && set->admin;
  reply.row({sci.csci_id, instance.si_id, record.index, record.generation, name_of(instance.health),
             record.health_since > 0 ? Cell(seconds_since(record.health_since)) : Cell(), instance.limit,
             name_of(instance.admin), sets_admin ? Cell(name_of(*set->admin)) : Cell(),
             set ? known(set->max_sessions) : Cell(), set ? known(set->weight) : Cell()});
}

}  // namespace

void add_show_table(CommandTable& table, DataPlane& plane) {
  table.add({"show table", "the control plane, and what it says of each instance; what an operator has set over that",
             "reads the site table", [&plane](const Arguments&, Reply& reply) -> CommandResult {
               show_link(plane, reply);
               show_recording(plane, reply);
               reply.table("instances", {"csci_id", "si_id", "index", "generation", "health", "health_seconds", "limit",
                                         "admin", "set_admin", "set_max_sessions", "set_weight"});
               for (const Sci& sci : plane.table().scis) {
                 if (sci.gone()) continue;
                 for (const InstanceRecord& record : sci.record->instances) {
                   if (reply.wanted()) show(plane, sci, record, reply);
                 }
               }
               return {};
             }});
}

}  // namespace margay::dp
