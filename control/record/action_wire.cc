// SPDX-License-Identifier: Apache-2.0
#include "control/record/wire.h"
#include "control/record/wire_values.h"
#include "margay/v1/sci_events.pb.h"

namespace margay::control {
namespace {

void put(const ProbeRequest& a, v1::Record& record) {
  const auto& [id, kind, serial, url, address, port, deadline] = a;
  v1::ProbeRequest& out = *record.mutable_probe_request();
  out.set_si_id(utf8(id));
  out.set_kind(enum_to_wire<v1::CheckKind>(kind));
  out.set_serial(serial);
  out.set_url(utf8(url));
  out.set_address(utf8(address));
  out.set_port(port);
  control::put(deadline, *out.mutable_deadline());
}

void put(const ScrapeRequest& a, v1::Record& record) {
  const auto& [id, serial, url, deadline] = a;
  v1::ScrapeRequest& out = *record.mutable_scrape_request();
  out.set_si_id(utf8(id));
  out.set_serial(serial);
  out.set_url(utf8(url));
  control::put(deadline, *out.mutable_deadline());
}

void put(const TableChanged::Entry& entry, v1::TableEntry& out) {
  const auto& [id, health, health_since, serves_since, admin, drain_deadline, limit, weight, load] = entry;
  out.set_si_id(utf8(id));
  out.set_health(enum_to_wire<v1::HealthState>(health));
  control::put(health_since, *out.mutable_health_since());
  if (serves(health)) control::put(serves_since, *out.mutable_serves_since());
  out.set_admin(enum_to_wire<v1::Admin>(admin));
  if (admin == Admin::kDraining) control::put(drain_deadline, *out.mutable_drain_deadline());
  out.set_limit(limit);
  out.set_weight(weight);
  if (!load) return;
  out.mutable_load()->set_value(load->value);
  out.mutable_load()->set_active(load->active);
  control::put(load->until, *out.mutable_load()->mutable_until());
  control::put(load->lifetime, *out.mutable_load()->mutable_lifetime());
}

void put(const TableChanged& a, v1::Record& record) {
  v1::TableChanged& out = *record.mutable_table_changed();
  for (const TableChanged::Entry& entry : a.changed) put(entry, *out.add_changed());
  for (const std::string& id : a.removed) out.add_removed(utf8(id));
}

// A change is at the time of its record.
void put(const Transition& a, v1::Record& record) {
  const auto& [from, to, at, lasted, recovery, cause] = a.change;
  v1::Transition& out = *record.mutable_transition();
  out.set_si_id(utf8(a.id));
  out.set_from(enum_to_wire<v1::HealthState>(from));
  out.set_to(enum_to_wire<v1::HealthState>(to));
  control::put(lasted, *out.mutable_lasted());
  out.set_recovery(recovery);
  v1::HealthCause& why = *out.mutable_cause();
  if (cause.kind) {
    why.set_kind(enum_to_wire<v1::CheckKind>(*cause.kind));
    why.set_outcome(enum_to_wire<v1::Outcome>(cause.outcome));
  }
  why.set_count(cause.count);
  why.set_detail(utf8(cause.detail));
}

void put(const ReportReady& a, v1::Record& record) { to_wire(a.report, *record.mutable_report()); }

}  // namespace

void to_wire(const Action& action, Time at, v1::Record& out) {
  put_time(at, out);
  std::visit([&out](const auto& a) { put(a, out); }, action);
}

}  // namespace margay::control
