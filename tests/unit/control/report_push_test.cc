// SPDX-License-Identifier: Apache-2.0
// Reports of one SCI on their way to a C-SMA of another process (SCI-98's push; CSMA-23, CSMA-25).
#include "control/collection/report_push.h"

#include <gtest/gtest.h>

#include <vector>

namespace margay::control {
namespace {

Report numbered(uint64_t sequence) {
  Report report;
  report.sequence = sequence;
  return report;
}

// All that goes out while each write ends at once and nothing is answered.
std::vector<uint64_t> sent_by(ReportPush& push) {
  std::vector<uint64_t> sequences;
  while (auto report = push.next()) {
    sequences.push_back(report->sequence);
    push.written();
  }
  return sequences;
}

TEST(ReportPush, AConnectionBeginsWithAFullReport) {
  ReportPush push(60 * kSecond, 1, 5);
  EXPECT_TRUE(push.wants_connection(5));
  push.connecting();
  EXPECT_FALSE(push.wants_connection(kNever - 1));
  push.report(numbered(1));  // nobody to tell it to
  push.opened();
  EXPECT_TRUE(push.take_wants_full());
  EXPECT_FALSE(push.take_wants_full());
  push.report(numbered(2));
  push.report(numbered(3));
  EXPECT_EQ(sent_by(push), (std::vector<uint64_t>{2, 3}));
  EXPECT_EQ(push.not_sent(), 1u);
}

TEST(ReportPush, OneWriteAtATimeAndSixteenUnanswered) {
  ReportPush push(60 * kSecond, 1, 0);
  push.opened();
  push.report(numbered(0));
  push.report(numbered(1));
  ASSERT_TRUE(push.next());
  EXPECT_FALSE(push.next());
  push.written();
  EXPECT_EQ(sent_by(push).size(), 1u);
  for (uint64_t i = 2; i < 18; ++i) push.report(numbered(i));
  EXPECT_EQ(sent_by(push).size(), 14u);  // 16 with the two before
  push.answered();
  EXPECT_EQ(sent_by(push), std::vector<uint64_t>{16});
}

TEST(ReportPush, WhatFindsNoRoomIsMadeUpForByAFullReport) {
  ReportPush push(60 * kSecond, 1, 0);
  push.opened();
  (void)push.take_wants_full();
  for (uint64_t i = 0; i < 40; ++i) push.report(numbered(i));
  EXPECT_EQ(push.not_sent(), 24u);  // 40 less the 16 that wait
  EXPECT_EQ(sent_by(push).size(), 16u);
  EXPECT_FALSE(push.take_wants_full());  // nobody has answered yet
  push.report(numbered(40));             // a delta to what did not go out
  EXPECT_EQ(push.not_sent(), 25u);
  push.answered();
  EXPECT_TRUE(sent_by(push).empty());
  EXPECT_TRUE(push.take_wants_full());
  push.report(numbered(41));
  EXPECT_EQ(sent_by(push), std::vector<uint64_t>{41});
}

// D-50: nominal times 0.75 to 1.25; facts of other systems: who accepts and drops must not be called without end.
TEST(ReportPush, WaitsLongerUntilSomethingIsAnswered) {
  ReportPush push(60 * kSecond, 7, 0);
  Nanoseconds nominal = kSecond;
  for (int i = 0; i < 8; ++i) {
    push.connecting();
    push.opened();
    push.closed(0);
    EXPECT_GE(push.next_due(), nominal / 4 * 3) << i;
    EXPECT_LE(push.next_due(), nominal / 4 * 5) << i;
    nominal = std::min(nominal * 2, 60 * kSecond);
  }
  push.opened();
  push.answered();
  push.closed(0);
  EXPECT_LE(push.next_due(), kSecond / 4 * 5);
  EXPECT_FALSE(push.take_wants_full());
}

// Else a C-SMA that was away for long withdraws us, who live, before we call.
TEST(ReportPush, TriesAsOftenAsItReports) {
  ReportPush push(2 * kSecond, 7, 0);
  for (int i = 0; i < 8; ++i) push.closed(0);
  EXPECT_LE(push.next_due(), 2 * kSecond / 4 * 5);
}

TEST(ReportPush, IsSettledOnceAllIsAnswered) {
  ReportPush push(60 * kSecond, 1, 0);
  push.report(numbered(1));
  EXPECT_TRUE(push.settled());  // nobody to tell it to
  push.opened();
  push.report(numbered(2));
  EXPECT_FALSE(push.settled());
  (void)sent_by(push);
  EXPECT_FALSE(push.settled());
  push.answered();
  EXPECT_TRUE(push.settled());
}

// The C-SMA that asked for it otherwise would refuse the second one as a replay.
TEST(ReportPush, WhatOnlyAnsweredSomebodyElseIsNotPushedToo_CSMA31) {
  ReportPush push(60 * kSecond, 1, 0);
  Report report = numbered(1);
  report.trigger = Trigger::kPulled;
  report.full = true;
  push.opened();
  EXPECT_TRUE(push.take_wants_full());
  push.report(report, true);  // the stream waits for one, too
  EXPECT_EQ(sent_by(push), std::vector<uint64_t>{1});
  report.sequence = 2;
  push.report(report, true);
  EXPECT_EQ(sent_by(push), std::vector<uint64_t>{});
  report.sequence = 3;
  report.trigger = Trigger::kAllDown;  // news for everybody
  push.report(report, true);
  EXPECT_EQ(sent_by(push), std::vector<uint64_t>{3});
  EXPECT_EQ(push.not_sent(), 0u);
}

TEST(ReportPush, APullIsPassedOn_CSMA31) {
  ReportPush push(60 * kSecond, 1, 0);
  push.opened();
  (void)push.take_wants_full();
  push.pulled();
  EXPECT_TRUE(push.take_wants_full());
}

}  // namespace
}  // namespace margay::control
