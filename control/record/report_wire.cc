// SPDX-License-Identifier: Apache-2.0
#include <google/protobuf/util/json_util.h>

#include "control/record/wire.h"
#include "control/record/wire_values.h"
#include "margay/v1/report.pb.h"

namespace margay::control {
namespace {

static_assert(enum_to_wire<v1::HealthState>(HealthState::kUnknown) == v1::HEALTH_STATE_UNKNOWN);
static_assert(enum_to_wire<v1::Admin>(Admin::kDisabled) == v1::ADMIN_DISABLED);
static_assert(enum_to_wire<v1::Trigger>(Trigger::kStop) == v1::TRIGGER_STOP);

void put(const Gas& gas, v1::Report& out) {
  const auto& [value, healthy_free, degraded_free, provisional, over_limit] = gas;
  out.set_gas(value);
  v1::GasBreakdown& breakdown = *out.mutable_gas_breakdown();
  breakdown.set_healthy_free(healthy_free);
  breakdown.set_degraded_free(degraded_free);
  breakdown.set_provisional(provisional);
  breakdown.set_over_limit(over_limit);
}

void put(const ComputingTime& time, v1::Report& out) {
  const auto& [value, minimum, maximum, minimum_tokens, maximum_tokens] = time;
  put_if(value, [&](uint32_t v) { out.set_computing_time_milliseconds(v); });
  put_if(minimum, [&](uint32_t v) { out.mutable_computing_time_minimum()->set_milliseconds(v); });
  put_if(maximum, [&](uint32_t v) { out.mutable_computing_time_maximum()->set_milliseconds(v); });
  put_if(minimum_tokens, [&](uint32_t v) { out.mutable_computing_time_minimum()->set_input_tokens(v); });
  put_if(maximum_tokens, [&](uint32_t v) { out.mutable_computing_time_maximum()->set_input_tokens(v); });
}

void put(const HealthSummary& summary, v1::HealthSummary& out) {
  const auto& [healthy, degraded, unhealthy, unknown] = summary;
  out.set_healthy(healthy);
  out.set_degraded(degraded);
  out.set_unhealthy(unhealthy);
  out.set_unknown(unknown);
}

void put(const InstanceDetail& detail, v1::InstanceDetail& out) {
  const auto& [id, health, admin, limit, active] = detail;
  out.set_si_id(utf8(id));
  out.set_health(enum_to_wire<v1::HealthState>(health));
  out.set_admin(enum_to_wire<v1::Admin>(admin));
  out.set_limit(limit);
  out.set_active_sessions(active);
}

// `ledger_at` is a time of this process; the report's ledger_age says it to others.
void put(const SciState& state, v1::Report& out) {
  const auto& [gas, computing_time, health, admin, lost, price, reputation, security_level, instances, ledger_at] =
      state;
  put_if(gas, [&](const Gas& g) { put(g, out); });
  put(computing_time, out);
  put(health, *out.mutable_health_summary());
  out.set_admin(enum_to_wire<v1::Admin>(admin));
  out.set_data_plane_lost(lost);
  put_if(price, [&](uint32_t v) { out.set_price(v); });
  put_if(reputation, [&](uint32_t v) { out.set_reputation(v); });
  put_if(security_level, [&](uint32_t v) { out.set_security_level(v); });
  for (const InstanceDetail& detail : instances) put(detail, *out.add_instances());
}

}  // namespace

void to_wire(const Report& report, v1::Report& out) {
  const auto& [csci_id, cs_id, timestamp_ms, epoch, sequence, full, trigger, reasons, interval, ledger_age, state,
               security_events, dropped] = report;
  out.set_csci_id(utf8(csci_id));
  out.set_cs_id(utf8(cs_id));
  put_unix_ms(timestamp_ms, *out.mutable_timestamp());
  out.set_epoch(epoch);
  out.set_sequence(sequence);
  out.set_kind(full ? v1::REPORT_KIND_FULL : v1::REPORT_KIND_DELTA);
  out.set_trigger(enum_to_wire<v1::Trigger>(trigger));
  for (size_t t = 0; t < kTriggers; ++t) {
    const auto reason = static_cast<Trigger>(t);
    if (reasons.has(reason)) out.add_reasons(enum_to_wire<v1::Trigger>(reason));
  }
  put(interval, *out.mutable_reporting_interval());
  put_if(ledger_age, [&](Nanoseconds age) { put(age, *out.mutable_ledger_age()); });
  put(state, out);
  for (const auto& [what, unix_ms] : security_events) {
    v1::SecurityEvent& event = *out.add_security_events();
    event.set_what(utf8(what));
    put_unix_ms(unix_ms, *event.mutable_time());
  }
  out.set_security_events_dropped(dropped);
}

std::string json_line(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  std::string line;
  const auto status = google::protobuf::util::MessageToJsonString(message, &line, options);
  return status.ok() ? line : "{}";
}

std::string json_line(const Report& report) {
  v1::Report message;
  to_wire(report, message);
  return json_line(message);
}

}  // namespace margay::control
