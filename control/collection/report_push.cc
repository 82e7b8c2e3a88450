// SPDX-License-Identifier: Apache-2.0
#include "control/collection/report_push.h"

namespace margay::control {

void ReportPush::report(const Report& report, bool answered) {
  if (answered && report.trigger == Trigger::kPulled && !asked_) return;
  asked_ = asked_ && !report.full;
  if (open_ && !gap_ && waiting_.size() < kWaitingMax) {
    waiting_.push_back(report);
    return;
  }
  ++not_sent_;
  gap_ = open_;
}

void ReportPush::opened() {
  open_ = true;
  writing_ = gap_ = false;
  unanswered_ = 0;
  waiting_.clear();
  wants_full_ = true;
}

void ReportPush::closed(Nanoseconds now) {
  not_sent_ += waiting_.size();
  waiting_.clear();
  open_ = false;
  wants_full_ = false;
  connect_at_ = now + backoff_.next();
}

void ReportPush::answered() {
  backoff_.reset();  // now and not before: who accepts and drops would be called without end
  if (unanswered_ > 0) --unanswered_;
}

std::optional<Report> ReportPush::next() {
  if (!open_ || writing_ || unanswered_ >= kUnansweredMax) return std::nullopt;
  if (waiting_.empty()) {
    if (gap_) wants_full_ = true;
    gap_ = false;
    return std::nullopt;
  }
  Report report = std::move(waiting_.front());
  waiting_.pop_front();
  writing_ = true;
  ++unanswered_;
  return report;
}

}  // namespace margay::control
