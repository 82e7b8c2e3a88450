// SPDX-License-Identifier: Apache-2.0
// `c_sma` of the site file. Kinds are checked already, by the tables of the common reader; ranges and what takes two
// values to see are checked here.

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "common/sci_config.h"
#include "common/site/site_sections.h"
#include "control/site_sections.h"
#include "control/site_values.h"

namespace margay::control {
namespace {

using namespace c_sma;

constexpr uint32_t kAnyNumber = std::numeric_limits<uint32_t>::max();
constexpr Nanoseconds kTimeoutMax = 60 * kSecond;
constexpr Word<Anomalous> kAnomalous[] = {{"quarantine", Anomalous::kQuarantine}, {"flag", Anomalous::kFlag}};
constexpr Word<Consistency> kConsistency[] = {{"site", Consistency::kSite}, {"cs-id", Consistency::kCsId}};
constexpr Word<AtLimit> kAtLimit[] = {{"evict", AtLimit::kEvict}, {"refuse", AtLimit::kRefuse}};
constexpr Word<Stale> kStale[] = {{"stand", Stale::kStand}, {"decay", Stale::kDecay}};
constexpr Word<Advertise> kAdvertise[] = {
    {"per-sci", Advertise::kPerSci}, {"per-site", Advertise::kPerSite}, {"both", Advertise::kBoth}};
constexpr Word<Aggregate> kAggregates[] = {{"gas-weighted-mean", Aggregate::kGasWeightedMean},
                                           {"min", Aggregate::kMin},
                                           {"max", Aggregate::kMax},
                                           {"mean", Aggregate::kMean},
                                           {"p95", Aggregate::kP95}};

void read_name(const Field& field, std::string& out) {
  if (require(field)) read_text(field, kIdBytesMax, out);
}

void read_ids(const Field& field, std::vector<std::string>& out) {
  for (size_t i = 0; i < field.size(); ++i) read_text(field[i], kIdBytesMax, out.emplace_back());
}

void read_accept(const Field& list, std::vector<AcceptedSci>& out) {
  std::set<std::string> seen;
  for (size_t i = 0; i < list.size(); ++i) {
    AcceptedSci& sci = out.emplace_back();
    read_name(list[i]["csci_id"], sci.csci_id);
    read_name(list[i]["cs_id"], sci.cs_id);
    uint32_t ceiling = 0;
    if (read_integer(list[i]["gas_ceiling"], 0, kAnyNumber, ceiling)) sci.gas_ceiling = ceiling;
    if (!seen.insert(sci.csci_id).second) list[i]["csci_id"].fail_expected("a CSCI-ID that stands in one entry only");
  }
}

// The file tells of these itself. What they may claim is what their instances may hold.
void accept_own(const std::vector<SciConfig>& scis, const Field& list, std::vector<AcceptedSci>& out) {
  for (const SciConfig& sci : scis) {
    uint64_t slots = 0;
    for (const InstanceConfig& instance : sci.instances) slots += instance.max_sessions;
    const auto ceiling = static_cast<uint32_t>(std::min<uint64_t>(slots, kAnyNumber));
    const auto listed = std::find_if(out.begin(), out.end(), [&](const auto& a) { return a.csci_id == sci.csci_id; });
    if (listed == out.end()) {
      out.push_back({sci.csci_id, sci.cs_id, ceiling});
      continue;
    }
    const Field entry = list[static_cast<size_t>(listed - out.begin())];
    if (listed->cs_id != sci.cs_id) entry["cs_id"].fail_expected("the CS-ID that `scis` names, " + sci.cs_id);
    if (!listed->gas_ceiling) listed->gas_ceiling = ceiling;
  }
}

void read_https(const Field& field, std::string& out) {
  constexpr std::string_view kScheme = "https://";
  constexpr size_t kUrlBytesMax = 2047;
  if (!read_text(field, kUrlBytesMax, out)) return;
  const bool has_host = out.starts_with(kScheme) && out.size() > kScheme.size() &&
                        out.find_first_of("/:?#", kScheme.size()) != kScheme.size();
  if (!has_host || out.find_first_of(" @{}") != std::string::npos) {
    field.fail_expected("a URL such as https://sci.example.net:7446/v1/report/192.0.2.10:80");
  }
}

void read_pull(const Field& list, const std::vector<AcceptedSci>& accept, std::vector<PullTarget>& out) {
  std::set<std::string> seen;
  for (size_t i = 0; i < list.size(); ++i) {
    const Field entry = list[i];
    PullTarget& target = out.emplace_back();
    read_name(entry["csci_id"], target.csci_id);
    const bool listed = std::any_of(accept.begin(), accept.end(),
                                    [&](const AcceptedSci& sci) { return sci.csci_id == target.csci_id; });
    if (!listed) entry["csci_id"].fail_expected("a CSCI-ID that `accept` lists");
    if (!seen.insert(target.csci_id).second) entry["csci_id"].fail_expected("a CSCI-ID that stands in one entry only");
    read_host_port(entry["grpc"], target.grpc);
    read_https(entry["http"], target.url);
    if (entry["grpc"].present() == entry["http"].present()) entry.fail("expected one of `grpc` and `http`");
    read_duration(entry["every"], 0, kIntervalMax, target.every);
    if (target.every > 0 && target.every < kSecond) entry["every"].fail_expected("0s, or at least 1s");
    read_duration(entry["timeout"], 100 * kMillisecond, kTimeoutMax, target.timeout);
  }
}

void read_range(const Field& field, Range& range) {
  read_integer(field["min"], 0, kAnyNumber, range.min);
  read_integer(field["max"], 0, kAnyNumber, range.max);
  if (range.min > range.max) {
    field[field["min"].present() ? "min" : "max"].fail_expected("a minimum not above the maximum");
  }
}

// Durations; `max_least`: of the maximum.
void read_range(const Field& field, Nanoseconds longest, Nanoseconds max_least, uint32_t& min_ms, uint32_t& max_ms) {
  Nanoseconds min = min_ms * kMillisecond, max = max_ms * kMillisecond;
  read_duration(field["min"], 0, longest, min);
  read_duration(field["max"], max_least, longest, max);
  if (min > max) field[field["min"].present() ? "min" : "max"].fail_expected("a minimum not above the maximum");
  for (const char* key : {"min", "max"}) {
    if ((key[1] == 'i' ? min : max) % kMillisecond != 0) field[key].fail_expected("whole milliseconds");
  }
  min_ms = static_cast<uint32_t>(min / kMillisecond);
  max_ms = static_cast<uint32_t>(max / kMillisecond);
}

// D-26: by the metrics' definitions where the file says nothing.
void read_ranges(const Field& field, Ranges& ranges) {
  const auto of = [&ranges](ServiceMetric m) -> Range& { return ranges[static_cast<size_t>(m)]; };
  Range& time = of(ServiceMetric::kComputingTime);
  read_range(field["gas"], of(ServiceMetric::kGas));
  read_range(field["computing_time"], kIntervalMax, 0, time.min, time.max);
  read_range(field["price"], of(ServiceMetric::kPrice));
  read_range(field["reputation"], of(ServiceMetric::kReputation));
  read_range(field["security_level"], of(ServiceMetric::kSecurityLevel));
}

void read_validation(const Field& field, ValidationConfig& v) {
  read_ranges(field["ranges"], v.ranges);
  read_share(field["gas_anomaly"]["change"], kChangeMax, v.gas_anomaly.change);
  read_interval(field["gas_anomaly"]["within"], v.gas_anomaly.within);
  read_integer(field["gas_anomaly"]["floor"], 0, kAnyNumber, v.gas_anomaly.floor);
  read_share(field["computing_time_anomaly"]["change"], kChangeMax, v.computing_time_anomaly.change);
  read_interval(field["computing_time_anomaly"]["within"], v.computing_time_anomaly.within);
  read_duration(field["computing_time_anomaly"]["floor"], 0, kIntervalMax, v.computing_time_anomaly.floor);
  read_integer(field["flapping"]["transitions"], 1, 1000, v.flapping.transitions);
  read_interval(field["flapping"]["within"], v.flapping.within);
  read_enum(field["anomalous"], kAnomalous, v.anomalous);
  const Field skew = field["clock_skew"];
  read_interval(skew["alarm"], v.skew_alarm);
  read_interval(skew["refuse"], v.skew_refuse);
  if (v.skew_alarm > v.skew_refuse) {
    skew[skew["alarm"].present() ? "alarm" : "refuse"].fail_expected("an alarm not above what is refused");
  }
  read_enum(field["consistency"], kConsistency, v.consistency);
}

void read_ttl(const Field& field, std::optional<Nanoseconds>& out) {
  Nanoseconds ttl = 0;
  if (read_duration(field, kIntervalMin, kIntervalMax, ttl)) out = ttl;
}

void read_cache(const Field& field, CacheConfig& cache) {
  read_integer(field["max_entries"], 1, 10'000'000, cache.max_entries);
  read_enum(field["at_limit"], kAtLimit, cache.at_limit);
  read_share(field["quota_per_identity"], 100, cache.quota_per_identity);
  read_ttl(field["ttl"]["gas"], cache.ttl_gas);
  read_ttl(field["ttl"]["computing_time"], cache.ttl_computing_time);
  read_ttl(field["ttl"]["optional"], cache.ttl_optional);
  read_duration(field["grace"], 0, kIntervalMax, cache.grace);
  read_enum(field["stale"], kStale, cache.stale);
}

void read_transform(const Field& field, TransformConfig& transform) {
  read_factor(field["safety_margin"], transform.safety_margin);
  constexpr Nanoseconds kHour = 3600 * kSecond;  // CSMA-39
  const Field time = field["computing_time"];
  read_range(time, kHour, kMillisecond, transform.computing_time_min_ms, transform.computing_time_max_ms);
  read_enum(time["aggregate"], kAggregates, transform.computing_time);
  const Field smoothing = field["smoothing"]["gas"];
  if (!smoothing.present()) return;
  Smoothing& gas = transform.gas_smoothing.emplace();
  read_factor(smoothing["alpha"], gas.alpha);
  read_interval(smoothing["per"], gas.period);
}

void read_updates(const Field& field, UpdateConfig& updates) {
  read_share(field["gas_change"], kChangeMax, updates.gas_change);
  read_integer(field["gas_absolute"], 0, kAnyNumber, updates.gas_absolute);
  read_share(field["computing_time_change"], kChangeMax, updates.computing_time_change);
  read_interval(field["heartbeat"], updates.heartbeat);
  read_duration(field["minimum_interval"], 0, kIntervalMax, updates.minimum_interval);
  read_bucket(field, updates.rate);
  read_bucket(field["critical"], updates.critical);
  const Field backoff = field["backoff"];
  read_interval(backoff["initial"], updates.backoff_initial);
  read_interval(backoff["max"], updates.backoff_max);
  if (updates.backoff_initial > updates.backoff_max) {
    backoff[backoff["initial"].present() ? "initial" : "max"].fail_expected("a first wait not above the longest");
  }
  read_enum(field["advertise"], kAdvertise, updates.advertise);
  read_interval(field["valid_for"], updates.valid_for);
  if (updates.valid_for > updates.heartbeat) return;
  field[field["valid_for"].present() ? "valid_for" : "heartbeat"].fail_expected(
      "rows that are valid for longer than a heartbeat");
}

void read_c_ps(const Field& list, std::vector<CpsTarget>& out) {
  std::set<std::string> seen;
  for (size_t i = 0; i < list.size(); ++i) {
    const Field entry = list[i];
    std::string protocol;
    if (require(entry["protocol"]) && read_text(entry["protocol"], kIdBytesMax, protocol) && protocol != "grpc") {
      entry["protocol"].fail(protocol + " is not built yet, expected grpc");
    }
    CpsTarget& target = out.emplace_back();
    if (require(entry["address"])) read_host_port(entry["address"], target.address);
    read_name(entry["identity"], target.identity);
    if (require(entry["cs_ids"])) read_ids(entry["cs_ids"], target.cs_ids);
    if (!seen.insert(target.identity).second) entry["identity"].fail_expected("an identity that stands once");
  }
}

}  // namespace

void read_c_sma(const Field& field, const Field& security, const std::vector<SciConfig>& scis, CSmaSpec& out) {
  read_name(field["identity"], out.core.identity);
  std::optional<AddressPort> listen;
  read_listen(field["listen"], "0.0.0.0", "7443", listen);
  if (listen) out.listen = listen->format();
  read_accept(field["accept"], out.core.accept);
  accept_own(scis, field["accept"], out.core.accept);
  read_pull(field["pull"], out.core.accept, out.pull);
  read_validation(field["validation"], out.core.validation);
  read_cache(field["cache"], out.core.cache);
  read_share(field["self_doubt"]["share"], 100, out.core.self_doubt.share);
  read_interval(field["self_doubt"]["hold"], out.core.self_doubt.hold);
  refuse_not_built(field["policies"]);
  refuse_not_built(field["maintenance_windows"]);
  read_transform(field["transform"], out.core.transform);
  read_updates(field["updates"], out.core.updates);
  read_c_ps(field["c_ps"], out.c_ps);
  if (security.present()) return;
  for (const char* key : {"listen", "pull", "c_ps"}) {
    if (field[key].present()) field[key].fail_key("goes by mutual TLS, expected `security` to name the certificates");
  }
}

void read_reports_to(const Field& field, const Field& security, ReportsTo& to) {
  if (require(field["address"])) read_host_port(field["address"], to.address);
  read_text(field["identity"], kIdBytesMax, to.identity);
  read_text(field["certificate"], kPathBytesMax, to.certificate);
  read_text(field["key"], kPathBytesMax, to.key);
  if (to.certificate.empty() != to.key.empty()) field.fail("expected `certificate` and `key` together");
  if (!security.present()) field.fail_key("goes by mutual TLS, expected `security` to name the CA");
}

void read_pulled_by(const Field& field, const Field& security, PulledBy& by) {
  read_listen(field["grpc"], "0.0.0.0", "7445", by.grpc);
  read_listen(field["http"], "0.0.0.0", "7446", by.http);
  read_text(field["identity"], kIdBytesMax, by.identity);
  if (!field["grpc"].present() && !field["http"].present()) field.fail("expected `grpc`, `http` or both");
  if (!security.present()) field.fail_key("goes by mutual TLS, expected `security` to name the certificates");
}

}  // namespace margay::control
