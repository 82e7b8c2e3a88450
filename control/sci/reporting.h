// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reporting Interface: which report goes to the C-SMA when (SCI-100..111, D-11, D-14, D-34, D-37, D-48, D-50). Pure;
// one thread; runs on monotonic time alone, the wall clock is only copied into the time stamp.
//
// Reasons gather until a report may go and then all meet in one, which tells the newest state: nothing is lost, and
// nothing old is sent. The periodic report, the first and the last one always go. THRESHOLD and PULLED want a token of
// the routine bucket; HEALTH, ADMIN, RECOVERY, ALL_DOWN and SECURITY one of the critical bucket. HEALTH waits a moment
// for other changes of health first (SCI-72), and a THRESHOLD waits with it.

#include <optional>
#include <vector>

#include "common/token_bucket.h"
#include "control/sci/config.h"
#include "control/sci/report.h"

namespace margay::control {

// Never goes back, whatever was persisted and whatever the wall clock says (D-14).
uint64_t next_epoch(std::optional<uint64_t> persisted, int64_t start_unix_ms);

class ReportingInterface {
 public:
  ReportingInterface(const SciSpec& config, uint64_t epoch, Nanoseconds now);
  void configure(const SciSpec& config, Nanoseconds now);

  void raise(Trigger trigger, Nanoseconds now);
  void raise(SecurityEvent event, Nanoseconds now);
  // Compares with what was last sent: a metric that has moved far enough is a THRESHOLD. One that came back before it
  // could be told is none.
  void observe(const SciState& state, Nanoseconds now);

  // A report may go now.
  bool due(Nanoseconds now) const { return next_due() <= now; }
  Nanoseconds next_due() const;
  // REQUIRES: due(now)
  Report make(const SciState& state, Nanoseconds now, int64_t unix_ms);

 private:
  Nanoseconds ready(Triggers wanted, const TokenBucket& bucket) const;
  void spend(Nanoseconds now);
  Trigger trigger_of(const SciState& state) const;
  // A delta could not tell it: what it leaves out did not change.
  bool lacks_what_was_sent(const SciState& state) const;
  void leave_out_unchanged(SciState& state) const;

  std::string csci_id_, cs_id_;
  ReportConfig config_;
  Nanoseconds batch_ = 0;
  TokenBucket routine_, critical_;
  uint64_t epoch_;
  uint64_t sequence_ = 0;
  Nanoseconds next_periodic_;
  Triggers pending_;
  Nanoseconds health_since_ = 0;  // the first change of health that waits
  std::vector<SecurityEvent> security_events_;
  uint64_t security_events_dropped_ = 0;
  std::optional<SciState> sent_;
};

}  // namespace margay::control
