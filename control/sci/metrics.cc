// SPDX-License-Identifier: Apache-2.0
#include "control/sci/metrics.h"

#include <cmath>

namespace margay::control {

std::string_view name_of(Metric m) {
  static constexpr std::array<std::string_view, kMetrics> kNames = {
      "cpu",           "memory",   "gpu",    "gpu_memory", "disk_io",     "network_io",   "queue_depth",
      "response_time", "requests", "errors", "load",       "connections", "input_tokens", "custom"};
  return kNames[static_cast<size_t>(m)];
}

void MetricCollector::configure(const MetricsConfig& config, std::optional<CpuRule> cpu_rule) {
  interval_ = config.interval;
  // A run above another threshold says nothing about this one.
  if (cpu_rule != cpu_rule_) {
    for (auto& [key, instance] : instances_) instance.cpu_above_since.reset();
  }
  cpu_rule_ = cpu_rule;
}

void MetricCollector::on_scrape(uint32_t key, std::span<const Sample> samples, Nanoseconds now) {
  Instance& instance = instances_[key];
  const Slot& cpu = instance.slots[static_cast<size_t>(Metric::kCpu)];
  const Nanoseconds previous_cpu = cpu.at;
  for (Slot& slot : instance.slots) slot.present = false;
  for (const Sample& sample : samples) {
    Slot& slot = instance.slots[static_cast<size_t>(sample.metric)];
    const bool possible = std::isfinite(sample.value) && sample.value >= 0;
    if (possible) take(slot, sample, now);
    if (possible && std::isfinite(slot.value)) continue;
    slot.present = false;
    ++impossible_;
  }
  watch_cpu(instance, previous_cpu, now);
}

void MetricCollector::on_failed_scrape(uint32_t key) {
  const auto found = instances_.find(key);
  if (found == instances_.end()) return;
  for (Slot& slot : found->second.slots) slot.present = false;
  found->second.cpu_above_since.reset();
}

void MetricCollector::take(Slot& slot, const Sample& sample, Nanoseconds now) const {
  if (sample.kind == SampleKind::kGauge) {
    slot = {.present = true, .value = sample.value, .at = now};
    return;
  }
  // A counter that went back was begun anew, at 0.
  const bool usable = slot.counted && now > slot.counted_at && now - slot.counted_at <= lifetime();
  if (usable) {
    const double increase = sample.value >= slot.count ? sample.value - slot.count : sample.value;
    slot.value = increase * static_cast<double>(kSecond) / static_cast<double>(now - slot.counted_at);
    slot.at = now;
  }
  slot.present = usable;
  slot.counted = true;
  slot.count = sample.value;
  slot.counted_at = now;
}

void MetricCollector::watch_cpu(Instance& instance, Nanoseconds previous, Nanoseconds now) const {
  const Slot& cpu = instance.slots[static_cast<size_t>(Metric::kCpu)];
  const bool above = cpu_rule_ && cpu.present && cpu.value > cpu_rule_->above.value();
  if (!above) {
    instance.cpu_above_since.reset();
    return;
  }
  const bool gap = now - previous > lifetime();
  if (!instance.cpu_above_since || gap) instance.cpu_above_since = now;
}

std::optional<MetricCollector::Reading> MetricCollector::read(uint32_t key, Metric metric, Nanoseconds now) const {
  const auto found = instances_.find(key);
  if (found == instances_.end()) return std::nullopt;
  const Slot& slot = found->second.slots[static_cast<size_t>(metric)];
  if (!slot.present || now - slot.at > lifetime()) return std::nullopt;
  return Reading{slot.value, now - slot.at};
}

std::optional<bool> MetricCollector::cpu_too_high(uint32_t key, Nanoseconds now) const {
  const auto cpu = cpu_rule_ ? read(key, Metric::kCpu, now) : std::nullopt;
  if (!cpu) return std::nullopt;
  const std::optional<Nanoseconds>& since = instances_.at(key).cpu_above_since;
  return since && now - cpu->age - *since >= cpu_rule_->time;
}

}  // namespace margay::control
