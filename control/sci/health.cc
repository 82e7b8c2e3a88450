// SPDX-License-Identifier: Apache-2.0
#include "control/sci/health.h"

#include <algorithm>
#include <utility>

namespace margay::control {
namespace {

constexpr auto kHealthy = HealthState::kHealthy;
constexpr auto kDegraded = HealthState::kDegraded;
constexpr auto kUnhealthy = HealthState::kUnhealthy;
constexpr auto kUnknown = HealthState::kUnknown;

constexpr CheckKind kProbes[] = {CheckKind::kLiveness, CheckKind::kReadiness};

}  // namespace

std::string_view name_of(CheckKind k) {
  switch (k) {
    case CheckKind::kLiveness:
      return "liveness";
    case CheckKind::kReadiness:
      return "readiness";
    case CheckKind::kPerformance:
      return "performance";
  }
  return "?";
}

// Figure 2 with D-24. kDown: a probe fell. kSlow: performance fell. kBlind: the prober cannot judge. kReachable: the
// probes that have to rise did, performance has not. kRisen: all that have to rise did; kRisenAtOnce: the same with
// `recovery: direct`.
const std::array<std::array<HealthState, HealthMonitor::kEvents>, kHealthStates> HealthMonitor::kTable = {{
    // kNone     kDown       kSlow       kBlind    kReachable  kRisen     kRisenAtOnce
    {kHealthy, kUnhealthy, kDegraded, kUnknown, kHealthy, kHealthy, kHealthy},       // HEALTHY
    {kDegraded, kUnhealthy, kDegraded, kUnknown, kDegraded, kHealthy, kHealthy},     // DEGRADED
    {kUnhealthy, kUnhealthy, kUnhealthy, kUnknown, kDegraded, kDegraded, kHealthy},  // UNHEALTHY
    {kUnknown, kUnhealthy, kUnknown, kUnknown, kHealthy, kHealthy, kHealthy},        // UNKNOWN
}};

HealthMonitor::HealthMonitor(const HealthConfig& config, Nanoseconds now) : since_(now), serves_since_(now) {
  take(config);
  state_ = probed() ? kUnknown : kHealthy;
  held_down_ = probed();
}

HealthMonitor::HealthMonitor(const HealthConfig& config, Nanoseconds now, const KnownHealth& known)
    : state_(known.state),
      since_(now > known.age ? now - known.age : 0),
      serves_since_(now > known.serves_age ? now - known.serves_age : 0),
      held_down_(!serves(known.state)) {
  take(config);
  if (known.state != kHealthy && known.state != kUnknown) mark_all();
  if (waits()) return;
  if (!serves(state_)) serves_since_ = now;
  state_ = kHealthy;
  since_ = now;
  held_down_ = false;
}

void HealthMonitor::take(const HealthConfig& config) {
  const auto take_kind = [this](CheckKind k, const auto& check) {
    Kind& kind = of(k);
    if (!check) {
      kind = Kind{};
      return;
    }
    kind.configured = true;
    kind.fall = check->fall;
    kind.rise = check->rise;
  };
  recovery_ = config.recovery;
  take_kind(CheckKind::kLiveness, config.liveness);
  take_kind(CheckKind::kReadiness, config.readiness);
  take_kind(CheckKind::kPerformance, config.performance);
}

void HealthMonitor::mark_all() {
  for (Kind& kind : kinds_) kind.marked = kind.configured;
}

std::optional<HealthChange> HealthMonitor::configure(const HealthConfig& config, Nanoseconds now) {
  take(config);
  const bool probe_marked = of(CheckKind::kLiveness).marked || of(CheckKind::kReadiness).marked;
  const bool any_marked = probe_marked || of(CheckKind::kPerformance).marked;
  if (state_ == kUnhealthy ? !probe_marked : state_ == kDegraded && !any_marked) mark_all();
  if (waits()) return std::nullopt;
  return enter(kHealthy, {.kind = {}, .outcome = {}, .count = 0, .detail = "no check is left to raise it"}, now);
}

bool HealthMonitor::waits() const {
  if (!serves(state_)) return probed();
  return state_ == kHealthy || probed() || of(CheckKind::kPerformance).marked;
}

std::optional<HealthChange> HealthMonitor::on_check(CheckKind k, Outcome outcome, std::string detail, Nanoseconds now) {
  Kind& kind = of(k);
  if (!kind.configured) return std::nullopt;
  uint32_t& run = outcome == Outcome::kPass ? kind.passes : outcome == Outcome::kFail ? kind.fails : kind.errors;
  const uint32_t count = run + 1;
  if (outcome != Outcome::kError) kind.passes = kind.fails = kind.errors = 0;
  run = count;
  if (outcome == Outcome::kFail && count >= kind.fall) kind.marked = true;

  const HealthState to = kTable[static_cast<size_t>(state_)][static_cast<size_t>(judge(k, outcome))];
  if (to == state_) return std::nullopt;
  return enter(to, {k, outcome, count, std::move(detail)}, now);
}

HealthMonitor::Event HealthMonitor::judge(CheckKind k, Outcome outcome) const {
  const Kind& kind = of(k);
  switch (outcome) {
    case Outcome::kPass:
      return judge_pass();
    case Outcome::kFail:
      if (kind.fails < kind.fall) return Event::kNone;
      return k == CheckKind::kPerformance ? Event::kSlow : Event::kDown;
    case Outcome::kError:
      return k != CheckKind::kPerformance && kind.errors >= kind.fall ? Event::kBlind : Event::kNone;
  }
  return Event::kNone;
}

HealthMonitor::Event HealthMonitor::judge_pass() const {
  const auto risen = [this](const Kind& kind) {
    const bool has_to_rise = state_ == kUnknown ? kind.configured : kind.marked;
    return !has_to_rise || kind.passes >= kind.rise;
  };
  for (const CheckKind k : kProbes) {
    if (!risen(of(k))) return Event::kNone;
  }
  if (!risen(of(CheckKind::kPerformance))) return Event::kReachable;
  return recovery_ == Recovery::kDirect ? Event::kRisenAtOnce : Event::kRisen;
}

// Each state wants M passes of its own (Figure 2); what stays are the marks, until UNKNOWN, where nothing is known, or
// HEALTHY.
HealthChange HealthMonitor::enter(HealthState to, HealthCause cause, Nanoseconds now) {
  const bool recovery = to == kHealthy && held_down_;
  HealthChange change{state_, to, now, now - since_, recovery, std::move(cause)};
  for (Kind& kind : kinds_) {
    kind.passes = 0;
    if (to == kUnknown) kind.fails = kind.errors = 0;
    if (to == kHealthy || to == kUnknown) kind.marked = false;
  }
  held_down_ = to != kHealthy && (held_down_ || !serves(to));
  if (serves(to) && !serves(state_)) serves_since_ = now;
  state_ = to;
  since_ = now;
  return change;
}

bool HealthMonitor::confirming(CheckKind k) const {
  const Kind& kind = of(k);
  const bool unconfirmed = state_ == kUnknown && k != CheckKind::kPerformance;
  return unconfirmed || kind.marked || kind.fails > 0 || kind.errors > 0;
}

}  // namespace margay::control
