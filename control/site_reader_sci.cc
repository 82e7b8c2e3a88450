// SPDX-License-Identifier: Apache-2.0
// The control plane's keys of an entry of `scis`. Kinds are checked already, by the tables of the common reader; ranges
// and what takes two values to see are checked here.

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "common/site/site_sections.h"
#include "control/collection/http/presets.h"
#include "control/collection/http/samples.h"
#include "control/sci/metrics.h"
#include "control/site_sections.h"
#include "control/site_values.h"

namespace margay::control {
namespace {

constexpr Nanoseconds kReadinessInterval = 30 * kSecond;  // SCI-51
constexpr Nanoseconds kBatchMax = 60 * kSecond;
constexpr uint32_t kRunMax = 1000;  // checks in a row
constexpr size_t kSeriesBytesMax = 255;

constexpr Word<Recovery> kRecovery[] = {{"stepwise", Recovery::kStepwise}, {"direct", Recovery::kDirect}};
constexpr Word<ComputingTimeMethod> kMethods[] = {{"weighted-mean", ComputingTimeMethod::kWeightedMean},
                                                  {"median", ComputingTimeMethod::kMedian},
                                                  {"p95", ComputingTimeMethod::kP95},
                                                  {"dynamic", ComputingTimeMethod::kDynamic}};

// Of two keys that do not go together: the one that the file says, or else the other one, whose default is at fault.
void fail_either(const Field& field, const std::string& what, const Field& other, const std::string& what_of_other) {
  if (field.present()) {
    field.fail_expected(what);
  } else {
    other.fail_expected(what_of_other);
  }
}

void read_runs(const Field& field, uint32_t& fall, uint32_t& rise) {
  read_integer(field["fall"], 1, kRunMax, fall);
  read_integer(field["rise"], 1, kRunMax, rise);
}

void read_probe(const Field& field, ProbeConfig& probe) {
  read_url(field["http"], probe.http);
  read_interval(field["interval"], probe.interval);
  read_duration(field["timeout"], kMillisecond, kIntervalMax, probe.timeout);
  read_runs(field, probe.fall, probe.rise);
  if (probe.timeout < probe.interval) return;
  fail_either(field["timeout"], "less than the interval of " + format_duration(probe.interval), field["interval"],
              "more than the timeout of " + format_duration(probe.timeout));
}

bool is_named(const MetricsConfig& metrics, Metric metric) {
  return std::any_of(metrics.names.begin(), metrics.names.end(),
                     [metric](const MetricsConfig::Name& n) { return n.metric == name_of(metric); });
}

void read_cpu(const Field& field, const MetricsConfig& metrics, std::optional<CpuRule>& rule) {
  const bool measured = is_named(metrics, Metric::kCpu);
  if (!measured) rule.reset();
  if (!field.present()) return;
  if (!measured) field.fail_key("rests on the metric cpu, expected `metrics` of this SCI to name it");
  CpuRule cpu;
  read_share(field["above"], 100, cpu.above);
  read_duration(field["for"], 0, kIntervalMax, cpu.time);
  rule = cpu;
}

void read_performance(const Field& field, const MetricsConfig& metrics, PerformanceConfig& performance) {
  Nanoseconds response_time = 0;
  if (read_duration(field["response_time"], kMillisecond, kIntervalMax, response_time)) {
    performance.response_time = response_time;
  }
  const Field error_rate = field["error_rate"];
  if (error_rate.present()) read_share(error_rate, 100, performance.error_rate.emplace());
  if (error_rate.present() && metrics.prometheus.empty()) {
    error_rate.fail_key("rests on what is scraped, expected `metrics` of this SCI to say what");
  }
  read_cpu(field["cpu"], metrics, performance.cpu);
  read_interval(field["interval"], performance.interval);
  read_runs(field, performance.fall, performance.rise);

  if (!performance.response_time && !performance.error_rate && !performance.cpu) {
    field.fail_missing("says no bound, expected response_time, error_rate or cpu");
  }
}

// A measurement must not be judged twice.
void check_freshness(const Field& sci, const SciSpec& spec) {
  const auto& performance = spec.health.performance;
  if (!performance || (!performance->error_rate && !performance->cpu)) return;
  if (spec.metrics.interval <= performance->interval) return;
  fail_either(sci["health"]["performance"]["interval"],
              "at least the interval of the metrics that it judges, " + format_duration(spec.metrics.interval),
              sci["metrics"]["interval"],
              "at most the interval of the performance check, " + format_duration(performance->interval));
}

void read_health(const Field& field, const MetricsConfig& metrics, HealthConfig& health) {
  read_enum(field["recovery"], kRecovery, health.recovery);
  read_interval(field["confirm_interval"], health.confirm_interval);
  read_duration(field["batch"], 0, kBatchMax, health.batch);
  read_probe(field["liveness"], *health.liveness);
  const Field readiness = field["readiness"], performance = field["performance"];
  if (readiness.present()) {
    health.readiness = ProbeConfig{.interval = kReadinessInterval};
    if (require(readiness["http"])) read_probe(readiness, *health.readiness);
  }
  if (performance.present()) read_performance(performance, metrics, health.performance.emplace());
}

void read_preset(const Field& field, std::vector<MetricsConfig::Name>& names) {
  const auto index = read_word(field, preset_names());
  if (!index) return;
  const auto preset = find_preset(preset_names()[*index]);
  names.assign(preset.begin(), preset.end());
}

void read_names(const Field& field, std::vector<MetricsConfig::Name>& names) {
  if (field.node()->kind == YamlNode::Kind::kText) {
    read_preset(field, names);
    return;
  }
  std::vector<std::string_view> known;
  for (size_t m = 0; m < kMetrics; ++m) known.push_back(name_of(static_cast<Metric>(m)));
  refuse_unknown_keys(field, known);
  names.clear();
  for (size_t i = 0; i < field.size(); ++i) {
    std::string text;
    if (!read_text(field[i], kSeriesBytesMax, text)) continue;
    if (const auto name = read_series(field.node()->children[i].key, text)) {
      names.push_back(*name);
    } else {
      field[i].fail_expected("a series such as http_requests_total or http_requests_total{code=\"5xx\"}");
    }
  }
}

void read_metrics(const Field& field, MetricsConfig& metrics) {
  if (!field.present()) return;
  if (require(field["prometheus"])) read_url(field["prometheus"], metrics.prometheus);
  read_interval(field["interval"], metrics.interval);
  const auto preset = find_preset("node");
  metrics.names.assign(preset.begin(), preset.end());
  if (field["names"].present()) read_names(field["names"], metrics.names);
}

void read_computing_time(const Field& field, ComputingTimeConfig& config) {
  read_enum(field["method"], kMethods, config.method);
  read_interval(field["window"], config.window);
  read_factor(field["alpha"], config.alpha);
  read_interval(field["per"], config.period);
}

void read_report(const Field& field, ReportConfig& report) {
  read_interval(field["interval"], report.interval);
  read_share(field["gas_change"], kChangeMax, report.gas_change);
  read_integer(field["gas_absolute"], 0, std::numeric_limits<uint32_t>::max(), report.gas_absolute);
  read_share(field["computing_time_change"], kChangeMax, report.computing_time_change);
  read_bucket(field, report.rate);
  read_bucket(field["critical"], report.critical);
}

void read_level(const Field& field, uint32_t max, std::optional<uint32_t>& out) {
  uint32_t level = 0;
  if (read_integer(field, 0, max, level)) out = level;
}

}  // namespace

void read_sci(const Field& field, SciSpec& spec) {
  constexpr uint32_t kPriceMax = std::numeric_limits<uint32_t>::max(), kTenths = 10;
  read_metrics(field["metrics"], spec.metrics);
  read_health(field["health"], spec.metrics, spec.health);
  check_freshness(field, spec);
  read_computing_time(field["computing_time"], spec.computing_time);
  read_report(field["report"], spec.report);
  read_factor(field["safety_margin"], spec.safety_margin);
  read_level(field["price"], kPriceMax, spec.price);
  read_level(field["reputation"], kTenths, spec.reputation);
  read_level(field["security_level"], kTenths, spec.security_level);
  for (size_t i = 0; i < field["instances"].size(); ++i) {
    for (const char* key : {"metrics", "health"}) refuse_not_built(field["instances"][i][key]);
  }
}

}  // namespace margay::control
