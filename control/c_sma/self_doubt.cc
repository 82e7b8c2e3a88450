// SPDX-License-Identifier: Apache-2.0
#include "control/c_sma/self_doubt.h"

#include <algorithm>

namespace margay::c_sma {

bool SelfDoubt::begin(Nanoseconds now) {
  if (active_) return false;
  active_ = true;
  until_ = now + config_.hold;
  second_.reset();
  return true;
}

bool SelfDoubt::went_silent(Nanoseconds at, Nanoseconds ttl, size_t reporting) {
  silent_.insert(at);
  if (at > ttl) silent_.erase(silent_.begin(), silent_.lower_bound(at - ttl));
  const auto silent = static_cast<uint32_t>(silent_.size());
  const auto all = static_cast<uint32_t>(reporting) + silent;
  return silent >= kSilentMin && config_.share.reached_by(silent, all) && begin(at);
}

void SelfDoubt::heard(Nanoseconds went_silent_at) {
  if (const auto found = silent_.find(went_silent_at); found != silent_.end()) silent_.erase(found);
}

bool SelfDoubt::loop_late(Nanoseconds by, Nanoseconds ttl, Nanoseconds now) { return by > ttl / 2 && begin(now); }

bool SelfDoubt::may_fail(size_t sources, Nanoseconds now) {
  if (!active_) return true;
  if (now < until_) return false;
  if (const Nanoseconds second = (now - until_) / kSecond; second != second_) {
    second_ = second;
    may_fail_ = std::max<size_t>(1, kReleased.floor_of(static_cast<uint32_t>(sources)));
  }
  if (may_fail_ == 0) return false;
  --may_fail_;
  return true;
}

Nanoseconds SelfDoubt::retry_at(Nanoseconds now) const {
  return now < until_ ? until_ : until_ + ((now - until_) / kSecond + 1) * kSecond;
}

bool SelfDoubt::settle(Nanoseconds now) {
  if (!active_ || now < until_) return false;
  active_ = false;
  silent_.clear();
  return true;
}

}  // namespace margay::c_sma
