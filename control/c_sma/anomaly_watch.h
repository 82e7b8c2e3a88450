// SPDX-License-Identifier: Apache-2.0
#pragma once

// Anomalous changes of one source (CSMA-45..48, 53; D-10, D-48). Changes are judged against all that was believed
// within the window, not the neighbour alone. Belief is asymmetric: what is worse than before is believed at once, what
// is anomalously better waits for a second report that says much the same, so that quarantine never holds on to an old,
// larger GAS. Nothing confirms a GAS above the ceiling. Pure; one thread.

#include <cstdint>
#include <optional>
#include <vector>

#include "control/c_sma/config.h"
#include "control/c_sma/judgement.h"
#include "control/sci/report.h"

namespace margay::c_sma {

class AnomalyWatch {
 public:
  // Every report that was not refused, in order.
  Judgement judge(const control::Report& report, const ValidationConfig& config, std::optional<uint32_t> ceiling,
                  Nanoseconds now);
  // An operator believes what waits.
  void release(Nanoseconds now);

 private:
  struct Sample {
    uint32_t value = 0;
    Nanoseconds at = 0;
  };
  struct Window {
    std::vector<Sample> samples;  // believed
    void keep(Nanoseconds within, Nanoseconds now);
  };
  struct Fingerprint {  // of an instance's health, condition and limit
    uint64_t id = 0, rest = 0;
    bool operator==(const Fingerprint&) const = default;
  };
  struct Values {
    std::optional<uint32_t> gas, computing_time;
    HealthState health = HealthState::kUnhealthy;
  };
  struct Round {  // one report being judged
    const control::Report& report;
    const ValidationConfig& config;
    std::optional<uint32_t> ceiling;
    Nanoseconds now;
    Values values = {};
    bool condition_changed = false;
    bool held = false, confirms = false;
    Judgement judgement = {};
  };

  bool take_condition(const control::Report& report);
  void judge_health(Round& round);
  void judge_gas(Round& round);
  void judge_computing_time(Round& round);
  void hold(Round& round, bool confirmed) const;
  void believe(const Round& round);
  void remember(Window& window, std::optional<uint32_t> value, Nanoseconds now);

  Window gas_, computing_time_;
  std::vector<Nanoseconds> transitions_;
  std::optional<HealthSummary> summary_;  // last told, as the two below
  Admin admin_ = Admin::kEnabled;
  std::vector<Fingerprint> instances_;  // by id
  std::optional<Values> believed_, waiting_;
};

}  // namespace margay::c_sma
