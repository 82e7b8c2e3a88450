// SPDX-License-Identifier: Apache-2.0
#pragma once

// What has happened in the control plane since its start, for `show` and /metrics: checks and their latency, scrapes,
// transitions, reports, how late ticks come. Fed with each event that a core was told and the actions that it answered
// with. Bounded by the site's size. Pure; one thread.

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "control/sci/events.h"

namespace margay::control {

struct CheckCounts {
  std::array<uint64_t, 3> outcomes{};  // by Outcome
  Histogram latency;                   // of those that passed
  Outcome last{};
  Nanoseconds last_latency = 0, last_at = 0;
  std::string last_detail;

  uint64_t of(Outcome o) const { return outcomes[static_cast<size_t>(o)]; }
};

struct InstanceStatistics {
  std::array<std::optional<CheckCounts>, 2> checks;  // liveness, readiness; absent: none answered yet
  uint64_t scrapes_passed = 0, scrapes_failed = 0;
  std::array<uint64_t, kHealthStates> entered{};  // by the state it went to
  std::optional<HealthChange> last_change;
};

struct SciStatistics {
  std::map<std::string, InstanceStatistics> instances;  // by SI-ID; those that the site has
  std::array<uint64_t, kTriggers> reports{};            // by trigger
  std::optional<Report> last_report;
  Nanoseconds last_report_at = 0;
  Nanoseconds next_due = kNever;  // of the core
};

class Statistics {
 public:
  // The core of this SCI was made, first or anew.
  void begun(const std::string& csci_id) { scis_[csci_id].next_due = kNever; }
  // `next_due`: of the core, after it. A Tick that comes later than that is late.
  void handled(const std::string& csci_id, const Event& event, const std::vector<Action>& actions, Nanoseconds next_due,
               Nanoseconds now);
  // The site has no others any more.
  void keep(const std::vector<SciSpec>& scis);

  const std::map<std::string, SciStatistics>& scis() const { return scis_; }
  const InstanceStatistics* find(const std::string& csci_id, const std::string& si_id) const;
  const Histogram& slip() const { return slip_; }
  Nanoseconds slip_max() const { return slip_max_; }

 private:
  void count(SciStatistics& sci, const CheckResult& result, Nanoseconds now);
  void count(SciStatistics& sci, const Action& action, Nanoseconds now);

  std::map<std::string, SciStatistics> scis_;  // by CSCI-ID
  Histogram slip_;
  Nanoseconds slip_max_ = 0;
};

}  // namespace margay::control
