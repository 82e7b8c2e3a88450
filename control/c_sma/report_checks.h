// SPDX-License-Identifier: Apache-2.0
#pragma once

// Format and ranges of one report, by itself (CSMA-37..44, 55). That a report has a health summary at all is the
// decoder's to say, for a value without one cannot be told from one of an SCI without instances. Pure functions.

#include <optional>

#include "control/c_sma/config.h"
#include "control/c_sma/judgement.h"
#include "control/sci/report.h"

namespace margay::c_sma {

inline constexpr size_t kIdMax = 255;  // bytes (D-25)
inline constexpr Nanoseconds kReportingIntervalMax = 24 * 3600 * kSecond;

std::optional<Judgement> check_format(const control::Report& report);
std::optional<Judgement> check_ranges(const control::Report& report, const Ranges& ranges);

}  // namespace margay::c_sma
