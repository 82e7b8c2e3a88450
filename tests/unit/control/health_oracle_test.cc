// SPDX-License-Identifier: Apache-2.0
// The health machine against an oracle that keeps no counters and no marks: it remembers the whole episode and reads
// D-24's sentences off it each time.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "control/sci/health.h"
#include "tests/support/seed.h"

namespace margay::control {
namespace {

struct Look {
  CheckKind kind;
  Outcome outcome;
};

class Oracle {
 public:
  explicit Oracle(HealthConfig config) : config_(std::move(config)) {}

  HealthState look(CheckKind kind, Outcome outcome) {
    history_.push_back({kind, outcome});
    const HealthState next = decide(kind, outcome);
    if (next != state_) enter(next);
    return state_;
  }

 private:
  static constexpr bool probe(CheckKind k) { return k != CheckKind::kPerformance; }
  uint32_t fall(CheckKind k) const {
    return k == CheckKind::kLiveness    ? config_.liveness->fall
           : k == CheckKind::kReadiness ? config_.readiness->fall
                                        : config_.performance->fall;
  }
  uint32_t rise(CheckKind k) const {
    return k == CheckKind::kLiveness    ? config_.liveness->rise
           : k == CheckKind::kReadiness ? config_.readiness->rise
                                        : config_.performance->rise;
  }

  // The last verdicts of a kind since `from` that are all alike, as many as there are.
  uint32_t in_a_row(CheckKind kind, Outcome outcome, size_t from) const {
    uint32_t n = 0;
    for (size_t i = history_.size(); i-- > from;) {
      const Look& l = history_[i];
      if (l.kind != kind) continue;
      if (l.outcome == outcome) {
        ++n;
      } else if (l.outcome != Outcome::kError || outcome == Outcome::kError) {
        break;
      }
    }
    return n;
  }
  // Some time in the episode, this kind failed `fall` times in a row.
  bool had_failed(CheckKind kind) const {
    uint32_t run = run_at_episode_[static_cast<size_t>(kind)];
    bool failed = false;
    for (size_t i = episode_; i < history_.size(); ++i) {
      if (history_[i].kind != kind || history_[i].outcome == Outcome::kError) continue;
      run = history_[i].outcome == Outcome::kFail ? run + 1 : 0;
      failed = failed || (history_[i].outcome == Outcome::kFail && run >= fall(kind));
    }
    return failed;
  }
  bool risen(CheckKind kind) const { return in_a_row(kind, Outcome::kPass, entered_) >= rise(kind); }

  HealthState decide(CheckKind kind, Outcome outcome) const {
    if (outcome == Outcome::kError) {
      return probe(kind) && in_a_row(kind, outcome, unknown_) >= fall(kind) ? HealthState::kUnknown : state_;
    }
    if (outcome == Outcome::kFail) {
      if (in_a_row(kind, outcome, unknown_) < fall(kind)) return state_;
      if (probe(kind)) return HealthState::kUnhealthy;
      return state_ == HealthState::kHealthy ? HealthState::kDegraded : state_;
    }
    const bool unknown = state_ == HealthState::kUnknown;
    for (const CheckKind k : {CheckKind::kLiveness, CheckKind::kReadiness}) {
      if ((unknown || had_failed(k)) && !risen(k)) return state_;
    }
    if (state_ == HealthState::kHealthy || unknown) return HealthState::kHealthy;
    const bool slow = had_failed(CheckKind::kPerformance) && !risen(CheckKind::kPerformance);
    if (slow) return HealthState::kDegraded;
    const bool step = state_ == HealthState::kUnhealthy && config_.recovery == Recovery::kStepwise;
    return step ? HealthState::kDegraded : HealthState::kHealthy;
  }

  void enter(HealthState next) {
    entered_ = history_.size();
    if (next == HealthState::kUnknown) unknown_ = history_.size();
    if (next == HealthState::kUnknown || next == HealthState::kHealthy) {
      for (const CheckKind k : {CheckKind::kLiveness, CheckKind::kReadiness, CheckKind::kPerformance}) {
        run_at_episode_[static_cast<size_t>(k)] = in_a_row(k, Outcome::kFail, unknown_);
      }
      episode_ = history_.size();
    }
    state_ = next;
  }

  HealthConfig config_;
  std::vector<Look> history_;
  HealthState state_ = HealthState::kUnknown;
  size_t entered_ = 0;  // this state
  size_t unknown_ = 0;  // the last time UNKNOWN was entered: nothing before it counts
  size_t episode_ = 0;  // the last time marks were taken off
  uint32_t run_at_episode_[kCheckKinds] = {};
};

void compare_one(uint64_t seed) {
  test::Random random(seed);
  HealthConfig config{.recovery = random.one_in(2) ? Recovery::kDirect : Recovery::kStepwise,
                      .readiness = ProbeConfig{},
                      .performance = PerformanceConfig{}};
  const auto draw = [&random](auto& check) {
    check->fall = 1 + random.below(4);
    check->rise = 1 + random.below(4);
  };
  draw(config.liveness);
  draw(config.readiness);
  draw(config.performance);

  HealthMonitor monitor(config, 0);
  Oracle oracle(config);
  bool held_down = true;
  Outcome mood = Outcome::kPass;
  for (int step = 0; step < 600; ++step) {
    if (random.one_in(6)) mood = static_cast<Outcome>(random.below(3));  // runs are what matters
    const auto kind = static_cast<CheckKind>(random.below(kCheckKinds));
    const Outcome outcome = random.one_in(8) ? static_cast<Outcome>(random.below(3)) : mood;
    const HealthState before = monitor.state();
    const auto change = monitor.on_check(kind, outcome, "", static_cast<Nanoseconds>(step));
    const HealthState expected = oracle.look(kind, outcome);
    ASSERT_EQ(monitor.state(), expected) << "step " << step;
    ASSERT_EQ(change.has_value(), before != expected) << "step " << step;
    if (change) {
      ASSERT_EQ(change->recovery, expected == HealthState::kHealthy && held_down) << "step " << step;
    }
    held_down = expected != HealthState::kHealthy && (held_down || !serves(expected));
  }
}

TEST(HealthMonitor, AgreesWithAnOracleOverRandomChecks_D24_D54) {
  const uint64_t seed = test::test_seed();
  SCOPED_TRACE(test::seed_text(seed));
  for (uint64_t run = 0; run < 2000; ++run) {
    compare_one(seed + run);
    if (HasFatalFailure()) {
      ADD_FAILURE() << "run " << run;
      return;
    }
  }
}

}  // namespace
}  // namespace margay::control
