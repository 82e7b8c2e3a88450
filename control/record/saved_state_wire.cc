// SPDX-License-Identifier: Apache-2.0
#include "control/record/c_sma_wire.h"
#include "control/record/wire_values.h"
#include "margay/v1/c_sma_state.pb.h"

namespace margay::control {
namespace {

void put(const c_sma::SavedEntry& entry, v1::SavedEntry& out) {
  out.set_csci_id(entry.csci_id);
  out.set_cs_id(entry.cs_id);
  out.set_identity(utf8(entry.identity));
  const auto& [gas, time, fastest, slowest, price, reputation, security_level] = entry.metrics;
  put_if(gas, [&](uint32_t v) { out.set_gas(v); });
  put_if(time, [&](uint32_t v) { out.set_computing_time_milliseconds(v); });
  put_if(fastest, [&](uint32_t v) { out.set_computing_time_minimum_milliseconds(v); });
  put_if(slowest, [&](uint32_t v) { out.set_computing_time_maximum_milliseconds(v); });
  put_if(price, [&](uint32_t v) { out.set_price(v); });
  put_if(reputation, [&](uint32_t v) { out.set_reputation(v); });
  put_if(security_level, [&](uint32_t v) { out.set_security_level(v); });
  v1::HealthSummary& health = *out.mutable_health();
  health.set_healthy(entry.health.healthy);
  health.set_degraded(entry.health.degraded);
  health.set_unhealthy(entry.health.unhealthy);
  health.set_unknown(entry.health.unknown);
  out.set_admin(enum_to_wire<v1::Admin>(entry.admin));
  control::put(entry.reporting_interval, *out.mutable_reporting_interval());
  control::put(entry.age, *out.mutable_age());
}

c_sma::SavedEntry take_entry(WireReader& reader, const v1::SavedEntry& in) {
  c_sma::SavedEntry entry;
  entry.csci_id = in.csci_id();
  entry.cs_id = in.cs_id();
  entry.identity = in.identity();
  northbound::Metrics& m = entry.metrics;
  take_if(in.has_gas(), in.gas(), m.gas);
  take_if(in.has_computing_time_milliseconds(), in.computing_time_milliseconds(), m.computing_time_ms);
  take_if(in.has_computing_time_minimum_milliseconds(), in.computing_time_minimum_milliseconds(),
          m.computing_time_minimum_ms);
  take_if(in.has_computing_time_maximum_milliseconds(), in.computing_time_maximum_milliseconds(),
          m.computing_time_maximum_ms);
  take_if(in.has_price(), in.price(), m.price);
  take_if(in.has_reputation(), in.reputation(), m.reputation);
  take_if(in.has_security_level(), in.security_level(), m.security_level);
  const v1::HealthSummary& health = in.health();
  entry.health = {.healthy = health.healthy(),
                  .degraded = health.degraded(),
                  .unhealthy = health.unhealthy(),
                  .unknown = health.unknown()};
  if (health.unknown() > health.unhealthy()) reader.fail("entries.health.unknown", "at most as many as unhealthy");
  entry.admin = reader.enumerated("entries.admin", in.admin(), Admin::kDisabled);
  entry.reporting_interval = reader.duration("entries.reporting_interval", in.reporting_interval());
  entry.age = reader.duration("entries.age", in.age());
  return entry;
}

}  // namespace

void to_wire(const c_sma::SavedState& state, v1::CSmaState& out) {
  put_unix_ms(state.saved_ms, *out.mutable_saved());
  for (const auto& [csci_id, order] : state.orders) {
    v1::SavedOrder& saved = *out.add_orders();
    saved.set_csci_id(csci_id);
    saved.set_epoch(order.epoch);
    saved.set_sequence(order.sequence);
  }
  for (const c_sma::SavedEntry& entry : state.entries) put(entry, *out.add_entries());
}

Result<c_sma::SavedState> saved_state_of(const v1::CSmaState& in) {
  WireReader reader;
  c_sma::SavedState state{.saved_ms = unix_ms_of(in.saved()), .orders = {}, .entries = {}};
  for (const v1::SavedOrder& order : in.orders()) {
    state.orders.push_back({order.csci_id(), {order.epoch(), order.sequence()}});
  }
  for (const v1::SavedEntry& entry : in.entries()) state.entries.push_back(take_entry(reader, entry));
  if (!reader.fault().empty()) return Error{reader.fault()};
  return state;
}

}  // namespace margay::control
