// SPDX-License-Identifier: Apache-2.0
#pragma once

// How long to wait before the next try to reach a C-PS (CSMA-129, 170; D-50): nominally initial, twice that, and so on
// up to max; each times a number between 0.75 and 1.25 of its own, the first one too, so that many that lost the same
// C-PS at once do not come back at once. Pure; one thread.

#include <algorithm>
#include <cstdint>

#include "common/units.h"

namespace margay::northbound {

class Backoff {
 public:
  // REQUIRES: 0 < initial <= max
  Backoff(Nanoseconds initial, Nanoseconds max, uint64_t seed)
      : initial_(initial), max_(max), nominal_(initial), state_(seed) {}

  Nanoseconds next() {
    const Nanoseconds nominal = nominal_;
    nominal_ = std::min(max_, nominal * 2);
    const Nanoseconds quarter = nominal / 4;
    return nominal - quarter + random() % (2 * quarter + 1);
  }
  // The C-PS has taken our hello; or an operator wants a try now. A connection that stands is not enough: who accepts
  // and drops would be called without end.
  void reset() { nominal_ = initial_; }

 private:
  uint64_t random() {  // SplitMix64
    uint64_t v = state_ += 0x9e3779b97f4a7c15;
    v = (v ^ v >> 30) * 0xbf58476d1ce4e5b9;
    v = (v ^ v >> 27) * 0x94d049bb133111eb;
    return v ^ v >> 31;
  }

  Nanoseconds initial_, max_, nominal_;
  uint64_t state_;
};

}  // namespace margay::northbound
