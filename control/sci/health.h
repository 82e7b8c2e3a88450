// SPDX-License-Identifier: Apache-2.0
#pragma once

// Health Monitor: the state machine of one service instance (SCI-53..65, D-24, D-54). Pure; one thread.
//
// A check passes, fails, or could not be made through a fault of the prober's own (kError). Verdicts count in runs of
// their kind: a pass ends a run of failures and the other way round. An error is no verdict: it leaves the runs alone
// and has a run of its own, which the next verdict ends.
//
// A kind that has fallen stays marked until the instance is HEALTHY again, and has to rise first. Performance holds
// nobody in UNHEALTHY, for an instance that takes no requests cannot show that it answers them fast: the way up from
// there goes over DEGRADED while performance is marked, `recovery: direct` or not. Out of UNKNOWN the probes decide
// alone.

#include <array>
#include <optional>
#include <string>

#include "common/health.h"
#include "control/sci/config.h"

namespace margay::control {

enum class Outcome : uint8_t { kPass, kFail, kError };

struct HealthCause {
  std::optional<CheckKind> kind;  // none: the configuration changed
  Outcome outcome{};
  uint32_t count = 0;  // consecutive outcomes of this kind, the last one included
  std::string detail;  // of the last one
};

struct HealthChange {
  HealthState from{}, to{};
  Nanoseconds at = 0;
  Nanoseconds lasted = 0;  // how long `from` was the state
  bool recovery = false;   // HEALTHY, out of an episode that held UNHEALTHY or UNKNOWN
  HealthCause cause;
};

struct KnownHealth {
  HealthState state{};
  Nanoseconds age = 0;         // of the state
  Nanoseconds serves_age = 0;  // of HEALTHY or DEGRADED without a break, if it is one of them
};

class HealthMonitor {
 public:
  // Begins in UNKNOWN; in HEALTHY where no probe is configured, for nobody would ever confirm it.
  HealthMonitor(const HealthConfig& config, Nanoseconds now);
  // Begins in a state known from before. Which checks had failed is not known: for a state other than
  // HEALTHY each configured kind has to rise. HEALTHY where no check is left that could raise it.
  HealthMonitor(const HealthConfig& config, Nanoseconds now, const KnownHealth& known);

  std::optional<HealthChange> on_check(CheckKind kind, Outcome outcome, std::string detail, Nanoseconds now);

  // Keeps the state, and the runs of kinds that go on. Where the kinds that held the instance down are not checked any
  // more, those that are have to rise; where none is left that could raise it, it is HEALTHY.
  std::optional<HealthChange> configure(const HealthConfig& config, Nanoseconds now);

  HealthState state() const { return state_; }
  Nanoseconds since() const { return since_; }
  // HEALTHY or DEGRADED without a break. REQUIRES: it is one of them
  Nanoseconds serves_since() const { return serves_since_; }
  // A verdict about this kind is under way: it is to be checked at the confirm interval.
  bool confirming(CheckKind kind) const;

 private:
  enum class Event : uint8_t { kNone, kDown, kSlow, kBlind, kReachable, kRisen, kRisenAtOnce };
  static constexpr size_t kEvents = 7;
  static const std::array<std::array<HealthState, kEvents>, kHealthStates> kTable;

  struct Kind {
    bool configured = false;
    uint32_t fall = 0, rise = 0;
    uint32_t passes = 0, fails = 0, errors = 0;  // runs
    bool marked = false;                         // has fallen in this episode
  };

  Kind& of(CheckKind k) { return kinds_[static_cast<size_t>(k)]; }
  const Kind& of(CheckKind k) const { return kinds_[static_cast<size_t>(k)]; }
  void take(const HealthConfig& config);
  bool probed() const { return of(CheckKind::kLiveness).configured || of(CheckKind::kReadiness).configured; }
  Event judge(CheckKind k, Outcome outcome) const;
  Event judge_pass() const;
  void mark_all();
  // There is a check that can raise it, or nothing to raise.
  bool waits() const;
  HealthChange enter(HealthState to, HealthCause cause, Nanoseconds now);

  Recovery recovery_ = Recovery::kStepwise;
  std::array<Kind, kCheckKinds> kinds_;
  HealthState state_ = HealthState::kUnknown;
  Nanoseconds since_ = 0, serves_since_ = 0;
  bool held_down_ = false;  // this episode held UNHEALTHY or UNKNOWN
};

}  // namespace margay::control
