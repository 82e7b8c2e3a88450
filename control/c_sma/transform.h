// SPDX-License-Identifier: Apache-2.0
#pragma once

// From a row's raw metrics to those that are advertised: smoothing, margin, bounds, consistency, in this order (D-35,
// D-49; CSMA-51..54, 115..117). Pure; one thread.

#include <cstdint>
#include <optional>

#include "control/c_sma/config.h"
#include "control/northbound/core/row.h"

namespace margay::c_sma {

// Exponential moving average of one row's GAS by the time since the value before, so that reports at any rate smooth
// alike. A drop is taken at once, and so is the first value after the row's health or one of its sources changed.
class Smoother {
 public:
  // `change`: another number after each change of health or source.
  uint32_t smooth(uint32_t raw, const Smoothing& config, uint64_t change, Nanoseconds now);

 private:
  std::optional<double> value_;
  uint64_t change_ = 0;
  Nanoseconds at_ = 0;
};

struct Transformed {
  // GAS, step by step.
  std::optional<uint32_t> raw = {}, smoothed = {}, with_margin = {};
  bool consistent = true;  // false: GAS is advertised as 0 for it
  northbound::Metrics metrics = {};
};

// `smoother`: nullptr for rows that are not smoothed. `healthy_scis`: in the scope that CSMA-52 is judged in.
Transformed transform(const northbound::Metrics& raw, const TransformConfig& config, Smoother* smoother,
                      uint64_t change, uint64_t healthy_scis, Nanoseconds now);

}  // namespace margay::c_sma
