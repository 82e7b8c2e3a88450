// SPDX-License-Identifier: Apache-2.0
#pragma once

// What /metrics shows of the C-SMA (docs/metrics.md). For whoever holds the turn.

#include <prometheus/metric_family.h>

#include <vector>

#include "control/agent/agent.h"

namespace margay::control {

void collect_agent(const Agent& agent, std::vector<prometheus::MetricFamily>& out);

}  // namespace margay::control
