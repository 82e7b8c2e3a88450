// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads what a Prometheus endpoint shows: the text exposition format, version 0.0.4, and OpenMetrics as far as it is
// the same. Comments, HELP, UNIT and EOF lines are passed over, TYPE is kept, time stamps are not believed (an
// instance's clock says nothing about ours). Pure; one thread.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/result.h"

namespace margay::control {

enum class SeriesType : uint8_t { kUntyped, kGauge, kCounter, kHistogram, kSummary };

struct Series {
  std::string name;
  std::vector<std::pair<std::string, std::string>> labels;  // in the text's order
  double value = 0;                                         // may be infinite or not a number
  SeriesType type = SeriesType::kUntyped;                   // of its family

  const std::string* label(std::string_view key) const;
};

inline constexpr size_t kSeriesMax = 100'000;  // and families with a TYPE
inline constexpr size_t kLabelsMax = 64;

// All of it or nothing; the error names the line.
Result<std::vector<Series>> parse_exposition(std::string_view text);

}  // namespace margay::control
