// SPDX-License-Identifier: Apache-2.0
#pragma once

// A family of metrics as /metrics shows it, while it is put together. One thread.

#include <prometheus/metric_family.h>

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/histogram.h"

namespace margay::control {

using Labels = std::vector<prometheus::ClientMetric::Label>;

inline std::string lower(std::string_view word) {
  std::string text(word);
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

inline double seconds(Nanoseconds time) { return static_cast<double>(time) / static_cast<double>(kSecond); }

class Family {
 public:
  Family(const char* name, const char* help, prometheus::MetricType type) : family_{name, help, type, {}} {}

  void add(Labels labels, double value) {
    prometheus::ClientMetric& metric = make(std::move(labels));
    (family_.type == prometheus::MetricType::Counter ? metric.counter.value : metric.gauge.value) = value;
  }
  void add(Labels labels, uint64_t value) { add(std::move(labels), static_cast<double>(value)); }
  void add(Labels labels, const Histogram& histogram) {
    prometheus::ClientMetric& metric = make(std::move(labels));
    metric.summary.sample_count = histogram.count();
    metric.summary.sample_sum = seconds(histogram.sum);
  }
  // A family without a series is not shown.
  void move_to(std::vector<prometheus::MetricFamily>& families) {
    if (!family_.metric.empty()) families.push_back(std::move(family_));
  }

 private:
  prometheus::ClientMetric& make(Labels labels) {
    prometheus::ClientMetric& metric = family_.metric.emplace_back();
    metric.label = std::move(labels);
    return metric;
  }
  prometheus::MetricFamily family_;
};

}  // namespace margay::control
