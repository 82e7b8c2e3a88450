// SPDX-License-Identifier: Apache-2.0
#pragma once

// What /metrics shows, in Prometheus's text format (docs/metrics.md). Two steps, so that only the first one needs the
// turn: collect() copies the numbers, text_of() writes them down. Labels are those of the site file, so that the number
// of series is bounded by it. What is not known is left out.

#include <prometheus/metric_family.h>

#include <array>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/counters.h"
#include "control/sci/sci.h"
#include "control/statistics.h"

namespace margay::control {

// Sums over the data plane's workers.
struct TrafficNumbers {
  uint64_t packets = 0;
  std::array<uint64_t, kDropReasons> drops{};
  std::array<uint64_t, kRefusals> refused{};
};
TrafficNumbers traffic_of(std::span<const WorkerCounters> workers);

// Of the site as a whole.
struct SiteNumbers {
  bool has_data_plane = true;  // role c-sma: none is meant to be there
  bool data_plane_connected = false, data_plane_alive = false;
  uint64_t connections = 0;
  uint64_t generation = 0, acked = 0, taken = 0, refused = 0;
  uint64_t report_lines = 0, report_lines_lost = 0;
  std::optional<TrafficNumbers> traffic = {};  // of the data plane that is connected
};

std::vector<prometheus::MetricFamily> collect(const std::map<std::string, Sci>& scis, const Statistics& statistics,
                                              const SiteNumbers& site);
std::string text_of(const std::vector<prometheus::MetricFamily>& families);

}  // namespace margay::control
