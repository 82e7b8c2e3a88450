// SPDX-License-Identifier: Apache-2.0
#pragma once

// The newest part of a histogram that only grows: the last one to two windows in which there were requests; all of it
// before that much time has passed. A count or sum that went back belongs to a data plane that started anew. Pure; one
// thread.

#include <optional>

#include "common/histogram.h"

namespace margay::control {

class ResponseWindow {
 public:
  void take(const Histogram& all, Nanoseconds window, Nanoseconds now) {
    const uint64_t count = all.count();
    if (!began_) looked_ = {count, all.sum};  // what came before us is no news
    began_ = true;
    if (count < newest_.count || all.sum < newest_.sum) {
      older_ = newer_ = Histogram{};
      looked_ = {};
    }
    if (now - newer_at_ >= window && count > newer_.count()) {
      older_ = newer_;
      newer_ = all;
      newer_at_ = now;
    }
    newest_ = {count, all.sum};
    recent_ = all.since(older_);
  }
  const Histogram& recent() const { return recent_; }

  // The mean of what was added since the last look; absent: nothing was.
  std::optional<Nanoseconds> look() {
    const Total before = looked_;
    looked_ = newest_;
    if (newest_.count == before.count) return std::nullopt;
    return (newest_.sum - before.sum) / (newest_.count - before.count);
  }

 private:
  struct Total {
    uint64_t count = 0, sum = 0;
  };
  Histogram recent_, newer_, older_;
  Nanoseconds newer_at_ = 0;
  Total newest_, looked_;
  bool began_ = false;
};

}  // namespace margay::control
