// SPDX-License-Identifier: Apache-2.0
#include "control/c_sma/clock_watch.h"

#include <algorithm>
#include <limits>

namespace margay::c_sma {
namespace {

// a - b, at the ends of the range where it would leave it: a time stamp is anybody's.
int64_t difference(int64_t a, int64_t b) {
  int64_t result = 0;
  if (!__builtin_sub_overflow(a, b, &result)) return result;
  return a < b ? std::numeric_limits<int64_t>::min() : std::numeric_limits<int64_t>::max();
}

bool beyond(int64_t ms, Nanoseconds limit) {
  const auto limit_ms = static_cast<int64_t>(limit / kMillisecond);
  return ms > limit_ms || ms < -limit_ms;
}

}  // namespace

int64_t ClockWatch::PeerClock::estimate() const {
  return *std::max_element(samples.begin(), samples.begin() + static_cast<std::ptrdiff_t>(std::min(count, kSamples)));
}

bool ClockWatch::watch_own(Time now, const ValidationConfig& config, Nanoseconds hold) {
  const int64_t offset = difference(now.unix_ms, static_cast<int64_t>(now.monotonic / kMillisecond));
  const bool jumped = offset_ms_ && beyond(difference(offset, *offset_ms_), config.skew_alarm);
  offset_ms_ = offset;
  if (!jumped) return false;
  ++jumps_;
  heard_ = off_ = 0;
  suspect_until_ = now.monotonic + hold;
  return true;
}

ClockWatch::Finding ClockWatch::judge(const std::string& identity, int64_t timestamp_ms, Time now,
                                      const ValidationConfig& config) {
  PeerClock& peer = peers_[identity];
  if (peer.count > 0 && peer.jumps != jumps_) peer = {};
  const bool first = peer.count == 0;
  const int64_t skew = difference(timestamp_ms, now.unix_ms);
  peer.jumps = jumps_;
  peer.samples[peer.count++ % kSamples] = skew;

  const bool too_far = beyond(skew, config.skew_refuse);
  heard_ += first ? 1 : 0;
  if (peer.off != too_far) off_ = too_far ? off_ + 1 : off_ - 1;
  peer.off = too_far;

  const bool alarming = beyond(peer.estimate(), config.skew_alarm);
  const bool news = alarming && !peer.alarmed;
  peer.alarmed = alarming;
  return {.too_far = too_far,
          .own_clock = own_suspected(now.monotonic),
          .alarm_ms = news ? std::optional(peer.estimate()) : std::nullopt};
}

bool ClockWatch::own_suspected(Nanoseconds now) const {
  return now < suspect_until_ || (off_ >= kPeersMin && off_ > heard_ / 2);
}

std::optional<int64_t> ClockWatch::estimate(const std::string& identity) const {
  const auto found = peers_.find(identity);
  if (found == peers_.end() || found->second.count == 0) return std::nullopt;
  return found->second.estimate();
}

}  // namespace margay::c_sma
