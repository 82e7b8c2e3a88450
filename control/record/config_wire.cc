// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <set>

#include "control/record/wire.h"
#include "control/record/wire_values.h"
#include "margay/v1/sci_config.pb.h"

namespace margay::control {
namespace {

static_assert(enum_to_wire<v1::Recovery>(Recovery::kDirect) == v1::RECOVERY_DIRECT);
static_assert(enum_to_wire<v1::ComputingTimeMethod>(ComputingTimeMethod::kDynamic) ==
              v1::COMPUTING_TIME_METHOD_DYNAMIC);

void put(const ProbeConfig& probe, v1::ProbeConfig& out) {
  const auto& [http, interval, timeout, fall, rise] = probe;
  out.set_http(utf8(http));
  control::put(interval, *out.mutable_interval());
  control::put(timeout, *out.mutable_timeout());
  out.set_fall(fall);
  out.set_rise(rise);
}

ProbeConfig take(WireReader& reader, const v1::ProbeConfig& in) {
  ProbeConfig probe{.http = in.http()};
  if (in.has_interval()) probe.interval = reader.duration("interval of a probe", in.interval(), 1);
  if (in.has_timeout()) probe.timeout = reader.duration("timeout of a probe", in.timeout(), 1);
  if (in.has_fall()) probe.fall = reader.integer("fall", in.fall(), 1, kAny);
  if (in.has_rise()) probe.rise = reader.integer("rise", in.rise(), 1, kAny);
  return probe;
}

void put(const PerformanceConfig& performance, v1::PerformanceConfig& out) {
  const auto& [response_time, error_rate, cpu, interval, fall, rise] = performance;
  put_if(response_time, [&](Nanoseconds v) { control::put(v, *out.mutable_response_time()); });
  put_if(error_rate, [&](Share v) { out.set_error_rate(v.value()); });
  put_if(cpu, [&](const CpuRule& rule) {
    const auto& [above, time] = rule;
    out.mutable_cpu()->set_above(above.value());
    control::put(time, *out.mutable_cpu()->mutable_time());
  });
  control::put(interval, *out.mutable_interval());
  out.set_fall(fall);
  out.set_rise(rise);
}

PerformanceConfig take(WireReader& reader, const v1::PerformanceConfig& in) {
  PerformanceConfig performance;
  if (in.has_response_time()) performance.response_time = reader.duration("response_time", in.response_time());
  if (in.has_error_rate()) performance.error_rate = reader.share("error_rate", in.error_rate(), kShareMax);
  if (!in.has_cpu()) performance.cpu.reset();
  if (in.has_cpu() && in.cpu().has_above()) performance.cpu->above = reader.share("above", in.cpu().above(), kShareMax);
  if (in.has_cpu() && in.cpu().has_time()) performance.cpu->time = reader.duration("time of cpu", in.cpu().time());
  if (in.has_interval()) performance.interval = reader.duration("interval of performance", in.interval(), 1);
  if (in.has_fall()) performance.fall = reader.integer("fall", in.fall(), 1, kAny);
  if (in.has_rise()) performance.rise = reader.integer("rise", in.rise(), 1, kAny);
  return performance;
}

void put(const HealthConfig& health, v1::HealthConfig& out) {
  const auto& [recovery, confirm, liveness, readiness, performance, batch] = health;
  out.set_recovery(enum_to_wire<v1::Recovery>(recovery));
  control::put(confirm, *out.mutable_confirm_interval());
  put_if(liveness, [&](const ProbeConfig& v) { put(v, *out.mutable_liveness()); });
  put_if(readiness, [&](const ProbeConfig& v) { put(v, *out.mutable_readiness()); });
  put_if(performance, [&](const PerformanceConfig& v) { put(v, *out.mutable_performance()); });
  control::put(batch, *out.mutable_batch());
}

HealthConfig take(WireReader& reader, const v1::HealthConfig& in) {
  HealthConfig health{.liveness = {}};
  if (in.recovery() != v1::RECOVERY_UNSPECIFIED) {
    health.recovery = reader.enumerated("recovery", in.recovery(), Recovery::kDirect);
  }
  if (in.has_confirm_interval()) {
    health.confirm_interval = reader.duration("confirm_interval", in.confirm_interval(), 1);
  }
  if (in.has_liveness()) health.liveness = take(reader, in.liveness());
  if (in.has_readiness()) health.readiness = take(reader, in.readiness());
  if (in.has_performance()) health.performance = take(reader, in.performance());
  if (in.has_batch()) health.batch = reader.duration("batch", in.batch());
  return health;
}

void put(const MetricsConfig& metrics, v1::MetricsConfig& out) {
  const auto& [prometheus, interval, names] = metrics;
  out.set_prometheus(utf8(prometheus));
  control::put(interval, *out.mutable_interval());
  for (const auto& [metric, series, label, is, per, scale, complement] : names) {
    v1::MetricName& name = *out.add_names();
    name.set_metric(utf8(metric));
    name.set_series(utf8(series));
    name.set_label(utf8(label));
    name.set_is(utf8(is));
    name.set_per(utf8(per));
    name.set_scale(scale);
    name.set_complement(complement);
  }
}

MetricsConfig take(WireReader& reader, const v1::MetricsConfig& in) {
  MetricsConfig metrics{.prometheus = in.prometheus()};
  if (in.has_interval()) metrics.interval = reader.duration("interval of metrics", in.interval(), 1);
  for (const v1::MetricName& name : in.names()) {
    metrics.names.push_back({.metric = name.metric(),
                             .series = name.series(),
                             .label = name.label(),
                             .is = name.is(),
                             .per = name.per(),
                             .scale = name.has_scale() ? name.scale() : 1,
                             .complement = name.complement()});
  }
  return metrics;
}

void put(const ComputingTimeConfig& config, v1::ComputingTimeConfig& out) {
  const auto& [method, window, alpha, period] = config;
  out.set_method(enum_to_wire<v1::ComputingTimeMethod>(method));
  control::put(window, *out.mutable_window());
  out.set_alpha(alpha.value());
  control::put(period, *out.mutable_period());
}

ComputingTimeConfig take(WireReader& reader, const v1::ComputingTimeConfig& in) {
  ComputingTimeConfig config;
  if (in.method() != v1::COMPUTING_TIME_METHOD_UNSPECIFIED) {
    config.method = reader.enumerated("method", in.method(), ComputingTimeMethod::kDynamic);
  }
  if (in.has_window()) config.window = reader.duration("window", in.window(), 1);
  if (in.has_alpha()) config.alpha = reader.share("alpha", in.alpha(), 1);
  if (in.has_period()) config.period = reader.duration("period", in.period(), 1);
  return config;
}

void put(const ReportConfig& config, v1::ReportConfig& out) {
  const auto& [interval, gas_change, gas_absolute, computing_time_change, rate, critical] = config;
  control::put(interval, *out.mutable_interval());
  out.set_gas_change(gas_change.value());
  out.set_gas_absolute(gas_absolute);
  out.set_computing_time_change(computing_time_change.value());
  control::put(rate, *out.mutable_rate());
  control::put(critical, *out.mutable_critical());
}

ReportConfig take(WireReader& reader, const v1::ReportConfig& in) {
  ReportConfig config;
  if (in.has_interval()) config.interval = reader.duration("interval of report", in.interval(), 1);
  if (in.has_gas_change()) config.gas_change = reader.share("gas_change", in.gas_change(), kShareMax);
  if (in.has_gas_absolute()) config.gas_absolute = in.gas_absolute();
  if (in.has_computing_time_change()) {
    config.computing_time_change = reader.share("computing_time_change", in.computing_time_change(), kShareMax);
  }
  if (in.has_rate()) control::take(reader, in.rate(), config.rate);
  if (in.has_critical()) control::take(reader, in.critical(), config.critical);
  return config;
}

void put(const InstanceSpec& instance, v1::InstanceConfig& out) {
  const auto& [id, address, port, max_sessions, weight, barred] = instance;
  out.set_si_id(utf8(id));
  out.set_address(utf8(address));
  out.set_port(port);
  out.set_max_sessions(max_sessions);
  out.set_weight(weight);
  out.set_barred(barred);
}

InstanceSpec take(WireReader& reader, const v1::InstanceConfig& in) {
  InstanceSpec instance{.id = in.si_id(), .address = in.address()};
  if (instance.id.empty()) reader.fail("si_id", "a name");
  instance.port = static_cast<uint16_t>(reader.integer("port", in.port(), 0, 65535));
  instance.max_sessions = in.max_sessions();
  if (in.has_weight()) instance.weight = in.weight();
  instance.barred = in.barred();
  return instance;
}

void take_rest(WireReader& reader, const v1::SciConfig& in, SciSpec& spec) {
  if (in.has_safety_margin()) spec.safety_margin = reader.share("safety_margin", in.safety_margin(), 1);
  if (in.has_degradation_factor()) {
    spec.degradation_factor = reader.share("degradation_factor", in.degradation_factor(), 1);
  }
  if (in.has_drain_deadline()) spec.drain_deadline = reader.duration("drain_deadline", in.drain_deadline());
  if (in.has_price()) spec.price = in.price();
  if (in.has_reputation()) spec.reputation = in.reputation();
  if (in.has_security_level()) spec.security_level = in.security_level();
  spec.tells_load = in.tells_load();
  std::set<std::string> ids;
  for (const v1::InstanceConfig& instance : in.instances()) {
    spec.instances.push_back(take(reader, instance));
    if (!ids.insert(instance.si_id()).second) reader.fail("si_id", "each once, but " + instance.si_id() + " is twice");
  }
}

}  // namespace

void to_wire(const SciSpec& config, v1::SciConfig& out) {
  const auto& [csci_id, cs_id, health, metrics, computing_time, report, safety_margin, degradation_factor,
               drain_deadline, price, reputation, security_level, tells_load, instances] = config;
  out.set_csci_id(utf8(csci_id));
  out.set_cs_id(utf8(cs_id));
  put(health, *out.mutable_health());
  put(metrics, *out.mutable_metrics());
  put(computing_time, *out.mutable_computing_time());
  put(report, *out.mutable_report());
  out.set_safety_margin(safety_margin.value());
  out.set_degradation_factor(degradation_factor.value());
  control::put(drain_deadline, *out.mutable_drain_deadline());
  put_if(price, [&](uint32_t v) { out.set_price(v); });
  put_if(reputation, [&](uint32_t v) { out.set_reputation(v); });
  put_if(security_level, [&](uint32_t v) { out.set_security_level(v); });
  out.set_tells_load(tells_load);
  for (const InstanceSpec& instance : instances) put(instance, *out.add_instances());
}

Result<SciSpec> config_of(const v1::SciConfig& config) {
  WireReader reader;
  SciSpec spec{.csci_id = config.csci_id(), .cs_id = config.cs_id()};
  if (spec.csci_id.empty()) reader.fail("csci_id", "a name");
  if (config.has_health()) spec.health = take(reader, config.health());
  if (config.has_metrics()) spec.metrics = take(reader, config.metrics());
  if (config.has_computing_time()) spec.computing_time = take(reader, config.computing_time());
  if (config.has_report()) spec.report = take(reader, config.report());
  take_rest(reader, config, spec);
  if (!reader.fault().empty()) return Error{"config: " + reader.fault()};
  return spec;
}

}  // namespace margay::control
