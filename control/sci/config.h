// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the control plane of one SCI is told: plain values, already checked and with their units taken off. The
// defaults are those of the requirements' Part C, changed where Part D says so.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/share.h"
#include "common/token_bucket.h"
#include "common/units.h"

namespace margay::control {

// Kinds of check (SCI-46, 47, 49). Performance is judged from measurements; the other two are probes.
enum class CheckKind : uint8_t { kLiveness, kReadiness, kPerformance };
inline constexpr size_t kCheckKinds = 3;
std::string_view name_of(CheckKind k);  // "liveness"

enum class Recovery : uint8_t { kStepwise, kDirect };

struct ProbeConfig {
  std::string http = {};  // URL template with {address} and {port}; empty: TCP connect
  Nanoseconds interval = 5 * kSecond;
  Nanoseconds timeout = kSecond;
  uint32_t fall = 3, rise = 2;
  bool operator==(const ProbeConfig&) const = default;
};

struct CpuRule {  // above, for so long, without a break
  Share above{0.9};
  Nanoseconds time = 30 * kSecond;
  bool operator==(const CpuRule&) const = default;
};

struct PerformanceConfig {
  std::optional<Nanoseconds> response_time = {};  // more is a failure
  std::optional<Share> error_rate = {};           // of requests; more is a failure
  std::optional<CpuRule> cpu = CpuRule{};
  Nanoseconds interval = 30 * kSecond;
  uint32_t fall = 3, rise = 2;
  bool operator==(const PerformanceConfig&) const = default;
};

// An absent check is not made. Readiness needs a URL and performance a source of numbers, so both wait to be asked for.
struct HealthConfig {
  Recovery recovery = Recovery::kStepwise;
  Nanoseconds confirm_interval = kSecond;  // until the first verdict, and from a failure to its end
  std::optional<ProbeConfig> liveness = ProbeConfig{};
  std::optional<ProbeConfig> readiness = {};
  std::optional<PerformanceConfig> performance = {};
  Nanoseconds batch = 100 * kMillisecond;  // how long a change of health waits for others (SCI-72)
  bool operator==(const HealthConfig&) const = default;
};

struct MetricsConfig {
  std::string prometheus = {};  // URL template; empty: nothing is scraped
  Nanoseconds interval = 5 * kSecond;
  // Which series a metric is made of. Series that match, over all their labels and over all names of one metric, are
  // added up; where that makes no sense (shares of one, response_time, input_tokens) their mean is taken. A histogram
  // or summary stands for the mean of what it took in since the last scrape, its sum by its count.
  struct Name {
    std::string metric, series;       // the name_of() a Metric; the exact name, of a histogram its family
    std::string label = {}, is = {};  // only series whose label is this; empty: every one
    std::string per = {};             // divided by this one, sum by sum; counters: increase by increase
    double scale = 1;                 // into the metric's unit
    bool complement = false;          // one less it, for series of what is idle
    bool operator==(const Name&) const = default;
  };
  std::vector<Name> names = {};
  bool operator==(const MetricsConfig&) const = default;
};

enum class ComputingTimeMethod : uint8_t { kWeightedMean, kMedian, kP95, kDynamic };  // SCI-38, 39, 39, 40
struct ComputingTimeConfig {
  ComputingTimeMethod method = ComputingTimeMethod::kWeightedMean;
  Nanoseconds window = 30 * kSecond;  // responses count for one to two of these
  Share alpha{0.3};                   // dynamic: how much of the new value per period enters the history
  Nanoseconds period = 5 * kSecond;
  bool operator==(const ComputingTimeConfig&) const = default;
};

struct ReportConfig {
  Nanoseconds interval = 60 * kSecond;
  Share gas_change{0.1};
  uint32_t gas_absolute = 50;
  Share computing_time_change{0.2};
  TokenRate rate{kSecond, 5};
  TokenRate critical{kSecond / 10, 20};
  bool operator==(const ReportConfig&) const = default;
};

struct InstanceSpec {
  std::string id;       // SI-ID, unique in this SCI (SCI-12)
  std::string address;  // as probes and scrapes call it
  uint16_t port = 0;
  uint32_t max_sessions = 0;
  uint32_t weight = 1;
  bool barred = false;  // by the SCI's policies: takes no new flow (SCI-78)
  bool operator==(const InstanceSpec&) const = default;
};

struct SciSpec {
  std::string csci_id, cs_id;
  HealthConfig health = {};
  MetricsConfig metrics = {};
  ComputingTimeConfig computing_time = {};
  ReportConfig report = {};
  Share safety_margin{1.0};
  Share degradation_factor{0.5};
  Nanoseconds drain_deadline = 600 * kSecond;  // from the order to drain on
  std::optional<uint32_t> price = {}, reputation = {}, security_level = {};
  bool tells_load = false;  // the data plane chooses by what instances report
  std::vector<InstanceSpec> instances = {};
  bool operator==(const SciSpec&) const = default;
};

}  // namespace margay::control
