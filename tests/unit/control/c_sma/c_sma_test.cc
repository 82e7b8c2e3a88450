// SPDX-License-Identifier: Apache-2.0
// The core as a whole, by the documents' worked examples.
#include "control/c_sma/c_sma.h"

#include <gtest/gtest.h>

#include "tests/unit/control/c_sma/c_sma_rig.h"

namespace margay::c_sma {
namespace {

using control::Trigger;
using northbound::Row;
using northbound::WithdrawReason;
using test::config_of;
using test::CSmaRig;
using test::example_config;
using test::kArs1;
using test::kArs2;
using test::kBegin;
using test::kDeadOne;
using test::kDegradedOne;
using test::kHealthyOne;
using test::kLlms;
using test::kVrs;
using test::Said;
using test::sci;

TEST(CSma, TheExampleCacheAndWhatIsAdvertisedOfIt_CSMA65_D3) {
  CSmaRig r;
  r.report_example();
  const std::optional<CacheEntry> llms = r.core.cache().find(kLlms);
  ASSERT_TRUE(llms);
  EXPECT_EQ(llms->metrics.gas, 300u);
  EXPECT_EQ(llms->health.sci_health(), HealthState::kDegraded);
  size_t ars = 0;
  r.core.cache().for_each_of("ARS", [&](const CacheEntry&) { ++ars; });
  EXPECT_EQ(ars, 2u);

  EXPECT_EQ(r.table.size(), 7u);
  EXPECT_EQ(r.gas("ARS", kArs1), 400u);
  EXPECT_EQ(r.gas("ARS"), 1000u);
  EXPECT_EQ(r.row("ARS")->metrics.computing_time_ms, 6u);
  EXPECT_EQ(r.gas("VRS"), 100u);
  EXPECT_EQ(r.gas("LLMS"), 300u);  // DEGRADED capacity is legal while the site has a HEALTHY SCI
  EXPECT_EQ(r.row("LLMS")->sci_health, HealthState::kDegraded);
  EXPECT_EQ(r.row("ARS")->scis, 2u);
}

TEST(CSma, ADiscoveryIsActiveThenHealthy_CSMA78_CSMA79_CSMA150) {
  CSmaRig r;
  EXPECT_EQ(r.report(kVrs), Verdict::kAccepted);
  ASSERT_EQ(r.changes.size(), 2u);
  EXPECT_FALSE(r.changes[0].from);
  EXPECT_EQ(r.changes[0].to, SourceState::kActive);
  EXPECT_EQ(r.changes[1].to, SourceState::kHealthy);
  ASSERT_EQ(r.commits.size(), 1u);
  EXPECT_EQ(r.commits[0].cause, Cause::kDiscovery);
  EXPECT_TRUE(r.commits[0].critical);
}

TEST(CSma, AFailedSciIsWithdrawnWithTheSiteRowInOneCriticalChange_CSMA166_CSMA167_CSMA168_CSMA169_D1) {
  CSmaRig r;
  r.report_example();
  r.run_for(60 * kSecond);
  r.report(kArs2, {.gas = 600, .computing_time = 6});
  r.report(kVrs);
  r.report(kLlms, {.health = kDegradedOne});
  r.forget();
  r.run_for(60 * kSecond);  // 120 s after kArs1's
  EXPECT_EQ(r.state_of(kArs1), SourceState::kStale);
  EXPECT_EQ(r.pulls, std::vector<std::string>{kArs1});
  EXPECT_EQ(r.row("ARS", kArs1)->source, SourceState::kStale);
  EXPECT_EQ(r.gas("ARS"), 1000u);
  r.forget();
  r.run_for(10 * kSecond);
  EXPECT_EQ(r.state_of(kArs1), SourceState::kFailed);
  ASSERT_EQ(r.commits.size(), 1u);
  EXPECT_TRUE(r.commits[0].critical);
  const northbound::Change& change = r.commits[0].change;
  ASSERT_EQ(change.withdrawals.size(), 1u);
  EXPECT_EQ(change.withdrawals[0].reason, WithdrawReason::kFailed);
  EXPECT_EQ(change.withdrawals[0].key.csci_id, kArs1);
  ASSERT_EQ(change.rows.size(), 1u);
  EXPECT_EQ(change.rows[0].metrics.gas, 600u);
  EXPECT_EQ(r.audited(AuditKind::kSourceFailed), 1u);
}

TEST(CSma, AFailedSciThatReportsAgainIsADiscovery_CSMA83) {
  CSmaRig r(config_of(1));
  r.report(sci(0));
  r.run_for(130 * kSecond);
  EXPECT_EQ(r.row("ARS", sci(0)), nullptr);
  r.forget();
  r.report(sci(0));
  EXPECT_EQ(r.commits.at(0).cause, Cause::kDiscovery);
  EXPECT_EQ(r.gas("ARS"), 100u);
}

TEST(CSma, AStopIsAWithdrawalAtOnceAndOldReportsReviveNothing_D39_D21) {
  CSmaRig r(config_of(2));
  r.report(sci(0));
  const control::Report old = r.next_report(sci(0));
  r.forget();
  EXPECT_EQ(r.report(sci(0), {.trigger = Trigger::kStop}), Verdict::kAccepted);
  ASSERT_EQ(r.commits.size(), 1u);
  EXPECT_EQ(r.commits[0].change.withdrawals.at(0).reason, WithdrawReason::kDeregistered);
  EXPECT_TRUE(r.commits[0].critical);
  EXPECT_EQ(r.entry(sci(0)), nullptr);
  EXPECT_EQ(r.send(old), Verdict::kRefused);
  EXPECT_EQ(r.reason(), "OLD_SEQUENCE");
  EXPECT_EQ(r.report(sci(0)), Verdict::kAccepted);
}

TEST(CSma, AllDownIsZeroAtOnceSmoothedOrNot_CSMA51_D35) {
  CSmaConfig c = config_of(2);
  c.transform.gas_smoothing = Smoothing{};
  CSmaRig r(c);
  r.report(sci(0));
  r.report(sci(1));
  EXPECT_EQ(r.gas("ARS"), 200u);
  for (uint32_t i = 0; i < 2; ++i) {
    r.report(sci(i), {.gas = 0, .computing_time = {}, .health = kDeadOne, .trigger = Trigger::kAllDown});
  }
  EXPECT_EQ(r.gas("ARS"), 0u);
  EXPECT_FALSE(r.row("ARS")->metrics.computing_time_ms);
  EXPECT_TRUE(r.commits.back().critical);
}

TEST(CSma, GasOfAnSciWithoutServiceCountsAsZero_CSMA51) {
  CSmaRig r(config_of(2));
  r.report(sci(1));
  EXPECT_EQ(r.report(sci(0), {.gas = 50, .health = kDeadOne}), Verdict::kFlagged);
  EXPECT_EQ(r.reason(), "GAS_WITHOUT_SERVICE");
  EXPECT_EQ(r.gas("ARS", sci(0)), 0u);
  EXPECT_EQ(r.gas("ARS"), 100u);
}

TEST(CSma, WithoutAHealthySciTheWholeSiteAdvertisesNothing_CSMA52_D3) {
  CSmaRig r;
  r.report_example();
  r.forget();
  for (const std::string& id : {kArs1, kArs2, kVrs}) r.report(id, {.gas = 50, .health = kDegradedOne});
  for (const char* cs_id : {"ARS", "VRS", "LLMS"}) EXPECT_EQ(r.gas(cs_id), 0u) << cs_id;
  EXPECT_EQ(r.gas("LLMS", kLlms), 0u);
  EXPECT_EQ(r.audited(AuditKind::kInconsistent), 3u);  // one a service
  for (const Commit& c : r.commits) EXPECT_TRUE(c.critical);
  r.forget();
  r.report(kVrs, {.gas = 50});
  EXPECT_EQ(r.gas("ARS"), 100u);
  EXPECT_EQ(r.gas("LLMS"), 300u);
  EXPECT_EQ(r.gas("LLMS", kLlms), 300u);
}

TEST(CSma, ConsistencyCanBeJudgedByService_D3) {
  CSmaConfig c = example_config();
  c.validation.consistency = Consistency::kCsId;
  CSmaRig r(c);
  r.report_example();
  EXPECT_EQ(r.gas("ARS"), 1000u);
  EXPECT_EQ(r.gas("LLMS"), 0u);
  r.report(kLlms, {.gas = 300, .computing_time = 12});
  EXPECT_EQ(r.gas("LLMS"), 300u);
}

// ---- anomalies

TEST(CSma, AnAnomalousRiseWaitsIsPulledAndIsBelievedTheSecondTime_CSMA45_CSMA48_D10) {
  CSmaRig r(config_of(1));
  r.report(sci(0), {.gas = 100});
  r.pass(kSecond / 2);
  EXPECT_EQ(r.report(sci(0), {.gas = 300}), Verdict::kQuarantined);
  EXPECT_EQ(r.reason(), "GAS_CHANGE");
  EXPECT_EQ(r.gas("ARS"), 100u);
  EXPECT_EQ(r.pulls, std::vector<std::string>{sci(0)});
  EXPECT_EQ(r.core.quarantine().list().at(0)->report.state.gas->value, 300u);
  EXPECT_EQ(r.entry(sci(0))->heard_at, r.now);
  EXPECT_TRUE(r.entry(sci(0))->doubted);
  EXPECT_EQ(r.send(r.next_report(sci(0), {.gas = 310, .trigger = Trigger::kPulled}), 0, true), Verdict::kFlagged);
  EXPECT_EQ(r.gas("ARS"), 310u);
  EXPECT_EQ(r.core.quarantine().size(), 0u);
  EXPECT_EQ(r.audited(AuditKind::kAnomaly), 2u);
  EXPECT_EQ(r.audited(AuditKind::kConfirmed), 1u);
}

TEST(CSma, APulledReportInQuarantineIsNotPulledAgain_D10) {
  CSmaConfig c = config_of(1);
  c.accept[0].gas_ceiling = 400;
  CSmaRig r(c);
  EXPECT_EQ(r.report(sci(0), {.gas = 4294967295}), Verdict::kQuarantined);
  EXPECT_EQ(r.pulls.size(), 1u);
  r.pass(10 * kSecond);
  EXPECT_EQ(r.send(r.next_report(sci(0), {.gas = 4294967295}), 0, true), Verdict::kQuarantined);
  EXPECT_EQ(r.pulls.size(), 1u);
  EXPECT_EQ(r.state_of(sci(0)), SourceState::kActive);
  EXPECT_TRUE(r.table.empty());  // nothing of it is believed
}

// Of an SCI that is asked as a rule every report says PULLED; on a stream it says that we asked already.
TEST(CSma, ARoutineAnswerInQuarantineIsPulled_CSMA29_D10) {
  const auto elsewhere = std::make_shared<Peer>(Peer{.identity = "elsewhere", .names = {{sci(0), "ARS"}}});
  CSmaRig r(config_of(1));
  r.peer = elsewhere;
  r.report(sci(0), {.gas = 100});
  r.pass(kSecond / 2);
  EXPECT_EQ(r.send(r.next_report(sci(0), {.gas = 300, .trigger = Trigger::kPulled})), Verdict::kQuarantined);
  EXPECT_EQ(r.pulls, std::vector<std::string>{sci(0)});
  CSmaRig by_stream(config_of(1));
  by_stream.peer = elsewhere;
  by_stream.send(by_stream.next_report(sci(0), {.gas = 100}), 7);
  by_stream.pass(kSecond / 2);
  EXPECT_EQ(by_stream.send(by_stream.next_report(sci(0), {.gas = 300, .trigger = Trigger::kPulled}), 7),
            Verdict::kQuarantined);
  EXPECT_TRUE(by_stream.pulls.empty());
}

TEST(CSma, PullsOfOneSciAreASecondApart) {
  CSmaConfig c = config_of(1);
  c.accept[0].gas_ceiling = 1;
  CSmaRig r(c);
  for (int i = 0; i < 10; ++i) {
    r.report(sci(0), {.gas = 2});
    r.pass(kSecond / 4);
  }
  EXPECT_EQ(r.pulls.size(), 3u);
}

TEST(CSma, ADropIsBelievedAtOnce_D10) {
  CSmaRig r(config_of(1));
  r.report(sci(0), {.gas = 100});
  EXPECT_EQ(r.report(sci(0), {.gas = 10}), Verdict::kFlagged);
  EXPECT_EQ(r.gas("ARS"), 10u);
  EXPECT_TRUE(r.pulls.empty());
}

TEST(CSma, WhatIsWorseInAQuarantinedReportIsBelieved_D10) {
  CSmaConfig c = config_of(1);
  c.validation.computing_time_anomaly.change = Share{0.5};
  CSmaRig r(c);
  r.report(sci(0), {.gas = 100, .computing_time = 100});
  EXPECT_EQ(r.report(sci(0), {.gas = 60, .computing_time = 10}), Verdict::kQuarantined);
  EXPECT_EQ(r.gas("ARS"), 60u);
  EXPECT_EQ(r.row("ARS")->metrics.computing_time_ms, 100u);
}

TEST(CSma, AWorseHealthInAQuarantinedReportIsBelieved_D10) {
  CSmaConfig c = config_of(2);
  c.validation.computing_time_anomaly.change = Share{0.5};
  CSmaRig r(c);
  r.report(sci(1));
  r.report(sci(0), {.computing_time = 100});
  const Said worse{.computing_time = 10, .health = kDegradedOne, .admin = Admin::kDraining};
  EXPECT_EQ(r.report(sci(0), worse), Verdict::kQuarantined);
  EXPECT_EQ(r.row("ARS", sci(0))->sci_health, HealthState::kDegraded);
  EXPECT_EQ(r.row("ARS", sci(0))->admin, Admin::kDraining);
  EXPECT_TRUE(r.commits.back().critical);
  EXPECT_EQ(r.report(sci(0), {.computing_time = 100}), Verdict::kAccepted);
  EXPECT_EQ(r.row("ARS", sci(0))->sci_health, HealthState::kHealthy);
}

TEST(CSma, FlappingBelievesTheWorseHealth_CSMA47_D10) {
  CSmaRig r(config_of(1));
  r.report(sci(0));
  for (int i = 0; i < 4; ++i) {
    r.pass(kSecond);
    const bool down = i % 2 == 0;
    r.report(sci(0), {.gas = down ? 0u : 100u, .health = down ? kDeadOne : kHealthyOne});
  }
  EXPECT_EQ(r.reason(), "FLAPPING");
  EXPECT_EQ(r.judged.back().verdict, Verdict::kQuarantined);
  EXPECT_EQ(r.gas("ARS"), 0u);
  EXPECT_EQ(r.row("ARS", sci(0))->sci_health, HealthState::kUnhealthy);
  EXPECT_EQ(r.report(sci(0)), Verdict::kFlagged);
  EXPECT_EQ(r.gas("ARS"), 100u);
}

TEST(CSma, AnomalousFlagBelievesWithAWarning_CSMA48) {
  CSmaConfig c = config_of(1);
  c.validation.anomalous = Anomalous::kFlag;
  CSmaRig r(c);
  r.report(sci(0), {.gas = 100});
  EXPECT_EQ(r.report(sci(0), {.gas = 300}), Verdict::kFlagged);
  EXPECT_EQ(r.gas("ARS"), 300u);
}

TEST(CSma, TheOperatorReleasesAndDrops_CSMA48) {
  CSmaRig r(config_of(1));
  r.report(sci(0), {.gas = 100});
  r.report(sci(0), {.gas = 300});
  r.handle(QuarantineRelease{sci(0), "root"});
  EXPECT_EQ(r.gas("ARS"), 300u);
  EXPECT_EQ(r.core.quarantine().size(), 0u);
  r.report(sci(0), {.gas = 900});
  r.forget();
  r.handle(QuarantineDrop{sci(0), "root"});
  EXPECT_EQ(r.core.quarantine().size(), 0u);
  EXPECT_EQ(r.gas("ARS"), 300u);
  EXPECT_EQ(r.audited(AuditKind::kOperator), 1u);
  EXPECT_EQ(r.audits[0].who, "root");
  r.handle(QuarantineRelease{sci(0), "root"});
  EXPECT_EQ(r.gas("ARS"), 300u);
}

TEST(CSma, ASilentSourceIsNotReleased_CSMA48) {
  CSmaRig r(config_of(1));
  r.report(sci(0), {.gas = 100});
  r.report(sci(0), {.gas = 300});
  r.run_for(121 * kSecond);
  r.handle(QuarantineRelease{sci(0), "root"});
  EXPECT_EQ(r.gas("ARS"), 100u);
}

TEST(CSma, TheQuarantineIsBounded_CSMA191) {
  CSmaConfig c = config_of(1100);
  for (AcceptedSci& s : c.accept) s.gas_ceiling = 1;
  CSmaRig r(c);
  for (uint32_t i = 0; i < 1100; ++i) {
    r.pass(1);
    r.report(sci(i), {.gas = 2});
  }
  EXPECT_EQ(r.core.quarantine().size(), Quarantine::kMax);
  EXPECT_EQ(r.core.quarantine().find(sci(0)), nullptr);
  EXPECT_NE(r.core.quarantine().find(sci(1099)), nullptr);
}

// ---- deltas, security events, drains

TEST(CSma, ADeltaKeepsOptionalMetricsAFullReportDoesNot_D42) {
  CSmaRig r(config_of(1));
  r.report(sci(0), {.price = 5, .reputation = 6, .security_level = 7});
  r.report(sci(0), {.trigger = Trigger::kThreshold, .full = false, .price = 8});
  EXPECT_EQ(r.row("ARS", sci(0))->metrics.price, 8u);
  EXPECT_EQ(r.row("ARS", sci(0))->metrics.reputation, 6u);
  EXPECT_EQ(r.row("ARS", sci(0))->metrics.security_level, 7u);
  EXPECT_TRUE(r.pulls.empty());
  r.report(sci(0), {.price = 8});
  EXPECT_FALSE(r.row("ARS", sci(0))->metrics.reputation);
}

TEST(CSma, ADeltaAfterAMissingReportIsPulled_D42) {
  CSmaRig r(config_of(1));
  r.report(sci(0));
  ++r.sequences[sci(0)];
  r.report(sci(0), {.trigger = Trigger::kThreshold, .full = false});
  EXPECT_EQ(r.pulls.size(), 1u);
}

TEST(CSma, ASecurityEventIsCritical_D34) {
  CSmaRig r(config_of(1));
  r.report(sci(0));
  r.forget();
  control::Report report = r.next_report(sci(0), {.gas = 101, .trigger = Trigger::kSecurity});
  report.security_events = {{"SYN flood", 1}};
  r.send(report);
  ASSERT_EQ(r.commits.size(), 1u);
  EXPECT_TRUE(r.commits[0].critical);
  EXPECT_EQ(r.commits[0].cause, Cause::kSecurity);
}

TEST(CSma, ADrainIsCriticalAndAddsNothing_D33_D34) {
  CSmaRig r(config_of(2));
  r.report(sci(0));
  r.report(sci(1));
  r.forget();
  EXPECT_EQ(r.report(sci(0), {.gas = 0, .admin = Admin::kDraining}), Verdict::kAccepted);
  EXPECT_EQ(r.commits.at(0).cause, Cause::kAdmin);
  EXPECT_EQ(r.row("ARS", sci(0))->admin, Admin::kDraining);
  EXPECT_EQ(r.gas("ARS"), 100u);
}

// ---- clocks

TEST(CSma, OneSkewedPeerIsRefusedWhileOthersAreNot_D15_D28) {
  CSmaRig r(config_of(5));
  r.report(sci(0));
  control::Report late = r.next_report(sci(1));
  late.timestamp_ms -= 31'000;
  EXPECT_EQ(r.send(late), Verdict::kRefused);
  EXPECT_EQ(r.reason(), "SKEW");
  EXPECT_EQ(r.audited(AuditKind::kRefused), 1u);
}

TEST(CSma, AJumpOfOurOwnClockRefusesNobody_D29) {
  CSmaRig r(config_of(5));
  for (uint32_t i = 0; i < 5; ++i) r.report(sci(i));
  r.skew_ms = 3'600'000;
  for (uint32_t i = 0; i < 5; ++i) {
    EXPECT_EQ(r.report(sci(i)), Verdict::kFlagged);
    EXPECT_EQ(r.reason(), "OWN_CLOCK");
  }
  EXPECT_EQ(r.audited(AuditKind::kOwnClock), 2u);  // it jumped; it is suspected
  EXPECT_EQ(r.gas("ARS"), 500u);
}

}  // namespace
}  // namespace margay::c_sma
