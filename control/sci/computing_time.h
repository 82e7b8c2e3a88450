// SPDX-License-Identifier: Apache-2.0
#pragma once

// Metric Aggregator, second half: Computing Time (SCI-37..41, 70; D-37, D-38, D-53). One thread.
//
// Instances that do not contribute are left out; a DEGRADED one counts with the degradation factor in every method.
//   weighted mean   of the instances' mean response times, by active sessions; by the factor alone where none has any
//   median, p95     over all requests of the window, interpolated within their bucket; the weighted mean where no
//                   request was seen
//   dynamic         history * (1 + load - usual load): the weighted mean and the share of the limits that is held,
//                   each as an exponential mean over time; between 0 and 2 times the history

#include <optional>
#include <span>

#include "control/sci/aggregate.h"
#include "control/sci/config.h"

namespace margay::control {

struct ComputingTime {  // whole milliseconds, rounded up; absent when nothing serves or nothing is known
  std::optional<uint32_t> value;
  // The fastest and the slowest instance by mean, with the input tokens of their requests.
  std::optional<uint32_t> minimum, maximum;
  std::optional<uint32_t> minimum_tokens, maximum_tokens;
  bool operator==(const ComputingTime&) const = default;
};

class ComputingTimeEstimator {
 public:
  ComputingTime estimate(std::span<const InstanceInput> instances, Share degradation_factor,
                         const ComputingTimeConfig& config, Nanoseconds now);
  // What was usual is not any more: the health of an instance changed.
  void forget() { history_.reset(); }

 private:
  struct History {
    double response = 0, load = 0;
    Nanoseconds at = 0;
  };
  double dynamic(double response, double load, const ComputingTimeConfig& config, Nanoseconds now);

  std::optional<History> history_;
};

}  // namespace margay::control
