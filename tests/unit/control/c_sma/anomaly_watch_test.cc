// SPDX-License-Identifier: Apache-2.0
#include "control/c_sma/anomaly_watch.h"

#include <gtest/gtest.h>

#include "tests/unit/control/c_sma/c_sma_rig.h"

namespace margay::c_sma {
namespace {

using test::kDeadOne;
using test::kDegradedOne;
using test::kHealthyOne;
using test::report_of;
using test::Said;

// One source; time passes between reports as told.
struct Source {
  Judgement report(const Said& said, Nanoseconds after = 0) {
    now += after;
    return watch.judge(report_of("a", "ARS", 1, said), config, ceiling, now);
  }
  Verdict gas(uint32_t gas, Nanoseconds after = 0) { return report({.gas = gas}, after).verdict; }
  Verdict time(uint32_t ms, Nanoseconds after = 0) { return report({.computing_time = ms}, after).verdict; }

  ValidationConfig config = {};
  std::optional<uint32_t> ceiling = {};
  AnomalyWatch watch = {};
  Nanoseconds now = 1000 * kSecond;
};
Source with(const ValidationConfig& config, std::optional<uint32_t> ceiling = {}) { return {config, ceiling}; }
Source beginning(uint32_t gas) {
  Source s;
  EXPECT_EQ(s.gas(gas), Verdict::kAccepted);
  return s;
}

TEST(GasAnomaly, ARiseOfMoreThanHalfWithinASecondWaits_CSMA45_D48) {
  EXPECT_EQ(beginning(100).gas(150), Verdict::kAccepted);  // 50 % is not more than 50 %
  Source s = beginning(100);
  const Judgement j = s.report({.gas = 151});
  EXPECT_EQ(j.verdict, Verdict::kQuarantined);
  EXPECT_EQ(j.reason(), "GAS_CHANGE");
  EXPECT_EQ(j.detail, "GAS from 100 to 151");
}

TEST(GasAnomaly, ADropOfMoreThanHalfIsBelievedAtOnceWithAFlag_D10) {
  EXPECT_EQ(beginning(100).gas(50), Verdict::kAccepted);
  Source s = beginning(100);
  EXPECT_EQ(s.gas(49), Verdict::kFlagged);
  EXPECT_EQ(s.gas(49), Verdict::kFlagged);  // the 100 are in the window still
  EXPECT_EQ(s.gas(49, kSecond + 1), Verdict::kAccepted);
}

TEST(GasAnomaly, TheWindowHoldsWhatCameOneSecondAgo_D48) {
  EXPECT_EQ(beginning(100).gas(151, kSecond), Verdict::kQuarantined);
  EXPECT_EQ(beginning(100).gas(151, kSecond + 1), Verdict::kAccepted);
}

TEST(GasAnomaly, JudgesOverTheWholeWindowNotBetweenNeighbours_D10) {
  Source s = beginning(100);
  EXPECT_EQ(s.gas(130, kSecond / 4), Verdict::kAccepted);
  EXPECT_EQ(s.gas(150, kSecond / 4), Verdict::kAccepted);
  EXPECT_EQ(s.gas(160, kSecond / 4), Verdict::kQuarantined);  // 60 % above the 100
}

TEST(GasAnomaly, NeedsFiveSlots_D48) {
  EXPECT_EQ(beginning(4).gas(8), Verdict::kAccepted);     // 100 %, 4 slots
  EXPECT_EQ(beginning(4).gas(9), Verdict::kQuarantined);  // 5 slots
  EXPECT_EQ(beginning(0).gas(4), Verdict::kAccepted);     // base 0: any change, from 5 slots on
  EXPECT_EQ(beginning(0).gas(5), Verdict::kQuarantined);
  EXPECT_EQ(beginning(8).gas(3), Verdict::kFlagged);
  EXPECT_EQ(beginning(7).gas(3), Verdict::kAccepted);
}

TEST(GasAnomaly, ASecondReportThatSaysMuchTheSameIsBelieved_D10) {
  Source s = beginning(100);
  EXPECT_EQ(s.gas(300), Verdict::kQuarantined);
  const Judgement j = s.report({.gas = 310}, kSecond / 2);
  EXPECT_EQ(j.verdict, Verdict::kFlagged);
  EXPECT_TRUE(j.confirms);
  EXPECT_EQ(s.gas(300), Verdict::kAccepted);  // the window begins anew with it
}

TEST(GasAnomaly, ASecondReportThatRisesOnConfirmsNothing_D10) {
  Source s = beginning(100);
  EXPECT_EQ(s.gas(300), Verdict::kQuarantined);
  EXPECT_EQ(s.gas(1000), Verdict::kQuarantined);
  EXPECT_EQ(s.gas(1000), Verdict::kFlagged);
}

TEST(GasAnomaly, WhatIsBackToNormalIsBelievedAndNothingWaits_D10) {
  Source s = beginning(100);
  EXPECT_EQ(s.gas(300), Verdict::kQuarantined);
  EXPECT_EQ(s.gas(110), Verdict::kAccepted);
  EXPECT_EQ(s.gas(300), Verdict::kQuarantined);
}

TEST(GasAnomaly, IsExemptWhereTheHealthSummaryChangedToo_D10) {
  Source s = beginning(100);
  EXPECT_EQ(s.report({.gas = 0, .health = kDeadOne}).verdict, Verdict::kAccepted);
  EXPECT_EQ(s.report({.gas = 100, .health = kHealthyOne}).verdict, Verdict::kAccepted);
  EXPECT_EQ(s.gas(160), Verdict::kQuarantined);  // the baseline is the 100 of the report before
}

TEST(GasAnomaly, IsExemptWhereTheAdministrativeStateChangedToo_D10) {
  Source s = beginning(100);
  EXPECT_EQ(s.report({.gas = 0, .admin = Admin::kDraining}).verdict, Verdict::kAccepted);
  EXPECT_EQ(s.report({.gas = 100, .admin = Admin::kEnabled}).verdict, Verdict::kAccepted);
}

TEST(GasAnomaly, IsExemptWhereTheInstancesChangedToo_D10) {
  Source s;
  control::Report r = report_of("a", "ARS", 1, {.gas = 100});
  r.state.instances = {{"i", HealthState::kHealthy, Admin::kEnabled, 100, 0}};
  const auto judge = [&] { return s.watch.judge(r, s.config, s.ceiling, s.now).verdict; };
  EXPECT_EQ(judge(), Verdict::kAccepted);
  r.state.gas->value = 200;
  r.state.instances[0].active = 50;  // sessions come and go
  EXPECT_EQ(judge(), Verdict::kQuarantined);
  r.state.instances[0].limit = 200;
  EXPECT_EQ(judge(), Verdict::kAccepted);
  r.full = false;  // a delta without details tells of no change
  r.state.instances.clear();
  r.state.gas->value = 400;
  EXPECT_EQ(judge(), Verdict::kQuarantined);
  r.state.instances = {{"i", HealthState::kHealthy, Admin::kDraining, 200, 0}};
  EXPECT_EQ(judge(), Verdict::kAccepted);
}

TEST(GasAnomaly, TheCeilingMayBeReachedNotPassed_D10_D48) {
  EXPECT_EQ(with({}, 400).report({.gas = 400}).verdict, Verdict::kAccepted);  // a first report
  Source s = with({}, 400);
  const Judgement j = s.report({.gas = 401});
  EXPECT_EQ(j.verdict, Verdict::kQuarantined);
  EXPECT_EQ(j.reason(), "GAS_CEILING");
  EXPECT_EQ(j.detail, "GAS 401, its ceiling is 400");
}

TEST(GasAnomaly, NothingConfirmsOrExemptsAGasAboveTheCeiling_D10) {
  Source s = with({}, 400);
  EXPECT_EQ(s.gas(390), Verdict::kAccepted);
  EXPECT_EQ(s.gas(401), Verdict::kQuarantined);
  EXPECT_EQ(s.gas(401), Verdict::kQuarantined);
  EXPECT_EQ(s.report({.gas = 401, .health = {2, 0, 0, 0}}).verdict, Verdict::kQuarantined);
  ValidationConfig flag;
  flag.anomalous = Anomalous::kFlag;
  EXPECT_EQ(with(flag, 400).gas(401), Verdict::kQuarantined);
}

TEST(GasAnomaly, KnobsMoveIt_CSMA36) {
  ValidationConfig c;
  c.gas_anomaly = {.change = Share{0.1}, .within = 10 * kSecond, .floor = 20};
  Source s = with(c);
  EXPECT_EQ(s.gas(100), Verdict::kAccepted);
  EXPECT_EQ(s.gas(119, 10 * kSecond), Verdict::kAccepted);
  EXPECT_EQ(s.gas(140, 10 * kSecond), Verdict::kQuarantined);
  c.anomalous = Anomalous::kFlag;
  s = with(c);
  EXPECT_EQ(s.gas(100), Verdict::kAccepted);
  EXPECT_EQ(s.gas(200), Verdict::kFlagged);
}

TEST(ComputingTimeAnomaly, MoreThanTwiceWithinASecondIsWorseAndBelieved_CSMA46_D10) {
  Source s;
  EXPECT_EQ(s.time(10), Verdict::kAccepted);
  EXPECT_EQ(s.time(20), Verdict::kAccepted);
  const Judgement j = s.report({.computing_time = 21});
  EXPECT_EQ(j.verdict, Verdict::kFlagged);
  EXPECT_EQ(j.reason(), "COMPUTING_TIME_CHANGE");
  EXPECT_EQ(s.time(21, kSecond + 1), Verdict::kAccepted);
  EXPECT_EQ(s.time(43, kSecond + 1), Verdict::kAccepted);
}

TEST(ComputingTimeAnomaly, NeedsFiveMilliseconds_D48) {
  Source s;
  EXPECT_EQ(s.time(2), Verdict::kAccepted);
  EXPECT_EQ(s.time(6), Verdict::kAccepted);  // 4 ms
  EXPECT_EQ(s.time(7), Verdict::kFlagged);   // 5 ms
}

TEST(ComputingTimeAnomaly, KnobsMoveIt_AndWhatIsFasterWaits_CSMA36_D10) {
  ValidationConfig c;
  c.computing_time_anomaly = {.change = Share{0.5}, .within = 2 * kSecond, .floor = 20 * kMillisecond};
  Source s = with(c);
  EXPECT_EQ(s.time(100), Verdict::kAccepted);
  EXPECT_EQ(s.time(50, kSecond), Verdict::kAccepted);
  EXPECT_EQ(s.time(49, kSecond), Verdict::kQuarantined);
  EXPECT_EQ(s.time(45), Verdict::kFlagged);  // confirms
  Source small = with(c);
  EXPECT_EQ(small.time(20), Verdict::kAccepted);
  EXPECT_EQ(small.time(39), Verdict::kAccepted);
}

TEST(Flapping, MoreThanThreeChangesInTenSeconds_CSMA47_D10) {
  Source s;
  const HealthSummary healths[] = {kHealthyOne, kDeadOne, kHealthyOne, kDeadOne};  // 3 transitions
  for (const HealthSummary& h : healths)
    EXPECT_EQ(s.report({.gas = 0, .health = h}, kSecond).verdict, Verdict::kAccepted);
  const Judgement fourth = s.report({.gas = 0, .health = kHealthyOne}, kSecond);
  EXPECT_EQ(fourth.verdict, Verdict::kQuarantined);  // better than what is believed
  EXPECT_EQ(fourth.reason(), "FLAPPING");
  EXPECT_EQ(fourth.detail, "4 changes of health in 10 s");
  const Judgement same = s.report({.gas = 0, .health = kHealthyOne}, kSecond);
  EXPECT_EQ(same.verdict, Verdict::kAccepted);
  EXPECT_TRUE(same.confirms);
  EXPECT_EQ(s.report({.gas = 0, .health = kDegradedOne}, kSecond).verdict, Verdict::kFlagged);  // worse: at once
}

TEST(Flapping, TheWindowHoldsTenSeconds_D48) {
  for (const Nanoseconds more : {Nanoseconds{0}, Nanoseconds{1}}) {
    Source s;
    s.report({.gas = 0, .health = kHealthyOne});
    s.report({.gas = 0, .health = kDeadOne}, kSecond);
    s.report({.gas = 0, .health = kHealthyOne}, kSecond);
    s.report({.gas = 0, .health = kDeadOne}, kSecond);
    const Judgement j = s.report({.gas = 0, .health = kHealthyOne}, 8 * kSecond + more);  // 10 s after the first
    EXPECT_EQ(j.verdict, more == 0 ? Verdict::kQuarantined : Verdict::kAccepted);
  }
}

TEST(Flapping, CountsOfTheSameHealthAreNoChange_D4) {
  Source s;
  for (uint32_t i = 1; i < 20; ++i) EXPECT_EQ(s.report({.health = {i, 0, 1, 0}}).verdict, Verdict::kAccepted);
}

TEST(Flapping, KnobsMoveIt_CSMA36) {
  ValidationConfig c;
  c.flapping = {.transitions = 1, .within = 60 * kSecond};
  Source s = with(c);
  EXPECT_EQ(s.report({.gas = 0, .health = kHealthyOne}).verdict, Verdict::kAccepted);
  EXPECT_EQ(s.report({.gas = 0, .health = kDegradedOne}, 30 * kSecond).verdict, Verdict::kAccepted);
  EXPECT_EQ(s.report({.gas = 0, .health = kDeadOne}, 30 * kSecond).verdict, Verdict::kFlagged);
}

TEST(Anomalies, WhatIsWorseInAQuarantinedReportIsTheNewBase_D10) {
  ValidationConfig c;
  c.computing_time_anomaly.change = Share{0.5};
  Source s = with(c);
  EXPECT_EQ(s.report({.gas = 100, .computing_time = 100}).verdict, Verdict::kAccepted);
  EXPECT_EQ(s.report({.gas = 60, .computing_time = 10}, kSecond).verdict, Verdict::kQuarantined);
  EXPECT_EQ(s.report({.gas = 95, .computing_time = 100}, kSecond).verdict, Verdict::kQuarantined);  // of 60
}

TEST(Anomalies, ComputingTimeZeroWithGasIsAWarning_CSMA53_D48) {
  const Judgement j = Source{}.report({.gas = 1, .computing_time = 0});
  EXPECT_EQ(j.verdict, Verdict::kFlagged);
  EXPECT_EQ(j.reason(), "COMPUTING_TIME_ZERO");
  EXPECT_EQ(Source{}.report({.gas = 0, .computing_time = 0}).verdict, Verdict::kAccepted);
  EXPECT_EQ(Source{}.report({.gas = 1, .computing_time = {}}).verdict, Verdict::kAccepted);  // absent is not 0
}

TEST(Anomalies, GasOfAnSciThatServesNobodyIsAWarning_CSMA51) {
  EXPECT_EQ(Source{}.report({.gas = 1, .health = kDeadOne}).reason(), "GAS_WITHOUT_SERVICE");
  EXPECT_EQ(Source{}.report({.gas = 1, .health = kDegradedOne}).verdict, Verdict::kAccepted);
}

TEST(Anomalies, AnOperatorsReleaseIsTheNewBase_CSMA48) {
  Source s = beginning(100);
  EXPECT_EQ(s.gas(300), Verdict::kQuarantined);
  s.watch.release(s.now);
  EXPECT_EQ(s.gas(320), Verdict::kAccepted);
}

TEST(Judgement, EveryNameIsAnothers) {
  std::set<std::string_view> names;
  for (size_t i = 0; i < kRefusals; ++i) names.insert(name_of(static_cast<Refusal>(i)));
  for (size_t i = 0; i < kAnomalies; ++i) names.insert(name_of(static_cast<Anomaly>(i)));
  for (size_t i = 0; i < kVerdicts; ++i) names.insert(name_of(static_cast<Verdict>(i)));
  EXPECT_EQ(names.size(), kRefusals + kAnomalies + kVerdicts);
  EXPECT_FALSE(names.contains(""));
  EXPECT_EQ(name_of(Refusal::kCacheFull), "CACHE_FULL");
  EXPECT_EQ(name_of(Refusal::kTakeOverTooOften), "TAKE_OVER_TOO_OFTEN");
}

}  // namespace
}  // namespace margay::c_sma
