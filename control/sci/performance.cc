// SPDX-License-Identifier: Apache-2.0
#include "control/sci/performance.h"

#include <cstdio>

namespace margay::control {
namespace {

std::string number(double n) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", n);
  return text;
}
std::string milliseconds(Nanoseconds t) {
  return number(static_cast<double>(t) / static_cast<double>(kMillisecond)) + " ms";
}
std::string seconds(Nanoseconds t) { return number(static_cast<double>(t) / static_cast<double>(kSecond)) + " s"; }
std::string percent(double share) { return number(share * 100) + " %"; }

}  // namespace

std::optional<PerformanceVerdict> judge_performance(const PerformanceConfig& bounds, const Measurements& measured) {
  bool judged = false;
  if (bounds.response_time && measured.response_time) {
    judged = true;
    if (*measured.response_time > *bounds.response_time) {
      return PerformanceVerdict{Outcome::kFail, "response time " + milliseconds(*measured.response_time) +
                                                    ", at most " + milliseconds(*bounds.response_time)};
    }
  }
  if (bounds.error_rate && measured.error_rate) {
    judged = true;
    if (*measured.error_rate > bounds.error_rate->value()) {
      return PerformanceVerdict{Outcome::kFail, "error rate " + percent(*measured.error_rate) + ", at most " +
                                                    percent(bounds.error_rate->value())};
    }
  }
  if (bounds.cpu && measured.cpu_too_high) {
    judged = true;
    if (*measured.cpu_too_high) {
      return PerformanceVerdict{
          Outcome::kFail, "CPU above " + percent(bounds.cpu->above.value()) + " for " + seconds(bounds.cpu->time)};
    }
  }
  if (!judged) return std::nullopt;
  return PerformanceVerdict{Outcome::kPass, "within bounds"};
}

}  // namespace margay::control
