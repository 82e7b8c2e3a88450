// SPDX-License-Identifier: Apache-2.0
#include "control/northbound/wire/row_wire.h"

#include <algorithm>

#include "control/northbound/wire/advertisement.h"

namespace margay::northbound {
namespace {

using control::enum_to_wire;
using control::put_if;

static_assert(enum_to_wire<v1::HealthState>(HealthState::kUnknown) == v1::HEALTH_STATE_UNKNOWN);
static_assert(enum_to_wire<v1::Admin>(Admin::kDisabled) == v1::ADMIN_DISABLED);
static_assert(enum_to_wire<v1::SourceState>(SourceState::kFailed) == v1::SOURCE_STATE_FAILED);
static_assert(enum_to_wire<v1::WithdrawReason>(WithdrawReason::kScope) == v1::WITHDRAW_REASON_SCOPE);

// A word that we do not know is taken for `otherwise`: the worst of them.
template <class Core, class Wire>
Core known_or(Wire value, Core last, Core otherwise) {
  const int number = static_cast<int>(value) - 1;
  return number >= 0 && number <= static_cast<int>(last) ? static_cast<Core>(number) : otherwise;
}

// Both may have wrapped, but not by half of the clock's range.
Nanoseconds age_of(Nanoseconds at, Nanoseconds now) {
  const Nanoseconds age = now - at;
  return static_cast<int64_t>(age) < 0 ? 0 : std::min(age, WireReader::kLongest);
}

void put(const Metrics& metrics, v1::Row& out) {
  const auto& [gas, time, minimum, maximum, price, reputation, security_level] = metrics;
  put_if(gas, [&](uint32_t v) { out.set_gas(v); });
  put_if(time, [&](uint32_t v) { out.set_computing_time_milliseconds(v); });
  put_if(minimum, [&](uint32_t v) { out.set_computing_time_minimum_milliseconds(v); });
  put_if(maximum, [&](uint32_t v) { out.set_computing_time_maximum_milliseconds(v); });
  put_if(price, [&](uint32_t v) { out.set_price(v); });
  put_if(reputation, [&](uint32_t v) { out.set_reputation(v); });
  put_if(security_level, [&](uint32_t v) { out.set_security_level(v); });
}

Metrics take_metrics(const v1::Row& in) {
  Metrics out;
  if (in.has_gas()) out.gas = in.gas();
  if (in.has_computing_time_milliseconds()) out.computing_time_ms = in.computing_time_milliseconds();
  if (in.has_computing_time_minimum_milliseconds()) {
    out.computing_time_minimum_ms = in.computing_time_minimum_milliseconds();
  }
  if (in.has_computing_time_maximum_milliseconds()) {
    out.computing_time_maximum_ms = in.computing_time_maximum_milliseconds();
  }
  if (in.has_price()) out.price = in.price();
  if (in.has_reputation()) out.reputation = in.reputation();
  if (in.has_security_level()) out.security_level = in.security_level();
  return out;
}

}  // namespace

void put(const RowVersion& version, v1::RowVersion& out) {
  out.set_epoch(version.epoch);
  out.set_commit(version.commit);
}

void put(const RowKey& key, v1::RowKey& out) {
  out.set_cs_id(key.cs_id);
  if (key.csci_id) {
    out.set_csci_id(*key.csci_id);
  } else {
    out.mutable_site();
  }
}

void put(const Withdrawal& withdrawal, v1::Withdrawal& out) {
  put(withdrawal.key, *out.mutable_key());
  put(withdrawal.version, *out.mutable_version());
  out.set_reason(enum_to_wire<v1::WithdrawReason>(withdrawal.reason));
}

void put(const Position& position, v1::Position& out) {
  out.set_cs_id(position.cs_id);
  put(position.through, *out.mutable_through());
}

std::string bytes_of(const Digest& digest) {
  std::string out;
  for (const uint64_t half : {digest.high, digest.low}) {
    for (unsigned i = 8; i-- > 0;) out += static_cast<char>(half >> (8 * i) & 0xff);
  }
  return out;
}

void to_wire(const Row& row, Nanoseconds now, v1::Row& out) {
  const auto& [key, version, metrics, health, sci_health, admin, source, scis, restored, measured_at, valid_for] = row;
  put(key, *out.mutable_key());
  put(version, *out.mutable_version());
  put(metrics, out);
  v1::HealthSummary& summary = *out.mutable_health_summary();
  summary.set_healthy(health.healthy);
  summary.set_degraded(health.degraded);
  summary.set_unhealthy(health.unhealthy);
  summary.set_unknown(health.unknown);
  out.set_health(enum_to_wire<v1::HealthState>(sci_health));
  out.set_admin(enum_to_wire<v1::Admin>(admin));
  put_if(source, [&](SourceState s) { out.set_source(enum_to_wire<v1::SourceState>(s)); });
  out.set_scis(scis);
  out.set_restored(restored);
  control::put(age_of(measured_at, now), *out.mutable_age());
  control::put(std::min(valid_for, WireReader::kLongest), *out.mutable_valid_for());
}

std::string take_id(WireReader& reader, std::string_view field, const std::string& in) {
  if (in.empty() || in.size() > kIdMax) reader.fail(field, "1 to 255 bytes");
  return in;
}

RowVersion take(WireReader& reader, std::string_view field, const v1::RowVersion& in) {
  if (in.epoch() == 0) reader.fail(field, "an epoch above 0");
  return {in.epoch(), in.commit()};
}

RowKey take(WireReader& reader, const v1::RowKey& in) {
  RowKey out{take_id(reader, "key.cs_id", in.cs_id())};
  switch (in.which_case()) {
    case v1::RowKey::kCsciId:
      out.csci_id = take_id(reader, "key.csci_id", in.csci_id());
      break;
    case v1::RowKey::kSite:
      break;
    case v1::RowKey::WHICH_NOT_SET:
      reader.fail("key", "a csci_id or the site");
      break;
  }
  return out;
}

Row take(WireReader& reader, const v1::Row& in, Nanoseconds now) {
  Row out{take(reader, in.key()), take(reader, "version", in.version())};
  out.metrics = take_metrics(in);
  const v1::HealthSummary& summary = in.health_summary();
  out.health = {summary.healthy(), summary.degraded(), summary.unhealthy(), summary.unknown()};
  if (summary.unknown() > summary.unhealthy()) reader.fail("health_summary.unknown", "at most as many as unhealthy");
  out.sci_health = known_or(in.health(), HealthState::kUnknown, HealthState::kUnhealthy);
  out.admin = known_or(in.admin(), Admin::kDisabled, Admin::kDisabled);
  if (in.has_source()) out.source = known_or(in.source(), SourceState::kFailed, SourceState::kFailed);
  if (out.key.csci_id && !in.has_source()) reader.fail("source", "one, in an SCI's row");
  if (!out.key.csci_id && in.has_source()) reader.fail("source", "none, in a site row");
  out.scis = in.scis();
  out.restored = in.restored();
  out.measured_at = now - reader.duration("age", in.age());
  out.valid_for = reader.duration("valid_for", in.valid_for(), 1);
  return out;
}

Withdrawal take(WireReader& reader, const v1::Withdrawal& in) {
  return {take(reader, in.key()), take(reader, "version", in.version()),
          known_or(in.reason(), WithdrawReason::kScope, WithdrawReason::kAdmin)};
}

Position take(WireReader& reader, const v1::Position& in) {
  return {take_id(reader, "position.cs_id", in.cs_id()), take(reader, "position.through", in.through())};
}

Digest take_digest(WireReader& reader, const std::string& in) {
  constexpr size_t kSize = 16;
  Digest out;
  if (in.size() != kSize) {
    reader.fail("digest", "16 bytes");
    return out;
  }
  for (size_t i = 0; i < kSize; ++i) {
    uint64_t& half = i < kSize / 2 ? out.high : out.low;
    half = half << 8 | static_cast<uint8_t>(in[i]);
  }
  return out;
}

Result<Row> row_of(const v1::Row& in, Nanoseconds now) {
  WireReader reader;
  Row row = take(reader, in, now);
  if (!reader.fault().empty()) return Error{reader.fault()};
  return row;
}

}  // namespace margay::northbound
