// SPDX-License-Identifier: Apache-2.0
// Reports as others wrote them.

#include <google/protobuf/util/json_util.h>

#include "control/record/wire.h"
#include "control/record/wire_values.h"
#include "margay/v1/report.pb.h"

namespace margay::control {
namespace {

// What is not said, or not known here, is UNHEALTHY.
HealthState health_of(v1::HealthState wire) {
  const bool known = wire > v1::HEALTH_STATE_UNSPECIFIED && wire <= v1::HEALTH_STATE_UNKNOWN;
  return known ? static_cast<HealthState>(static_cast<int>(wire) - 1) : HealthState::kUnhealthy;
}

Admin admin_of(WireReader& reader, std::string_view field, v1::Admin wire) {
  if (wire == v1::ADMIN_UNSPECIFIED) return Admin::kEnabled;
  return reader.enumerated(field, wire, Admin::kDisabled);
}

void take_metrics(const v1::Report& in, SciState& state) {
  if (in.has_gas()) {
    const v1::GasBreakdown& parts = in.gas_breakdown();
    state.gas = Gas{.value = in.gas(),
                    .healthy_free = parts.healthy_free(),
                    .degraded_free = parts.degraded_free(),
                    .provisional = parts.provisional(),
                    .over_limit = parts.over_limit()};
  }
  ComputingTime& time = state.computing_time;
  const v1::ComputingTimeBound &fast = in.computing_time_minimum(), &slow = in.computing_time_maximum();
  take_if(in.has_computing_time_milliseconds(), in.computing_time_milliseconds(), time.value);
  take_if(fast.has_milliseconds(), fast.milliseconds(), time.minimum);
  take_if(slow.has_milliseconds(), slow.milliseconds(), time.maximum);
  take_if(fast.has_input_tokens(), fast.input_tokens(), time.minimum_tokens);
  take_if(slow.has_input_tokens(), slow.input_tokens(), time.maximum_tokens);
  take_if(in.has_price(), in.price(), state.price);
  take_if(in.has_reputation(), in.reputation(), state.reputation);
  take_if(in.has_security_level(), in.security_level(), state.security_level);
}

void take_health(WireReader& reader, const v1::Report& in, SciState& state) {
  if (!in.has_health_summary()) reader.fail("health_summary", "how many instances are in which state");
  const v1::HealthSummary& counts = in.health_summary();
  state.health = {.healthy = counts.healthy(),
                  .degraded = counts.degraded(),
                  .unhealthy = counts.unhealthy(),
                  .unknown = counts.unknown()};
  for (const v1::InstanceDetail& detail : in.instances()) {
    state.instances.push_back({.id = detail.si_id(),
                               .health = health_of(detail.health()),
                               .admin = admin_of(reader, "instances.admin", detail.admin()),
                               .limit = detail.limit(),
                               .active = detail.active_sessions()});
  }
}

}  // namespace

Result<Report> report_of(const v1::Report& in) {
  WireReader reader;
  Report out;
  out.csci_id = in.csci_id();
  out.cs_id = in.cs_id();
  out.epoch = in.epoch();
  out.sequence = in.sequence();
  if (!in.has_timestamp()) reader.fail("timestamp", "when the metrics were made");
  out.timestamp_ms = unix_ms_of(in.timestamp());
  if (in.kind() != v1::REPORT_KIND_FULL && in.kind() != v1::REPORT_KIND_DELTA) reader.fail("kind", "FULL or DELTA");
  out.full = in.kind() == v1::REPORT_KIND_FULL;
  out.trigger = reader.enumerated("trigger", in.trigger(), Trigger::kStop);
  out.reasons.add(out.trigger);
  for (const int reason : in.reasons()) {
    out.reasons.add(reader.enumerated("reasons", static_cast<v1::Trigger>(reason), Trigger::kStop));
  }
  out.reporting_interval = reader.duration("reporting_interval", in.reporting_interval());
  if (in.has_ledger_age()) out.ledger_age = reader.duration("ledger_age", in.ledger_age());
  out.state.admin = admin_of(reader, "admin", in.admin());
  out.state.data_plane_lost = in.data_plane_lost();
  take_metrics(in, out.state);
  take_health(reader, in, out.state);
  for (const v1::SecurityEvent& event : in.security_events()) {
    out.security_events.push_back({event.what(), unix_ms_of(event.time())});
  }
  out.security_events_dropped = in.security_events_dropped();
  if (!reader.fault().empty()) return Error{reader.fault()};
  return out;
}

Result<Report> report_of_json(std::string_view text) {
  v1::Report message;
  const auto status = google::protobuf::util::JsonStringToMessage(std::string(text), &message);
  if (!status.ok()) return Error{"is no report in Protobuf's JSON: " + std::string(status.message().substr(0, 200))};
  return report_of(message);
}

}  // namespace margay::control
