// SPDX-License-Identifier: Apache-2.0
#include "control/c_sma/report_checks.h"

#include <algorithm>
#include <string>
#include <utility>

namespace margay::c_sma {
namespace {

using control::Report;

std::optional<Judgement> malformed(std::string detail) { return refused(Refusal::kMalformed, std::move(detail)); }

std::string words(const HealthSummary& s) {
  return std::to_string(s.healthy) + " healthy, " + std::to_string(s.degraded) + " degraded, " +
         std::to_string(s.unhealthy) + " unhealthy, of these " + std::to_string(s.unknown) + " unknown";
}

std::optional<Judgement> check_instances(const Report& report) {
  HealthSummary details;
  std::vector<std::string_view> ids;
  for (const control::InstanceDetail& i : report.state.instances) {
    if (i.id.empty() || i.id.size() > kIdMax) return malformed("an SI-ID of " + std::to_string(i.id.size()) + " bytes");
    details.count(i.health);
    ids.push_back(i.id);
  }
  std::sort(ids.begin(), ids.end());
  if (const auto twice = std::adjacent_find(ids.begin(), ids.end()); twice != ids.end()) {
    return malformed("the instance " + std::string(*twice) + " comes twice");
  }
  // A delta leaves out instances that are as they were; the details may be left out as a whole (SCI-120).
  const HealthSummary& told = report.state.health;
  const bool whole = report.full && !report.state.instances.empty();
  const bool fits = details.healthy <= told.healthy && details.degraded <= told.degraded &&
                    details.unhealthy <= told.unhealthy && details.unknown <= told.unknown;
  if (whole ? details == told : fits) return std::nullopt;
  return refused(Refusal::kInconsistentCounts,
                 "the health summary says " + words(told) + ", the instances are " + words(details));
}

}  // namespace

std::optional<Judgement> check_format(const Report& report) {
  for (const auto& [name, id] : {std::pair("CSCI-ID", &report.csci_id), std::pair("CS-ID", &report.cs_id)}) {
    if (id->empty() || id->size() > kIdMax) {
      return malformed(std::string(name) + " of " + std::to_string(id->size()) + " bytes, expected 1 to 255");
    }
  }
  if (report.sequence == 0) return malformed("sequence 0, expected at least 1");
  if (static_cast<size_t>(report.trigger) >= control::kTriggers) return malformed("an unknown trigger");
  if (report.reporting_interval > kReportingIntervalMax) {
    return malformed("a reporting interval of " + std::to_string(report.reporting_interval / kSecond) +
                     " s, expected at most 86400 s");
  }
  const control::ComputingTime& time = report.state.computing_time;
  if (time.minimum && time.maximum && *time.minimum > *time.maximum) {
    return malformed("the minimum Computing Time is above the maximum");
  }
  const HealthSummary& health = report.state.health;
  if (health.unknown > health.unhealthy) {
    return refused(Refusal::kInconsistentCounts, "more unknown than unhealthy instances: " + words(health));
  }
  return check_instances(report);
}

std::optional<Judgement> check_ranges(const Report& report, const Ranges& ranges) {
  const control::SciState& s = report.state;
  const auto gas = s.gas ? std::optional(s.gas->value) : std::nullopt;
  const std::pair<ServiceMetric, std::optional<uint32_t>> values[] = {
      {ServiceMetric::kGas, gas},
      {ServiceMetric::kComputingTime, s.computing_time.value},
      {ServiceMetric::kComputingTime, s.computing_time.minimum},
      {ServiceMetric::kComputingTime, s.computing_time.maximum},
      {ServiceMetric::kPrice, s.price},
      {ServiceMetric::kReputation, s.reputation},
      {ServiceMetric::kSecurityLevel, s.security_level},
  };
  for (const auto& [metric, value] : values) {
    const Range& range = ranges[static_cast<size_t>(metric)];
    if (!value || range.holds(*value)) continue;
    return refused(Refusal::kOutOfRange, std::string(definition_of(metric).name) + " " + std::to_string(*value) +
                                             ", expected " + std::to_string(range.min) + " to " +
                                             std::to_string(range.max));
  }
  return std::nullopt;
}

}  // namespace margay::c_sma
