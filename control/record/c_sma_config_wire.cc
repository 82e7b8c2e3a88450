// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <set>

#include "control/record/c_sma_wire.h"
#include "control/record/wire_values.h"
#include "margay/v1/c_sma_config.pb.h"

namespace margay::control {
namespace {

using namespace c_sma;

static_assert(enum_to_wire<v1::Anomalous>(Anomalous::kFlag) == v1::ANOMALOUS_FLAG);
static_assert(enum_to_wire<v1::Consistency>(Consistency::kCsId) == v1::CONSISTENCY_CS_ID);
static_assert(enum_to_wire<v1::AtLimit>(AtLimit::kRefuse) == v1::AT_LIMIT_REFUSE);
static_assert(enum_to_wire<v1::Stale>(Stale::kDecay) == v1::STALE_DECAY);
static_assert(enum_to_wire<v1::Aggregate>(Aggregate::kP95) == v1::AGGREGATE_P95);
static_assert(enum_to_wire<v1::Advertise>(Advertise::kBoth) == v1::ADVERTISE_BOTH);

constexpr uint32_t kEntriesMax = 10'000'000;  // as in the site file
constexpr size_t kIdBytesMax = 255;

// ---- into messages

void put(const Range& range, v1::MetricRange& out) {
  out.set_min(range.min);
  out.set_max(range.max);
}

void put(const ValidationConfig& c, v1::ValidationConfig& out) {
  const auto& [ranges, gas, time, flapping, anomalous, skew_alarm, skew_refuse, consistency] = c;
  v1::MetricRanges& of = *out.mutable_ranges();
  put(ranges[0], *of.mutable_gas());
  put(ranges[1], *of.mutable_computing_time());
  put(ranges[2], *of.mutable_price());
  put(ranges[3], *of.mutable_reputation());
  put(ranges[4], *of.mutable_security_level());
  out.mutable_gas_anomaly()->set_change(gas.change.value());
  control::put(gas.within, *out.mutable_gas_anomaly()->mutable_within());
  out.mutable_gas_anomaly()->set_floor(gas.floor);
  out.mutable_computing_time_anomaly()->set_change(time.change.value());
  control::put(time.within, *out.mutable_computing_time_anomaly()->mutable_within());
  control::put(time.floor, *out.mutable_computing_time_anomaly()->mutable_floor());
  out.mutable_flapping()->set_transitions(flapping.transitions);
  control::put(flapping.within, *out.mutable_flapping()->mutable_within());
  out.set_anomalous(enum_to_wire<v1::Anomalous>(anomalous));
  control::put(skew_alarm, *out.mutable_skew_alarm());
  control::put(skew_refuse, *out.mutable_skew_refuse());
  out.set_consistency(enum_to_wire<v1::Consistency>(consistency));
}

void put(const CacheConfig& c, v1::CacheConfig& out) {
  const auto& [max_entries, at_limit, by_identity, by_cs_id, gas, time, optional, grace, stale] = c;
  out.set_max_entries(max_entries);
  out.set_at_limit(enum_to_wire<v1::AtLimit>(at_limit));
  out.set_quota_per_identity(by_identity.value());
  out.set_quota_per_cs_id(by_cs_id.value());
  put_if(gas, [&](Nanoseconds v) { control::put(v, *out.mutable_ttl_gas()); });
  put_if(time, [&](Nanoseconds v) { control::put(v, *out.mutable_ttl_computing_time()); });
  put_if(optional, [&](Nanoseconds v) { control::put(v, *out.mutable_ttl_optional()); });
  control::put(grace, *out.mutable_grace());
  out.set_stale(enum_to_wire<v1::Stale>(stale));
}

void put(const TransformConfig& c, v1::TransformConfig& out) {
  const auto& [safety_margin, min, max, computing_time, smoothing] = c;
  out.set_safety_margin(safety_margin.value());
  out.set_computing_time_min_milliseconds(min);
  out.set_computing_time_max_milliseconds(max);
  out.set_computing_time(enum_to_wire<v1::Aggregate>(computing_time));
  put_if(smoothing, [&](const Smoothing& s) {
    out.mutable_gas_smoothing()->set_alpha(s.alpha.value());
    control::put(s.period, *out.mutable_gas_smoothing()->mutable_period());
  });
}

void put(const UpdateConfig& c, v1::UpdateConfig& out) {
  const auto& [gas_change, gas_absolute, time_change, heartbeat, minimum, rate, critical, initial, max, advertise,
               valid_for] = c;
  out.set_gas_change(gas_change.value());
  out.set_gas_absolute(gas_absolute);
  out.set_computing_time_change(time_change.value());
  control::put(heartbeat, *out.mutable_heartbeat());
  control::put(minimum, *out.mutable_minimum_interval());
  control::put(rate, *out.mutable_rate());
  control::put(critical, *out.mutable_critical());
  control::put(initial, *out.mutable_backoff_initial());
  control::put(max, *out.mutable_backoff_max());
  out.set_advertise(enum_to_wire<v1::Advertise>(advertise));
  control::put(valid_for, *out.mutable_valid_for());
}

// ---- out of messages: what is absent stays as it is

using Wire = google::protobuf::Duration;

void take(WireReader& reader, std::string_view field, bool present, const Wire& in, Nanoseconds& out,
          Nanoseconds min = 0) {
  if (present) out = reader.duration(field, in, min);
}
void take(WireReader& reader, std::string_view field, bool present, const Wire& in, std::optional<Nanoseconds>& out) {
  if (present) out = reader.duration(field, in, 1);
}
void take(WireReader& reader, std::string_view field, bool present, double in, Share& out, double max = kShareMax) {
  if (present) out = reader.share(field, in, max);
}
void take(WireReader& reader, std::string_view field, bool present, uint32_t in, uint32_t& out, uint32_t min = 0,
          uint32_t max = kAny) {
  if (present) out = reader.integer(field, in, min, max);
}
template <class Core, class WireEnum>
void take_word(WireReader& reader, std::string_view field, WireEnum in, Core last, Core& out) {
  if (static_cast<int>(in) != 0) out = reader.enumerated(field, in, last);
}

void take(WireReader& reader, bool present, const v1::MetricRange& in, Range& out) {
  if (!present) return;
  out = {in.min(), in.max()};
  if (out.min > out.max) reader.fail("ranges", "a minimum not above the maximum");
}

void take(WireReader& r, const v1::ValidationConfig& in, ValidationConfig& out) {
  const v1::MetricRanges& of = in.ranges();
  take(r, of.has_gas(), of.gas(), out.ranges[0]);
  take(r, of.has_computing_time(), of.computing_time(), out.ranges[1]);
  take(r, of.has_price(), of.price(), out.ranges[2]);
  take(r, of.has_reputation(), of.reputation(), out.ranges[3]);
  take(r, of.has_security_level(), of.security_level(), out.ranges[4]);
  const v1::GasAnomaly& gas = in.gas_anomaly();
  take(r, "gas_anomaly.change", gas.has_change(), gas.change(), out.gas_anomaly.change);
  take(r, "gas_anomaly.within", gas.has_within(), gas.within(), out.gas_anomaly.within);
  take(r, "gas_anomaly.floor", gas.has_floor(), gas.floor(), out.gas_anomaly.floor);
  const v1::ComputingTimeAnomaly& time = in.computing_time_anomaly();
  take(r, "computing_time_anomaly.change", time.has_change(), time.change(), out.computing_time_anomaly.change);
  take(r, "computing_time_anomaly.within", time.has_within(), time.within(), out.computing_time_anomaly.within);
  take(r, "computing_time_anomaly.floor", time.has_floor(), time.floor(), out.computing_time_anomaly.floor);
  const v1::Flapping& flapping = in.flapping();
  take(r, "flapping.transitions", flapping.has_transitions(), flapping.transitions(), out.flapping.transitions);
  take(r, "flapping.within", flapping.has_within(), flapping.within(), out.flapping.within);
  take_word(r, "anomalous", in.anomalous(), Anomalous::kFlag, out.anomalous);
  take(r, "skew_alarm", in.has_skew_alarm(), in.skew_alarm(), out.skew_alarm);
  take(r, "skew_refuse", in.has_skew_refuse(), in.skew_refuse(), out.skew_refuse);
  take_word(r, "consistency", in.consistency(), Consistency::kCsId, out.consistency);
}

void take(WireReader& r, const v1::CacheConfig& in, CacheConfig& out) {
  take(r, "max_entries", in.has_max_entries(), in.max_entries(), out.max_entries, 1, kEntriesMax);
  take_word(r, "at_limit", in.at_limit(), AtLimit::kRefuse, out.at_limit);
  take(r, "quota_per_identity", in.has_quota_per_identity(), in.quota_per_identity(), out.quota_per_identity, 1);
  take(r, "quota_per_cs_id", in.has_quota_per_cs_id(), in.quota_per_cs_id(), out.quota_per_cs_id, 1);
  take(r, "ttl_gas", in.has_ttl_gas(), in.ttl_gas(), out.ttl_gas);
  take(r, "ttl_computing_time", in.has_ttl_computing_time(), in.ttl_computing_time(), out.ttl_computing_time);
  take(r, "ttl_optional", in.has_ttl_optional(), in.ttl_optional(), out.ttl_optional);
  take(r, "grace", in.has_grace(), in.grace(), out.grace);
  take_word(r, "stale", in.stale(), Stale::kDecay, out.stale);
}

void take(WireReader& r, const v1::TransformConfig& in, TransformConfig& out) {
  take(r, "safety_margin", in.has_safety_margin(), in.safety_margin(), out.safety_margin, 1);
  take(r, "computing_time_min_milliseconds", in.has_computing_time_min_milliseconds(),
       in.computing_time_min_milliseconds(), out.computing_time_min_ms);
  take(r, "computing_time_max_milliseconds", in.has_computing_time_max_milliseconds(),
       in.computing_time_max_milliseconds(), out.computing_time_max_ms);
  if (out.computing_time_min_ms > out.computing_time_max_ms) {
    r.fail("computing_time_min_milliseconds", "not above the maximum");
  }
  take_word(r, "computing_time", in.computing_time(), Aggregate::kP95, out.computing_time);
  if (!in.has_gas_smoothing()) return;
  Smoothing& smoothing = out.gas_smoothing.emplace();
  const v1::Smoothing& gas = in.gas_smoothing();
  take(r, "alpha", gas.has_alpha(), gas.alpha(), smoothing.alpha, 1);
  take(r, "period", gas.has_period(), gas.period(), smoothing.period, 1);
}

void take(WireReader& r, const v1::UpdateConfig& in, UpdateConfig& out) {
  take(r, "gas_change", in.has_gas_change(), in.gas_change(), out.gas_change);
  take(r, "gas_absolute", in.has_gas_absolute(), in.gas_absolute(), out.gas_absolute);
  take(r, "computing_time_change", in.has_computing_time_change(), in.computing_time_change(),
       out.computing_time_change);
  take(r, "heartbeat", in.has_heartbeat(), in.heartbeat(), out.heartbeat, 1);
  take(r, "minimum_interval", in.has_minimum_interval(), in.minimum_interval(), out.minimum_interval);
  if (in.has_rate()) control::take(r, in.rate(), out.rate);
  if (in.has_critical()) control::take(r, in.critical(), out.critical);
  take(r, "backoff_initial", in.has_backoff_initial(), in.backoff_initial(), out.backoff_initial, 1);
  take(r, "backoff_max", in.has_backoff_max(), in.backoff_max(), out.backoff_max, 1);
  if (out.backoff_initial > out.backoff_max) r.fail("backoff_initial", "not above backoff_max");
  take_word(r, "advertise", in.advertise(), Advertise::kBoth, out.advertise);
  take(r, "valid_for", in.has_valid_for(), in.valid_for(), out.valid_for, 1);
}

void take_accept(WireReader& reader, const v1::CSmaConfig& in, std::vector<AcceptedSci>& out) {
  std::set<std::string> seen;
  for (const v1::AcceptedSci& sci : in.accept()) {
    const auto ceiling = sci.has_gas_ceiling() ? std::optional(sci.gas_ceiling()) : std::nullopt;
    out.push_back({sci.csci_id(), sci.cs_id(), ceiling});
    for (const std::string& id : {sci.csci_id(), sci.cs_id()}) {
      if (id.empty() || id.size() > kIdBytesMax) reader.fail("accept", "ids of 1 to 255 bytes");
    }
    if (!seen.insert(sci.csci_id()).second) reader.fail("accept", "each once, but " + sci.csci_id() + " is twice");
  }
}

}  // namespace

void to_wire(const CSmaConfig& config, v1::CSmaConfig& out) {
  const auto& [identity, accept, validation, cache, self_doubt, transform, updates] = config;
  out.set_identity(utf8(identity));
  for (const auto& [csci_id, cs_id, gas_ceiling] : accept) {
    v1::AcceptedSci& sci = *out.add_accept();
    sci.set_csci_id(utf8(csci_id));
    sci.set_cs_id(utf8(cs_id));
    put_if(gas_ceiling, [&](uint32_t v) { sci.set_gas_ceiling(v); });
  }
  put(validation, *out.mutable_validation());
  put(cache, *out.mutable_cache());
  out.mutable_self_doubt()->set_share(self_doubt.share.value());
  put(self_doubt.hold, *out.mutable_self_doubt()->mutable_hold());
  put(transform, *out.mutable_transform());
  put(updates, *out.mutable_updates());
}

Result<CSmaConfig> config_of(const v1::CSmaConfig& config) {
  WireReader reader;
  CSmaConfig out{.identity = config.identity()};
  take_accept(reader, config, out.accept);
  take(reader, config.validation(), out.validation);
  take(reader, config.cache(), out.cache);
  take(reader, "share", config.self_doubt().has_share(), config.self_doubt().share(), out.self_doubt.share, 1);
  take(reader, "hold", config.self_doubt().has_hold(), config.self_doubt().hold(), out.self_doubt.hold);
  take(reader, config.transform(), out.transform);
  take(reader, config.updates(), out.updates);
  if (!reader.fault().empty()) return Error{"config: " + reader.fault()};
  return out;
}

}  // namespace margay::control
