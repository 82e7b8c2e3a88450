// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the series of an instance's metrics endpoint say of the metrics that the core knows (SCI-21..23), by the names
// of MetricsConfig. Pure; one thread; one SampleMaker an instance, for counters are told by what they grew since the
// scrape before.
//
// A counter is what its TYPE says, or else what its name ends in: _total, _sum, _count, _bucket. Each label set is
// followed by itself: one that went back was begun anew, at 0; one that is new began since the scrape before. Series
// that are no finite number are left out, and a metric of which nothing is left is, too: absent is not 0.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "control/collection/http/exposition.h"
#include "control/sci/metrics.h"

namespace margay::control {

// What a site file may name: http_requests_total, or http_requests_total{code="5xx"} with one label, where 5xx stands
// for each status of that class. Nothing: it is neither.
std::optional<MetricsConfig::Name> read_series(std::string_view metric, const std::string& text);

class SampleMaker {
 public:
  explicit SampleMaker(const std::vector<MetricsConfig::Name>& names);

  // At most one sample a metric, in the order of the metrics.
  std::vector<Sample> make(std::span<const Series> series);

 private:
  using Matches = std::vector<const Series*>;
  struct Counter {
    // What it grew by since the last call; the first one only looks.
    std::optional<double> grow(const Matches& matches);

    std::unordered_map<std::string, double> last;  // by label set
    bool begun = false;
  };
  struct Source {
    Metric metric{};
    MetricsConfig::Name name;
    Counter value, divisor;
    double total = 0;  // of a counter, since the first scrape

    std::optional<Sample> measure(std::span<const Series> series);
    std::optional<double> ratio(const Matches& values, const Matches& divisors);
    double finish(double measured) const;
  };

  std::vector<Source> sources_;
};

// The makers of all instances, each of which begins anew where the names of its SCI changed. One that the site file has
// no more is forgotten.
class SampleMakers {
 public:
  std::vector<Sample> make(const SciSpec& sci, const std::string& si_id, std::span<const Series> series);

 private:
  struct OfSci {
    std::vector<MetricsConfig::Name> names;
    std::unordered_map<std::string, SampleMaker> makers;  // by SI-ID
  };
  std::unordered_map<std::string, OfSci> scis_;  // by CSCI-ID
};

}  // namespace margay::control
