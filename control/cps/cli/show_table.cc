// SPDX-License-Identifier: Apache-2.0
// show table
#include <algorithm>

#include "common/monotonic.h"
#include "control/cps/cli/commands.h"

namespace margay::cps {
namespace {

const std::vector<std::string> kColumns = {"c_sma",    "cs_id",      "csci_id",           "health",     "source",
                                           "admin",    "gas",        "computing_time_ms", "minimum_ms", "maximum_ms",
                                           "price",    "reputation", "security_level",    "scis",       "healthy",
                                           "degraded", "unhealthy",  "unknown",           "epoch",      "commit",
                                           "age_s",    "received_s", "valid_for_s",       "state"};

Cell cell_of(const std::optional<uint32_t>& value) { return value ? Cell(*value) : Cell(); }
uint64_t seconds_of(Nanoseconds time) { return time / kSecond; }

void show(const std::string& c_sma, const ServiceTable::Part& part, const HeldRow& held, Nanoseconds now,
          Reply& reply) {
  const northbound::Row& r = held.row;
  const northbound::Metrics& m = r.metrics;
  const bool site = !r.key.csci_id;
  const char* state = ServiceTable::is_aged(part, held, now) ? "aged" : r.restored ? "restored" : "good";
  reply.row({c_sma,
             r.key.cs_id,
             site ? Cell() : Cell(*r.key.csci_id),
             name_of(r.sci_health),
             r.source ? Cell(northbound::name_of(*r.source)) : Cell(),
             site ? Cell() : Cell(name_of(r.admin)),
             cell_of(m.gas),
             cell_of(m.computing_time_ms),
             cell_of(m.computing_time_minimum_ms),
             cell_of(m.computing_time_maximum_ms),
             cell_of(m.price),
             cell_of(m.reputation),
             cell_of(m.security_level),
             site ? Cell(r.scis) : Cell(),
             r.health.healthy,
             r.health.degraded,
             r.health.unhealthy,
             r.health.unknown,
             r.version.epoch,
             r.version.commit,
             seconds_of(now - r.measured_at),
             seconds_of(now - std::max(held.received_at, part.renewed_at.value_or(0))),
             seconds_of(r.valid_for),
             state});
}

void show_part(const std::string& c_sma, const ServiceTable::Part& part, Nanoseconds now, Reply& reply) {
  for (const auto& [csci_id, row] : part.rows) {
    if (!reply.wanted()) return;
    show(c_sma, part, row, now, reply);
  }
}

bool is_wanted(const Arguments& arguments, const char* option, const std::string& value) {
  const auto* one = arguments.option(option);
  return one == nullptr || one->front().text() == value;
}

}  // namespace

void add_show_table(CommandTable& table, CpsService& service) {
  table.add({"show table [c-sma C-SMA] [cs-id CS-ID]",
             "the Computing Service Table: a row without csci_id is its CS-ID's whole site", "reads it",
             [&service](const Arguments& arguments, Reply& reply) -> CommandResult {
               const Nanoseconds now = monotonic_now();
               reply.table("rows", kColumns);
               for (const auto& [c_sma, site] : service.table().sites()) {
                 if (!is_wanted(arguments, "c-sma", c_sma)) continue;
                 for (const auto& [cs_id, part] : site.parts) {
                   if (is_wanted(arguments, "cs-id", cs_id)) show_part(c_sma, part, now, reply);
                 }
               }
               reply.field("aged", service.table().aged(now));
               return {};
             }});
}

}  // namespace margay::cps
