// SPDX-License-Identifier: Apache-2.0
#pragma once

// Whom to suspect when many sources fall silent together, or our own loop was late: ourselves first (D-29, D-51). For a
// while nobody fails; then those still silent do, a few a second. Pure; one thread.

#include <cstddef>
#include <optional>
#include <set>

#include "control/c_sma/config.h"

namespace margay::c_sma {

class SelfDoubt {
 public:
  static constexpr size_t kSilentMin = 3;
  static constexpr Share kReleased{0.1};  // of all sources, a second

  explicit SelfDoubt(const SelfDoubtConfig& config) : config_(config) {}
  void configure(const SelfDoubtConfig& config) { config_ = config; }

  // A source has been silent for its TTL, `reporting` others have not. True: doubt begins.
  bool went_silent(Nanoseconds at, Nanoseconds ttl, size_t reporting);
  // One that went silent at that time is heard, or is gone for another reason.
  void heard(Nanoseconds went_silent_at);
  // Our loop was late by so much. True: doubt begins.
  bool loop_late(Nanoseconds by, Nanoseconds ttl, Nanoseconds now);

  // What STALE entries are worth stands.
  bool active() const { return active_; }
  // Nobody fails.
  bool holds(Nanoseconds now) const { return active_ && now < until_; }
  // A silent source whose grace is over may fail now. Counts it. `sources`: all that have not failed.
  bool may_fail(size_t sources, Nanoseconds now);
  // When may_fail() is worth another try. REQUIRES: active()
  Nanoseconds retry_at(Nanoseconds now) const;
  // No silent source waits to fail. True: doubt ends.
  bool settle(Nanoseconds now);

 private:
  bool begin(Nanoseconds now);

  SelfDoubtConfig config_;
  std::multiset<Nanoseconds> silent_;  // when, of those silent still, within one TTL
  bool active_ = false;
  Nanoseconds until_ = 0;
  std::optional<Nanoseconds> second_;  // of the release, counted from its begin
  size_t may_fail_ = 0;                // in this second, still
};

}  // namespace margay::c_sma
