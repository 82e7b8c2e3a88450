// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which of the log lines that another process can cause at will are written: 20 at once, then one a second. A line that
// is written says how many were left out before it. One thread.

#include <cstdint>
#include <utility>

#include "common/token_bucket.h"

namespace margay {

class LogLimit {
 public:
  bool allows(Nanoseconds now) {
    const bool allowed = bucket_.take(now);
    left_out_ += !allowed;
    return allowed;
  }
  // Since it was asked last.
  uint64_t left_out() { return std::exchange(left_out_, 0); }

 private:
  TokenBucket bucket_{{.spacing = kSecond, .burst = 20}};
  uint64_t left_out_ = 0;
};

}  // namespace margay
