// SPDX-License-Identifier: Apache-2.0
#include "control/c_sma/transform.h"

#include <algorithm>
#include <cmath>

namespace margay::c_sma {
namespace {

constexpr double kClose = 1e-3;  // nearer than this is there

}  // namespace

uint32_t Smoother::smooth(uint32_t raw, const Smoothing& config, uint64_t change, Nanoseconds now) {
  const double target = raw;
  if (!value_ || change != change_ || target <= *value_) {
    value_ = target;
  } else {
    const double periods = static_cast<double>(now - at_) / static_cast<double>(config.period);
    *value_ += (1 - std::pow(1 - config.alpha.value(), periods)) * (target - *value_);
    if (target - *value_ < kClose) value_ = target;
  }
  change_ = change;
  at_ = now;
  return static_cast<uint32_t>(std::floor(*value_));
}

Transformed transform(const northbound::Metrics& raw, const TransformConfig& config, Smoother* smoother,
                      uint64_t change, uint64_t healthy_scis, Nanoseconds now) {
  Transformed t{.raw = raw.gas, .metrics = raw};
  t.smoothed = t.raw;
  if (raw.gas && smoother != nullptr && config.gas_smoothing) {
    t.smoothed = smoother->smooth(*raw.gas, *config.gas_smoothing, change, now);
  }
  if (t.smoothed) t.with_margin = config.safety_margin.floor_of(*t.smoothed);
  t.metrics.gas = t.with_margin;

  const auto bound = [&config](std::optional<uint32_t>& ms) {
    if (ms) ms = std::clamp(*ms, config.computing_time_min_ms, config.computing_time_max_ms);
  };
  bound(t.metrics.computing_time_ms);
  bound(t.metrics.computing_time_minimum_ms);
  bound(t.metrics.computing_time_maximum_ms);

  if (t.metrics.gas.value_or(0) > 0 && healthy_scis == 0) {
    t.consistent = false;
    t.metrics.gas = 0;
  }
  return t;
}

}  // namespace margay::c_sma
