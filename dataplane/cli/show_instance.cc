// SPDX-License-Identifier: Apache-2.0
// show instance
#include <algorithm>
#include <cmath>

#include "dataplane/cli/commands.h"
#include "dataplane/cli/names.h"
#include "dataplane/cli/totals.h"

namespace margay::dp {
namespace {

// What stands over the site file: an operator has set it.
std::vector<std::string> set_by_operator(const std::optional<Override>& set) {
  std::vector<std::string> names;
  if (!set) return names;
  if (set->admin) names.emplace_back("admin");
  if (set->max_sessions) names.emplace_back("max-sessions");
  if (set->weight) names.emplace_back("weight");
  return names;
}

Cell drain_seconds_left(const DataPlane& plane, const Instance& instance) {
  if (instance.admin != Admin::kDraining) return {};
  return std::max(0.0, seconds_between(to_tick(plane.now()), instance.drain_deadline));
}

uint64_t passed_over(const InstanceTotals& t, Refusal why) { return t.passed_over[static_cast<size_t>(why)]; }

// To the microsecond, which is what was measured.
Cell milliseconds(double nanoseconds) { return std::round(nanoseconds / 1e3) / 1e3; }
Cell mean_ms(const Histogram& h) { return h.count() > 0 ? milliseconds(static_cast<double>(h.mean())) : Cell(); }
Cell p95_ms(const Histogram& h) {
  const auto p95 = quantile_of(h.counts, 0.95);
  return p95 ? milliseconds(*p95) : Cell();
}

// What selection goes by: what was seen of its response times lately, and what it reported of its load.
Cell recent_ms(const DataPlane& plane, InstanceIndex i) {
  const ResponseTime::Estimate e = plane.shared.response_time(i, to_tick(plane.now()));
  return e.worth > 0 ? milliseconds(e.microseconds * 1e3) : Cell();
}
Cell load_percent(const DataPlane& plane, const Instance& instance) {
  if (instance.worth_of_load(to_tick(plane.now())) <= 0) return {};
  return std::round(static_cast<double>(instance.load) * 1e3) / 10;
}

void show(const DataPlane& plane, const Sci& sci, InstanceIndex i, Reply& reply) {
  const Instance& instance = plane.table().instances[i];
  const InstanceTotals t = totals_of(plane.shared, i);
  const InstanceDurations d = durations_of(plane.shared, i);
  reply.row({sci.csci_id,
             instance.si_id,
             address_of(instance),
             name_of(instance.health),
             name_of(instance.admin),
             drain_seconds_left(plane, instance),
             instance.weight,
             instance.max_sessions,
             set_by_operator(plane.override_of(i)),
             t.active,
             t.bindings,
             t.opened,
             passed_over(t, Refusal::kNoFreeSlot),
             passed_over(t, Refusal::kProvisionalSpent),
             passed_over(t, Refusal::kEndpointConflict),
             t.packets_in,
             t.bytes_in,
             t.packets_out,
             t.bytes_out,
             t.provisional,
             t.syn_unanswered,
             t.resets,
             mean_ms(d.handshakes),
             p95_ms(d.handshakes),
             mean_ms(d.responses),
             p95_ms(d.responses),
             recent_ms(plane, i),
             load_percent(plane, instance),
             instance.barred});
}

}  // namespace

void add_show_instance(CommandTable& table, DataPlane& plane) {
  table.add({"show instance [sci CSCI-ID]",
             "each instance: condition, sessions, packets; what an operator has set over the site file",
             "reads shared counters", [&plane](const Arguments& arguments, Reply& reply) -> CommandResult {
               const auto* only = arguments.option("sci");
               reply.table("instances", {"csci_id",
                                         "si_id",
                                         "address",
                                         "health",
                                         "admin",
                                         "drain_seconds_left",
                                         "weight",
                                         "max_sessions",
                                         "set_by_operator",
                                         "active",
                                         "bindings",
                                         "opened",
                                         "passed_over_full",
                                         "passed_over_provisional",
                                         "passed_over_conflict",
                                         "packets_in",
                                         "bytes_in",
                                         "packets_out",
                                         "bytes_out",
                                         "provisional",
                                         "syn_unanswered",
                                         "resets",
                                         "handshake_mean_ms",
                                         "handshake_p95_ms",
                                         "response_mean_ms",
                                         "response_p95_ms",
                                         "response_recent_ms",
                                         "load_percent",
                                         "barred"});
               for (const Sci& sci : plane.table().scis) {
                 if (only != nullptr && only->front().text() != sci.csci_id) continue;
                 for (const InstanceIndex i : sci.instances) {
                   if (reply.wanted()) show(plane, sci, i, reply);
                 }
               }
               return {};
             }});
}

}  // namespace margay::dp
