// SPDX-License-Identifier: Apache-2.0
#pragma once

// Metric Collector: the newest measurements of each instance with their age (SCI-21..25). Pure; one thread. Where they
// come from is the adapter's business (SCI-30): it hands over one set of samples per instance and scrape.
//
// A measurement is taken for as old as its arrival here: an instance's own time stamps say nothing about ours. One that
// a scrape leaves out, or whose scrape fails, is stale at once; one that is older than three intervals is too. Stale is
// absent, never 0. Numbers that cannot be (negative, not finite) are left out and counted.

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "control/sci/config.h"

namespace margay::control {

enum class Metric : uint8_t {
  kCpu,  // shares of one: cpu to gpu_memory
  kMemory,
  kGpu,
  kGpuMemory,
  kDiskIo,  // bytes/s
  kNetworkIo,
  kQueueDepth,
  kResponseTime,  // seconds
  kRequests,      // per second
  kErrors,        // per second
  kLoad,
  kConnections,
  kInputTokens,  // of a request, on average (SCI-41)
  kCustom,
};
inline constexpr size_t kMetrics = 14;
std::string_view name_of(Metric m);  // "response_time"

enum class SampleKind : uint8_t { kGauge, kCounter };

struct Sample {
  Metric metric{};
  SampleKind kind{};  // a counter becomes its rate per second
  double value = 0;
  bool operator==(const Sample&) const = default;
};

// A measured number of seconds; at most 100 days of them.
constexpr Nanoseconds nanoseconds(double seconds) {
  return static_cast<Nanoseconds>((seconds < 8.64e6 ? seconds : 8.64e6) * static_cast<double>(kSecond));
}

class MetricCollector {
 public:
  struct Reading {
    double value = 0;
    Nanoseconds age = 0;
  };

  MetricCollector(const MetricsConfig& config, std::optional<CpuRule> cpu_rule) { configure(config, cpu_rule); }
  // Keeps what was measured.
  void configure(const MetricsConfig& config, std::optional<CpuRule> cpu_rule);

  void on_scrape(uint32_t instance, std::span<const Sample> samples, Nanoseconds now);
  void on_failed_scrape(uint32_t instance);
  void remove(uint32_t instance) { instances_.erase(instance); }

  std::optional<Reading> read(uint32_t instance, Metric metric, Nanoseconds now) const;
  // The CPU rule (SCI-50): all samples over at least its time lay above. Absent: no rule or no fresh sample.
  std::optional<bool> cpu_too_high(uint32_t instance, Nanoseconds now) const;
  uint64_t impossible_samples() const { return impossible_; }

 private:
  struct Slot {
    bool present = false;  // a value that may be read
    double value = 0;
    Nanoseconds at = 0;
    bool counted = false;  // a counter's last value
    double count = 0;
    Nanoseconds counted_at = 0;
  };
  struct Instance {
    std::array<Slot, kMetrics> slots;
    std::optional<Nanoseconds> cpu_above_since;
  };

  Nanoseconds lifetime() const { return 3 * interval_; }
  void take(Slot& slot, const Sample& sample, Nanoseconds now) const;
  void watch_cpu(Instance& instance, Nanoseconds previous, Nanoseconds now) const;

  Nanoseconds interval_ = 0;
  std::optional<CpuRule> cpu_rule_;
  std::unordered_map<uint32_t, Instance> instances_;
  uint64_t impossible_ = 0;
};

}  // namespace margay::control
