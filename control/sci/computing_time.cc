// SPDX-License-Identifier: Apache-2.0
#include "control/sci/computing_time.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace margay::control {
namespace {

constexpr double kMillisecondsMax = 3'600'000;  // of the field

uint32_t to_milliseconds(double nanoseconds) {
  constexpr double kNoise = 1e-7;  // of the arithmetic, far below a nanosecond
  const double up = std::ceil(nanoseconds / static_cast<double>(kMillisecond) - kNoise);
  return static_cast<uint32_t>(std::clamp(up, 1.0, kMillisecondsMax));
}

double factor_of(const InstanceInput& i, Share degradation_factor) {
  if (!contributes(i)) return 0;
  return i.health == HealthState::kDegraded ? degradation_factor.value() : 1;
}

std::optional<double> response_of(const InstanceInput& i) {
  if (i.responses != nullptr && i.responses->count() > 0) return static_cast<double>(i.responses->mean());
  if (i.response_time) return static_cast<double>(*i.response_time);
  return std::nullopt;
}

struct Means {
  ComputingTime bounds;  // no value yet
  double by_load = 0, load_weight = 0;
  double by_factor = 0, factor_weight = 0;
  double active = 0, limit = 0;

  bool known() const { return factor_weight > 0; }
  double weighted() const { return load_weight > 0 ? by_load / load_weight : by_factor / factor_weight; }
  double load() const { return limit > 0 ? std::min(active / limit, 1.0) : 1.0; }
};

void bound(ComputingTime& bounds, double response, std::optional<uint32_t> tokens) {
  const uint32_t ms = to_milliseconds(response);
  if (!bounds.minimum || ms < *bounds.minimum) {
    bounds.minimum = ms;
    bounds.minimum_tokens = tokens;
  }
  if (!bounds.maximum || ms > *bounds.maximum) {
    bounds.maximum = ms;
    bounds.maximum_tokens = tokens;
  }
}

Means means_of(std::span<const InstanceInput> instances, Share degradation_factor) {
  Means m;
  for (const InstanceInput& i : instances) {
    const double factor = factor_of(i, degradation_factor);
    if (factor <= 0) continue;
    m.active += i.active;
    m.limit += limit_of(i, degradation_factor);
    const auto response = response_of(i);
    if (!response) continue;
    bound(m.bounds, *response, i.input_tokens);
    m.by_load += factor * i.active * *response;
    m.load_weight += factor * i.active;
    m.by_factor += factor * *response;
    m.factor_weight += factor;
  }
  return m;
}

// Of all requests, each by its instance's factor.
std::optional<double> quantile(std::span<const InstanceInput> instances, Share degradation_factor, double share) {
  std::array<double, Histogram::kBuckets> weights{};
  for (const InstanceInput& i : instances) {
    const double factor = factor_of(i, degradation_factor);
    if (factor <= 0 || i.responses == nullptr) continue;
    for (size_t b = 0; b < weights.size(); ++b) weights[b] += factor * static_cast<double>(i.responses->counts[b]);
  }
  return quantile_of(weights, share);
}

}  // namespace

ComputingTime ComputingTimeEstimator::estimate(std::span<const InstanceInput> instances, Share degradation_factor,
                                               const ComputingTimeConfig& config, Nanoseconds now) {
  const Means means = means_of(instances, degradation_factor);
  if (!means.known()) return {};
  double value = means.weighted();
  switch (config.method) {
    case ComputingTimeMethod::kWeightedMean:
      break;
    case ComputingTimeMethod::kMedian:
      value = quantile(instances, degradation_factor, 0.5).value_or(value);
      break;
    case ComputingTimeMethod::kP95:
      value = quantile(instances, degradation_factor, 0.95).value_or(value);
      break;
    case ComputingTimeMethod::kDynamic:
      value = dynamic(value, means.load(), config, now);
      break;
  }
  ComputingTime time = means.bounds;
  time.value = to_milliseconds(value);
  return time;
}

double ComputingTimeEstimator::dynamic(double response, double load, const ComputingTimeConfig& config,
                                       Nanoseconds now) {
  if (!history_) history_ = History{response, load, now};
  const double periods = static_cast<double>(now - history_->at) / static_cast<double>(config.period);
  const double kept = std::pow(1 - config.alpha.value(), periods);
  history_->response = kept * history_->response + (1 - kept) * response;
  history_->load = kept * history_->load + (1 - kept) * load;
  history_->at = now;
  return history_->response * (1 + load - history_->load);
}

}  // namespace margay::control
