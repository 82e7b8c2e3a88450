// SPDX-License-Identifier: Apache-2.0
#pragma once

// A token bucket on the caller's clock. One thread.

#include <algorithm>

#include "dataplane/core/units.h"

namespace margay::dp {

class TokenBucket {
 public:
  TokenBucket(double per_second, double burst, Nanoseconds now)
      : per_nanosecond_(per_second / static_cast<double>(kSecond)), burst_(burst), tokens_(burst), last_(now) {}

  bool take(Nanoseconds now) {
    if (now > last_) {
      tokens_ = std::min(burst_, tokens_ + static_cast<double>(now - last_) * per_nanosecond_);
      last_ = now;
    }
    if (tokens_ < 1) return false;
    tokens_ -= 1;
    return true;
  }

 private:
  double per_nanosecond_, burst_, tokens_;
  Nanoseconds last_;
};

}  // namespace margay::dp
