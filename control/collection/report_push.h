// SPDX-License-Identifier: Apache-2.0
#pragma once

// The reports of one SCI on their way to a C-SMA in another process, over one stream. What matters is the SCI's state,
// so nothing is kept for later: with each connection, and after reports that found no room, a full report is asked of
// the SCI, and its sequence shows the gap. Pure; one thread.

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>

#include "control/northbound/core/backoff.h"
#include "control/sci/report.h"

namespace margay::control {

class ReportPush {
 public:
  static constexpr size_t kUnansweredMax = 16;  // proto/margay/v1/collection.proto
  static constexpr size_t kWaitingMax = 16;
  static constexpr Nanoseconds kFirstWait = kSecond, kLongestWait = 60 * kSecond;  // CSMA-170's, this way round

  // Tries at least as often as it would report: a C-SMA that comes back must hear of us before it takes us for silent.
  ReportPush(Nanoseconds reporting_interval, uint64_t seed, Nanoseconds now)
      : backoff_(kFirstWait, std::clamp(reporting_interval, kFirstWait, kLongestWait), seed), connect_at_(now) {}

  // Of the SCI, in the order of its sequence. `answered`: somebody asked for it otherwise, and has it; where that was
  // all that it is for, it does not go this way too, for the same C-SMA would take the second one for a replay.
  void report(const Report& report, bool answered = false);

  // Of the stream.
  void connecting() { connect_at_ = kNever; }
  void opened();
  void closed(Nanoseconds now);
  void written() { writing_ = false; }
  void answered();  // a report; what became of it is the caller's to tell
  void pulled() { wants_full_ = true; }

  // What is to be done. A report is to be sent at once, and written() tells that it went.
  bool wants_connection(Nanoseconds now) const { return connect_at_ <= now; }
  Nanoseconds next_due() const { return connect_at_; }
  std::optional<Report> next();
  // The SCI is to make a full report now.
  bool take_wants_full() {
    asked_ = asked_ || wants_full_;
    return std::exchange(wants_full_, false);
  }

  // Everything that could go has been answered.
  bool settled() const { return !open_ || (waiting_.empty() && unanswered_ == 0); }
  uint64_t not_sent() const { return not_sent_; }

 private:
  northbound::Backoff backoff_;
  Nanoseconds connect_at_;
  std::deque<Report> waiting_;
  size_t unanswered_ = 0;
  bool open_ = false, writing_ = false, gap_ = false, wants_full_ = false, asked_ = false;
  uint64_t not_sent_ = 0;
};

}  // namespace margay::control
