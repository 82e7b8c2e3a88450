// SPDX-License-Identifier: Apache-2.0
#pragma once

// What well-known exporters call the metrics: the words that `metrics.names` takes instead of a list. Any thread.

#include <span>
#include <string_view>

#include "control/sci/config.h"

namespace margay::control {

// "node", "vllm", "triton", "tgi"
std::span<const std::string_view> preset_names();
// Empty: there is no such preset.
std::span<const MetricsConfig::Name> find_preset(std::string_view name);

}  // namespace margay::control
