// SPDX-License-Identifier: Apache-2.0
#pragma once

// The registered definitions of the service-oriented metrics, in the fields of the registry's template (D-26). Ranges
// that reports are held to come from here (CSMA-37..44); a configuration may set others (CSMA-36).

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace margay::c_sma {

enum class ServiceMetric : uint8_t { kGas, kComputingTime, kPrice, kReputation, kSecurityLevel };
inline constexpr size_t kServiceMetrics = 5;

struct Range {  // both ends belong to it
  uint32_t min = 0, max = 0;
  constexpr bool holds(uint32_t value) const { return min <= value && value <= max; }
  bool operator==(const Range&) const = default;
};

struct MetricDefinition {
  std::string_view name;
  std::string_view type;
  uint8_t level = 0;  // 0 raw, 1 of one category, 2 over categories
  std::string_view format;
  uint8_t length = 0;  // bytes
  std::string_view unit, source, statistics;
  Range range = {};
};

const MetricDefinition& definition_of(ServiceMetric m);

// By ServiceMetric.
using Ranges = std::array<Range, kServiceMetrics>;
Ranges registered_ranges();

}  // namespace margay::c_sma
