// SPDX-License-Identifier: Apache-2.0
#include "control/c_sma/metric_definitions.h"

#include <algorithm>
#include <limits>

namespace margay::c_sma {
namespace {

constexpr uint32_t kAny = std::numeric_limits<uint32_t>::max();
constexpr uint32_t kHourMs = 3'600'000;

// One row a metric, in the order of ServiceMetric.
constexpr std::array<MetricDefinition, kServiceMetrics> kDefinitions = {{
    // name type level format length unit source statistics range
    {"global_available_slots", "computing", 1, "unsigned integer", 4, "requests", "aggregation", "cur", {0, kAny}},
    {"computing_time", "computing", 1, "unsigned integer", 4, "ms", "estimation", "mean", {0, kHourMs}},
    {"price", "service", 1, "unsigned integer", 4, "by agreement", "nominal", "cur", {0, kAny}},
    {"reputation", "service", 1, "unsigned integer", 4, "points", "estimation", "cur", {0, 10}},
    {"security_level", "service", 1, "unsigned integer", 4, "level", "nominal", "cur", {0, 10}},
}};

}  // namespace

const MetricDefinition& definition_of(ServiceMetric m) { return kDefinitions[static_cast<size_t>(m)]; }

Ranges registered_ranges() {
  Ranges ranges;
  std::transform(kDefinitions.begin(), kDefinitions.end(), ranges.begin(),
                 [](const MetricDefinition& d) { return d.range; });
  return ranges;
}

}  // namespace margay::c_sma
