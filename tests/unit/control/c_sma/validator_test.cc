// SPDX-License-Identifier: Apache-2.0
#include "control/c_sma/validator.h"

#include <gtest/gtest.h>

#include "tests/unit/control/c_sma/c_sma_rig.h"

namespace margay::c_sma {
namespace {

using test::kBegin;
using test::kUnix;
using test::report_of;

CSmaConfig config() { return {.identity = "c", .accept = {{"a", "ARS", 500}, {"b", "VRS"}}}; }
Peer peer() { return {.identity = "host", .names = {{"a", "ARS"}, {"b", "ARS"}}}; }

struct ValidatorRig {
  // Its refusal; absent: taken.
  std::optional<Refusal> send(const control::Report& report, const Peer& from = peer()) {
    last = validator.check(report, from, {now, wall});
    if (last.refusal) return last.refusal->refusal;
    judgement = validator.weigh(report, last.own_clock, now);
    return std::nullopt;
  }
  std::optional<Refusal> send(uint64_t epoch, uint64_t sequence) {
    return send(report_of("a", "ARS", sequence, {.epoch = epoch}, wall));
  }

  Validator validator{config()};
  Validator::Checked last = {};
  Judgement judgement = {};
  Nanoseconds now = kBegin;
  int64_t wall = kUnix;
};

TEST(Validator, OnlyListedScisMayReport_CSMA34_CSMA187) {
  ValidatorRig r;
  EXPECT_FALSE(r.send(report_of("a", "ARS", 1, {})));
  EXPECT_EQ(r.send(report_of("c", "ARS", 1, {})), Refusal::kNotListed);
}

TEST(Validator, AnSciReportsForTheServiceOfTheSiteFile_CSMA187) {
  ValidatorRig r;
  EXPECT_EQ(r.send(report_of("b", "ARS", 1, {})), Refusal::kWrongCsId);  // which its certificate names
  EXPECT_EQ(r.last.refusal->detail, "its service is VRS, not ARS");
}

TEST(Validator, ThePeersCertificateNamesSciAndService_CSMA33_D16) {
  ValidatorRig r;
  EXPECT_EQ(r.send(report_of("b", "VRS", 1, {})), Refusal::kNotInCertificate);
  EXPECT_EQ(r.send(report_of("a", "ARS", 1, {}), {.identity = "other"}), Refusal::kNotInCertificate);
  EXPECT_EQ(r.last.refusal->detail, "the certificate of other does not name it");
  EXPECT_FALSE(r.send(report_of("b", "VRS", 1, {}), {.identity = "here", .co_located = true}));
  EXPECT_EQ(r.send(report_of("c", "VRS", 1, {}), {.identity = "here", .co_located = true}), Refusal::kNotListed);
}

TEST(Validator, FormatAndRangeAreJudgedBeforeOrder_CSMA34_CSMA43) {
  ValidatorRig r;
  EXPECT_EQ(r.send(report_of("a", "ARS", 0, {})), Refusal::kMalformed);
  EXPECT_EQ(r.send(report_of("a", "ARS", 9, {.reputation = 11})), Refusal::kOutOfRange);
  EXPECT_FALSE(r.send(1, 5));  // a refused report's sequence is not remembered
}

TEST(Validator, OldReportsAreDiscarded_CSMA49_CSMA50_D14) {
  ValidatorRig r;
  EXPECT_FALSE(r.send(5, 10));
  EXPECT_EQ(r.send(5, 10), Refusal::kDuplicate);
  EXPECT_EQ(r.send(5, 9), Refusal::kOldSequence);
  EXPECT_EQ(r.send(4, 11), Refusal::kOldEpoch);
  EXPECT_EQ(r.last.refusal->detail, "epoch 4, sequence 11, after epoch 5, sequence 10");
  EXPECT_FALSE(r.send(5, 11));
  EXPECT_FALSE(r.send(6, 1));  // the epoch is compared first
  EXPECT_EQ(r.send(5, 12), Refusal::kOldEpoch);
}

TEST(Validator, EachSciHasAnOrderOfItsOwn_D14) {
  ValidatorRig r;
  EXPECT_FALSE(r.send(5, 10));
  EXPECT_FALSE(r.send(report_of("b", "VRS", 1, {}), {.identity = "here", .co_located = true}));
}

TEST(Validator, AnEpochCanBeForgottenAndSet_D14) {
  ValidatorRig r;
  EXPECT_FALSE(r.send(5, 10));
  r.validator.set_order("a", std::nullopt);
  EXPECT_FALSE(r.send(1, 1));
  r.validator.set_order("a", ReportOrder{3, 3});
  EXPECT_EQ(r.send(3, 3), Refusal::kDuplicate);
  EXPECT_EQ(r.validator.orders().size(), 1u);
}

TEST(Validator, ReloadKeepsTheOrderOfThoseThatStayListed_D14) {
  ValidatorRig r;
  EXPECT_FALSE(r.send(5, 10));
  CSmaConfig c = config();
  c.accept.push_back({"c", "ARS"});
  r.validator.configure(c);
  EXPECT_EQ(r.send(5, 10), Refusal::kDuplicate);
  c.accept = {{"b", "VRS"}};
  r.validator.configure(c);
  EXPECT_EQ(r.send(5, 11), Refusal::kNotListed);
}

TEST(Validator, AQuarantinedReportIsSeen_NotItsOwnConfirmation_D10) {
  ValidatorRig r;
  EXPECT_FALSE(r.send(report_of("a", "ARS", 1, {.gas = 100})));
  EXPECT_FALSE(r.send(report_of("a", "ARS", 2, {.gas = 300})));
  EXPECT_EQ(r.judgement.verdict, Verdict::kQuarantined);
  EXPECT_EQ(r.send(report_of("a", "ARS", 2, {.gas = 300})), Refusal::kDuplicate);
}

TEST(Validator, TheCeilingIsTheSitesFiles_D10) {
  ValidatorRig r;
  EXPECT_FALSE(r.send(report_of("a", "ARS", 1, {.gas = 501})));
  EXPECT_EQ(r.judgement.reason(), "GAS_CEILING");
  EXPECT_FALSE(r.send(report_of("b", "VRS", 1, {.gas = 4294967295}), {.identity = "here", .co_located = true}));
  EXPECT_EQ(r.judgement.verdict, Verdict::kAccepted);  // none is told for it
}

TEST(Skew, MoreThanThirtySecondsIsRefusedWithBothClocks_D15) {
  for (const int64_t off : {30'000, -30'000}) {
    ValidatorRig r;
    EXPECT_FALSE(r.send(report_of("a", "ARS", 1, {}, kUnix + off)));
    const int64_t more = off > 0 ? off + 1 : off - 1;
    EXPECT_EQ(r.send(report_of("a", "ARS", 2, {}, kUnix + more)), Refusal::kSkew);
    EXPECT_NE(r.last.refusal->detail.find(std::to_string(kUnix + more)), std::string::npos);
    EXPECT_NE(r.last.refusal->detail.find(std::to_string(kUnix)), std::string::npos);
    EXPECT_FALSE(r.send(report_of("a", "ARS", 2, {}, kUnix)));  // a refused one is not remembered
  }
}

TEST(Skew, ATimeStampAtTheEndOfTheRangeIsRefusedToo_D15) {
  ValidatorRig r;
  EXPECT_EQ(r.send(report_of("a", "ARS", 1, {}, std::numeric_limits<int64_t>::min())), Refusal::kSkew);
  EXPECT_EQ(r.send(report_of("a", "ARS", 1, {}, std::numeric_limits<int64_t>::max())), Refusal::kSkew);
}

TEST(Skew, AnAlarmNamesThePeerAboveTenSecondsOnce_D28) {
  ValidatorRig r;
  EXPECT_FALSE(r.send(report_of("a", "ARS", 1, {}, kUnix + 10'000)));
  EXPECT_FALSE(r.last.skew_alarm_ms);
  EXPECT_FALSE(r.send(report_of("a", "ARS", 2, {}, kUnix + 10'001)));
  EXPECT_EQ(r.last.skew_alarm_ms, 10'001);
  EXPECT_FALSE(r.send(report_of("a", "ARS", 3, {}, kUnix + 10'002)));
  EXPECT_FALSE(r.last.skew_alarm_ms);
}

TEST(Skew, KnobsMoveIt_CSMA36) {
  ValidatorRig r;
  CSmaConfig c = config();
  c.validation.skew_alarm = kSecond;
  c.validation.skew_refuse = 2 * kSecond;
  r.validator.configure(c);
  EXPECT_FALSE(r.send(report_of("a", "ARS", 1, {}, kUnix + 1'001)));
  EXPECT_TRUE(r.last.skew_alarm_ms);
  EXPECT_EQ(r.send(report_of("a", "ARS", 2, {}, kUnix + 2'001)), Refusal::kSkew);
}

// ---- ClockWatch

struct Clocks {
  ClockWatch::Finding hear(const std::string& peer, int64_t ahead_ms) {
    watch.watch_own({now, wall}, config, 30 * kSecond);
    return watch.judge(peer, wall + ahead_ms, {now, wall}, config);
  }
  ClockWatch watch;
  ValidationConfig config;
  Nanoseconds now = kBegin;
  int64_t wall = kUnix;
};

TEST(ClockWatch, TheLeastDelayedOfTheLastFourReportsTellsThePeersClock_D28) {
  Clocks c;
  EXPECT_FALSE(c.watch.estimate("p"));
  for (const int64_t ahead : {-900, 50, -20'000, -700}) c.hear("p", ahead);
  EXPECT_EQ(c.watch.estimate("p"), 50);
  EXPECT_FALSE(c.hear("p", -700).alarm_ms);
  c.hear("p", -800);
  EXPECT_EQ(c.watch.estimate("p"), -700);  // the 50 is too long ago
}

TEST(ClockWatch, WhereMostPeersAreOffOursIsAtFault_D29) {
  Clocks c;
  for (const char* peer : {"p", "q", "r", "s", "t"}) EXPECT_FALSE(c.hear(peer, 0).too_far);
  EXPECT_TRUE(c.hear("p", -31'000).too_far);
  EXPECT_FALSE(c.hear("p", -31'000).own_clock);
  EXPECT_FALSE(c.hear("q", -31'000).own_clock);  // two of five
  EXPECT_TRUE(c.hear("r", -31'000).own_clock);
  EXPECT_TRUE(c.hear("s", -31'000).own_clock);
  EXPECT_TRUE(c.watch.own_suspected(c.now));
  for (const char* peer : {"p", "q"}) c.hear(peer, 0);
  EXPECT_FALSE(c.watch.own_suspected(c.now));
}

TEST(ClockWatch, TwoPeersAreNotMost_D29) {
  Clocks c;
  EXPECT_FALSE(c.hear("p", 40'000).own_clock);
  EXPECT_FALSE(c.hear("q", 40'000).own_clock);
  EXPECT_TRUE(c.hear("r", 40'000).own_clock);
}

TEST(ClockWatch, AJumpOfOurOwnClockIsSeenAtOnceAndForgottenAfterAWhile_D29) {
  Clocks c;
  for (const char* peer : {"p", "q", "r"}) c.hear(peer, 0);
  c.wall += 40'000;
  const ClockWatch::Finding first = c.hear("p", -40'000);
  EXPECT_TRUE(first.too_far);
  EXPECT_TRUE(first.own_clock);
  c.now += 30 * kSecond - 1;
  c.wall += 29'999;
  EXPECT_TRUE(c.watch.own_suspected(c.now));
  c.now += 1;
  c.wall += 1;
  EXPECT_FALSE(c.watch.own_suspected(c.now));
  EXPECT_FALSE(c.hear("p", -40'000).own_clock);  // one of the one heard since
}

TEST(ClockWatch, AfterTheJumpThatMendsOurClockItIsTrustedAgain_D29) {
  Clocks c;
  for (const char* peer : {"p", "q", "r"}) c.hear(peer, 40'000);
  EXPECT_TRUE(c.watch.own_suspected(c.now));
  c.wall += 40'000;
  EXPECT_FALSE(c.hear("p", 0).too_far);
  EXPECT_FALSE(c.watch.own_suspected(c.now + 30 * kSecond));  // the others have not been heard since
}

TEST(ClockWatch, BothClocksGoingOnIsNoJump_D29) {
  Clocks c;
  EXPECT_FALSE(c.watch.watch_own({kBegin, kUnix}, c.config, 1));
  EXPECT_FALSE(c.watch.watch_own({kBegin + 3600 * kSecond, kUnix + 3'600'000}, c.config, 1));
  EXPECT_FALSE(c.watch.watch_own({kBegin + 3600 * kSecond, kUnix + 3'610'000}, c.config, 1));  // 10 s
  EXPECT_TRUE(c.watch.watch_own({kBegin + 3600 * kSecond, kUnix + 3'599'999}, c.config, 1));
}

}  // namespace
}  // namespace margay::c_sma
