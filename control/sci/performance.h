// SPDX-License-Identifier: Apache-2.0
#pragma once

// The performance check (SCI-49, 50): measurements against their bounds. Pure.

#include <optional>
#include <string>

#include "control/sci/config.h"
#include "control/sci/health.h"

namespace margay::control {

struct Measurements {  // absent: not known now
  std::optional<Nanoseconds> response_time;
  std::optional<double> error_rate;  // of requests
  std::optional<bool> cpu_too_high;  // by the CPU rule
};

struct PerformanceVerdict {
  Outcome outcome{};
  std::string detail;
};

// A bound may be reached. One whose measurement is absent is not judged; none at all: no verdict, for silence of a
// source is neither good nor bad news of the instance.
std::optional<PerformanceVerdict> judge_performance(const PerformanceConfig& bounds, const Measurements& measured);

}  // namespace margay::control
