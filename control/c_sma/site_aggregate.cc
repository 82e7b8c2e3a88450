// SPDX-License-Identifier: Apache-2.0
#include "control/c_sma/site_aggregate.h"

#include <algorithm>
#include <limits>

namespace margay::c_sma {
namespace {

constexpr uint64_t kMax = std::numeric_limits<uint32_t>::max();

uint32_t saturated(uint64_t sum) { return static_cast<uint32_t>(std::min(sum, kMax)); }

template <class N>
void take(N& n, uint64_t value, bool in) {
  n = static_cast<N>(in ? n + value : n - value);
}

template <class T>
void tally(std::map<T, uint32_t>& values, T value, bool in) {
  uint32_t& n = values[value];
  take(n, 1, in);
  if (n == 0) values.erase(value);
}

template <class Values>
std::optional<uint32_t> lowest(const Values& values) {
  return values.empty() ? std::nullopt : std::optional(values.begin()->first);
}
template <class Values>
std::optional<uint32_t> highest(const Values& values) {
  return values.empty() ? std::nullopt : std::optional(values.rbegin()->first);
}

// The smallest value that at least 95 of 100 do not pass.
std::optional<uint32_t> p95(const std::map<uint32_t, uint32_t>& values, uint64_t count) {
  const uint64_t rank = (count * 95 + 99) / 100;
  uint64_t seen = 0;
  for (const auto& [value, n] : values) {
    seen += n;
    if (seen >= rank) return value;
  }
  return std::nullopt;
}

}  // namespace

void SiteAggregate::Weighted::take(uint32_t value, uint32_t weight, bool in) {
  const Wide product = static_cast<Wide>(value) * weight;
  weighted = in ? weighted + product : weighted - product;
  c_sma::take(weights, weight, in);
  c_sma::take(sum, value, in);
  c_sma::take(count, 1, in);
}

std::optional<uint32_t> SiteAggregate::Weighted::plain_mean() const {
  if (count == 0) return std::nullopt;
  return static_cast<uint32_t>((sum + count - 1) / count);
}

std::optional<uint32_t> SiteAggregate::Weighted::mean() const {
  if (weights == 0) return plain_mean();
  return static_cast<uint32_t>((weighted + weights - 1) / weights);
}

void SiteAggregate::count(const Contribution& c, bool in) {
  const northbound::Metrics& m = c.metrics;
  take(scis_, 1, in);
  take(healthy_, c.health.healthy > 0 ? 1 : 0, in);
  take(restored_, c.restored ? 1 : 0, in);
  take(instances_[0], c.health.healthy, in);
  take(instances_[1], c.health.degraded, in);
  take(instances_[2], c.health.unhealthy, in);
  take(instances_[3], c.health.unknown, in);
  tally(measured_at_, c.measured_at, in);
  if (!c.serves()) return;

  const uint32_t gas = m.gas.value_or(0);
  take(serving_, 1, in);
  take(with_gas_, m.gas ? 1 : 0, in);
  take(gas_, gas, in);
  if (m.computing_time_ms) {
    computing_time_.take(*m.computing_time_ms, gas, in);
    tally(times_, *m.computing_time_ms, in);
    tally(fastest_, m.computing_time_minimum_ms.value_or(*m.computing_time_ms), in);
    tally(slowest_, m.computing_time_maximum_ms.value_or(*m.computing_time_ms), in);
  }
  if (m.price) price_.take(*m.price, gas, in);
  if (m.reputation) tally(reputations_, *m.reputation, in);
  if (m.security_level) tally(security_levels_, *m.security_level, in);
}

std::optional<uint32_t> SiteAggregate::computing_time(Aggregate method) const {
  switch (method) {
    case Aggregate::kGasWeightedMean:
      return computing_time_.mean();
    case Aggregate::kMin:
      return lowest(times_);
    case Aggregate::kMax:
      return highest(times_);
    case Aggregate::kMean:
      return computing_time_.plain_mean();
    case Aggregate::kP95:
      return p95(times_, computing_time_.count);
  }
  return std::nullopt;
}

northbound::Metrics SiteAggregate::metrics(Aggregate method) const {
  northbound::Metrics m;
  // Absent: those that serve do not say.
  if (serving_ == 0 || with_gas_ > 0) m.gas = saturated(gas_);
  m.computing_time_ms = computing_time(method);
  m.computing_time_minimum_ms = lowest(fastest_);
  m.computing_time_maximum_ms = highest(slowest_);
  m.price = price_.mean();
  m.reputation = lowest(reputations_);
  m.security_level = lowest(security_levels_);
  return m;
}

HealthSummary SiteAggregate::health() const {
  return {saturated(instances_[0]), saturated(instances_[1]), saturated(instances_[2]), saturated(instances_[3])};
}

}  // namespace margay::c_sma
