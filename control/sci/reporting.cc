// SPDX-License-Identifier: Apache-2.0
#include "control/sci/reporting.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <utility>

namespace margay::control {
namespace {

constexpr Triggers kFree{Trigger::kPeriodic, Trigger::kStart, Trigger::kStop};
constexpr Triggers kRoutine{Trigger::kThreshold, Trigger::kPulled};
constexpr Triggers kImmediate{Trigger::kAdmin, Trigger::kRecovery, Trigger::kAllDown, Trigger::kSecurity};
constexpr Triggers kCritical{Trigger::kHealth, Trigger::kAdmin, Trigger::kRecovery, Trigger::kAllDown,
                             Trigger::kSecurity};
constexpr Triggers kFull{Trigger::kPeriodic, Trigger::kPulled, Trigger::kStart, Trigger::kStop};

bool moved(std::optional<uint32_t> base, std::optional<uint32_t> value, Share share, std::optional<uint32_t> absolute) {
  if (!base || !value) return base.has_value() != value.has_value();
  return crosses(*base, *value, share, absolute);
}

std::optional<uint32_t> value_of(const std::optional<Gas>& gas) {
  return gas ? std::optional(gas->value) : std::nullopt;
}

}  // namespace

std::string_view name_of(Trigger t) {
  static constexpr std::array<std::string_view, kTriggers> kNames = {
      "PERIODIC", "THRESHOLD", "PULLED", "HEALTH", "ADMIN", "RECOVERY", "ALL_DOWN", "SECURITY", "START", "STOP"};
  return kNames[static_cast<size_t>(t)];
}

Trigger Triggers::foremost() const { return static_cast<Trigger>(std::bit_width(bits_) - 1); }

uint64_t next_epoch(std::optional<uint64_t> persisted, int64_t start_unix_ms) {
  const uint64_t start = start_unix_ms > 0 ? static_cast<uint64_t>(start_unix_ms) : 0;
  const bool can_grow = persisted && *persisted < std::numeric_limits<uint64_t>::max();
  return std::max(persisted.value_or(0) + (can_grow ? 1 : 0), start);
}

ReportingInterface::ReportingInterface(const SciSpec& config, uint64_t epoch, Nanoseconds now)
    : csci_id_(config.csci_id),
      cs_id_(config.cs_id),
      config_(config.report),
      batch_(config.health.batch),
      routine_(config.report.rate),
      critical_(config.report.critical),
      epoch_(epoch),
      next_periodic_(now + config.report.interval) {}

void ReportingInterface::configure(const SciSpec& config, Nanoseconds now) {
  // Not later than was told: the C-SMA lets us age by the interval of the last report.
  if (config.report.interval != config_.interval)
    next_periodic_ = std::min(next_periodic_, now + config.report.interval);
  cs_id_ = config.cs_id;
  config_ = config.report;
  batch_ = config.health.batch;
  routine_.change(config_.rate, now);
  critical_.change(config_.critical, now);
}

void ReportingInterface::raise(Trigger trigger, Nanoseconds now) {
  if (trigger == Trigger::kHealth && !pending_.has(trigger)) health_since_ = now;
  pending_.add(trigger);
}

void ReportingInterface::raise(SecurityEvent event, Nanoseconds now) {
  raise(Trigger::kSecurity, now);
  if (security_events_.size() < kSecurityEventsMax) {
    security_events_.push_back(std::move(event));
  } else {
    ++security_events_dropped_;
  }
}

void ReportingInterface::observe(const SciState& state, Nanoseconds now) {
  if (!sent_) return;
  const bool far =
      moved(value_of(sent_->gas), value_of(state.gas), config_.gas_change, config_.gas_absolute) ||
      moved(sent_->computing_time.value, state.computing_time.value, config_.computing_time_change, std::nullopt) ||
      sent_->price != state.price || sent_->reputation != state.reputation;
  if (far) {
    raise(Trigger::kThreshold, now);
  } else {
    pending_.remove(Trigger::kThreshold);
  }
}

// When some of the wanted triggers that are pending find a token.
Nanoseconds ReportingInterface::ready(Triggers wanted, const TokenBucket& bucket) const {
  if (!pending_.meets(wanted)) return kNever;
  const bool asked = wanted == kRoutine && pending_.has(Trigger::kPulled);
  const bool batching = pending_.has(Trigger::kHealth) && !pending_.meets(kImmediate) && !asked;
  return std::max(bucket.next(), batching ? health_since_ + batch_ : 0);
}

Nanoseconds ReportingInterface::next_due() const {
  if (pending_.meets(kFree)) return 0;
  return std::min({next_periodic_, ready(kCritical, critical_), ready(kRoutine, routine_)});
}

void ReportingInterface::spend(Nanoseconds now) {
  if (pending_.meets(kFree)) return;
  if (ready(kCritical, critical_) <= now) {
    critical_.take(now);
  } else {
    routine_.take(now);
  }
}

Report ReportingInterface::make(const SciState& state, Nanoseconds now, int64_t unix_ms) {
  if (next_periodic_ <= now) {
    pending_.add(Trigger::kPeriodic);
    next_periodic_ += (now - next_periodic_) / config_.interval * config_.interval + config_.interval;
  }
  spend(now);
  Report report{.csci_id = csci_id_,
                .cs_id = cs_id_,
                .timestamp_ms = unix_ms,
                .epoch = epoch_,
                .sequence = ++sequence_,
                .full = pending_.meets(kFull) || lacks_what_was_sent(state),
                .trigger = trigger_of(state),
                .reasons = pending_,
                .reporting_interval = config_.interval,
                .ledger_age = state.ledger_at ? std::optional(now - *state.ledger_at) : std::nullopt,
                .state = state,
                .security_events = std::exchange(security_events_, {}),
                .security_events_dropped = std::exchange(security_events_dropped_, 0)};
  if (!report.full && sent_) leave_out_unchanged(report.state);
  pending_ = {};
  sent_ = state;
  return report;
}

// ALL_DOWN says what is so now: where slots are free again, that it was so is one of the reasons only.
Trigger ReportingInterface::trigger_of(const SciState& state) const {
  Triggers said = pending_;
  if (state.gas && state.gas->value > 0 && said.has(Trigger::kAllDown)) {
    said.remove(Trigger::kAllDown);
    said.add(Trigger::kHealth);
  }
  return said.foremost();
}

bool ReportingInterface::lacks_what_was_sent(const SciState& state) const {
  if (!sent_) return false;
  const auto gone = [](const auto& sent, const auto& value) { return sent && !value; };
  return gone(sent_->price, state.price) || gone(sent_->reputation, state.reputation) ||
         gone(sent_->security_level, state.security_level) ||
         !std::includes(state.instances.begin(), state.instances.end(), sent_->instances.begin(),
                        sent_->instances.end(),
                        [](const InstanceDetail& a, const InstanceDetail& b) { return a.id < b.id; });
}

void ReportingInterface::leave_out_unchanged(SciState& state) const {
  const auto leave_out = [](auto& value, const auto& sent) {
    if (value == sent) value.reset();
  };
  leave_out(state.price, sent_->price);
  leave_out(state.reputation, sent_->reputation);
  leave_out(state.security_level, sent_->security_level);
  const auto& before = sent_->instances;  // ordered by id, as these are
  std::erase_if(state.instances, [&before](const InstanceDetail& i) {
    const auto found = std::lower_bound(before.begin(), before.end(), i.id,
                                        [](const InstanceDetail& b, const std::string& id) { return b.id < id; });
    return found != before.end() && found->id == i.id && found->health == i.health && found->admin == i.admin &&
           found->limit == i.limit;  // sessions come and go
  });
}

}  // namespace margay::control
