// SPDX-License-Identifier: Apache-2.0
#pragma once

// A token bucket in one number (the virtual scheduling form of ITU-T I.371's GCRA): the time at which it will be full.
// Exact; starts full. One thread.

#include <algorithm>
#include <cstdint>

#include "common/units.h"

namespace margay {

// One token each `spacing`, at most `burst` of them. REQUIRES: burst > 0
struct TokenRate {
  Nanoseconds spacing = kSecond;
  uint32_t burst = 1;
  bool operator==(const TokenRate&) const = default;
};

class TokenBucket {
 public:
  explicit TokenBucket(TokenRate rate) : rate_(rate) {}

  // When the next token can be taken; now or earlier: there is one.
  Nanoseconds next() const {
    const Nanoseconds spare = rate_.spacing * (rate_.burst - 1);
    return full_at_ > spare ? full_at_ - spare : 0;
  }
  bool has(Nanoseconds now) const { return next() <= now; }
  bool take(Nanoseconds now) {
    if (!has(now)) return false;
    full_at_ = std::max(full_at_, now) + rate_.spacing;
    return true;
  }
  // Keeps what was spent, measured in tokens of the new rate at most.
  void change(TokenRate rate, Nanoseconds now) {
    rate_ = rate;
    full_at_ = std::min(full_at_, now + rate.spacing * rate.burst);
  }

 private:
  TokenRate rate_;
  Nanoseconds full_at_ = 0;
};

}  // namespace margay
