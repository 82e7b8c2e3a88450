// SPDX-License-Identifier: Apache-2.0
#include "control/c_sma/believed.h"

#include <algorithm>

namespace margay::c_sma {
namespace {

using control::Report;
using northbound::Metrics;

MetricCache::Heard heard(const Report& report, SourceEvent event) {
  return {.event = event,
          .epoch = report.epoch,
          .sequence = report.sequence,
          .reporting_interval = report.reporting_interval};
}

Metrics metrics_of(const Report& report) {
  const control::SciState& s = report.state;
  return {.gas = s.gas ? std::optional(s.gas->value) : std::nullopt,
          .computing_time_ms = s.computing_time.value,
          .computing_time_minimum_ms = s.computing_time.minimum,
          .computing_time_maximum_ms = s.computing_time.maximum,
          .price = s.price,
          .reputation = s.reputation,
          .security_level = s.security_level};
}

}  // namespace

MetricCache::Heard believed(const Report& report, const CacheEntry& before) {
  MetricCache::Heard h = heard(report, SourceEvent::kReport);
  h.metrics = metrics_of(report);
  if (!report.full && before.known) {
    const auto keep = [](auto& value, const auto& was) {
      if (!value) value = was;
    };
    keep(h.metrics->price, before.metrics.price);
    keep(h.metrics->reputation, before.metrics.reputation);
    keep(h.metrics->security_level, before.metrics.security_level);
  }
  h.health = report.state.health;
  h.admin = report.state.admin;
  return h;
}

MetricCache::Heard doubted(const Report& report, const CacheEntry& before) {
  MetricCache::Heard h = heard(report, SourceEvent::kSign);
  h.doubted = true;
  if (!before.known || before.state == SourceState::kFailed) return h;
  Metrics worst = before.metrics;
  const Metrics told = metrics_of(report);
  if (told.gas && worst.gas) worst.gas = std::min(*worst.gas, *told.gas);
  if (told.computing_time_ms && worst.computing_time_ms) {
    worst.computing_time_ms = std::max(*worst.computing_time_ms, *told.computing_time_ms);
  }
  h.health = before.health;
  h.admin = before.admin;
  if (report.state.health.sci_health() > before.health.sci_health()) h.health = report.state.health;
  if (report.state.admin > before.admin) h.admin = report.state.admin;
  if (worst == before.metrics && h.health == before.health && h.admin == before.admin) return h;
  h.metrics = worst;
  return h;
}

}  // namespace margay::c_sma
