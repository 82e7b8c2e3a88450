// SPDX-License-Identifier: Apache-2.0
#pragma once

// Clocks of the peers against ours (D-15, D-28, D-29). A peer whose time stamps are too far off is refused, and named
// before it comes to that. Where most peers are off, or our own wall clock has just jumped against the monotonic one,
// ours is at fault: nobody is refused for it. Pure; one thread.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "common/time_point.h"
#include "control/c_sma/config.h"

namespace margay::c_sma {

class ClockWatch {
 public:
  static constexpr uint32_t kPeersMin = 3;  // that most can be said of

  struct Finding {
    bool too_far = false;
    bool own_clock = false;  // suspected: a report that is too far off is not refused
    // News: the peer's clock is off by so much, the estimate.
    std::optional<int64_t> alarm_ms = {};
  };

  // Of each event. True: our wall clock has jumped.
  bool watch_own(Time now, const ValidationConfig& config, Nanoseconds hold);
  Finding judge(const std::string& identity, int64_t timestamp_ms, Time now, const ValidationConfig& config);

  bool own_suspected(Nanoseconds now) const;
  // Milliseconds that the peer's clock is ahead. The least delayed of its last reports tells it.
  std::optional<int64_t> estimate(const std::string& identity) const;

 private:
  static constexpr size_t kSamples = 4;
  struct PeerClock {
    std::array<int64_t, kSamples> samples = {};
    size_t count = 0;
    uint64_t jumps = 0;  // of our clock, before its last sample
    bool off = false, alarmed = false;
    int64_t estimate() const;
  };

  std::unordered_map<std::string, PeerClock> peers_;
  uint32_t heard_ = 0, off_ = 0;  // since our clock's last jump
  uint64_t jumps_ = 0;
  std::optional<int64_t> offset_ms_;  // wall clock less monotonic clock
  Nanoseconds suspect_until_ = 0;
};

}  // namespace margay::c_sma
