// SPDX-License-Identifier: Apache-2.0
#include "control/sci/reporting.h"

#include <gtest/gtest.h>

#include <vector>

namespace margay::control {
namespace {

constexpr Nanoseconds kFirst = 1000 * kSecond;

SciSpec config() { return {.csci_id = "192.0.2.10:80", .cs_id = "ARS"}; }
SciState state(uint32_t gas, std::optional<uint32_t> computing_time = 100) {
  SciState s;
  s.gas = Gas{.value = gas};
  s.computing_time.value = computing_time;
  return s;
}

// Reports what is due at once, as the shell does.
class ReportingRig {
 public:
  explicit ReportingRig(const SciSpec& c = config(), SciState first = state(1000))
      : now_state(std::move(first)), ri(c, 7, now) {
    ri.raise(Trigger::kStart, now);
    poll();
    sent.clear();
  }

  // Whether something went.
  bool poll() {
    if (!ri.due(now)) return false;
    sent.push_back(ri.make(now_state, now, 1'700'000'000'000));
    return true;
  }
  bool observe(const SciState& s) {
    now_state = s;
    ri.observe(s, now);
    return poll();
  }
  bool raise(Trigger t) {
    ri.raise(t, now);
    return poll();
  }
  // To when the next report is due, and sends it.
  void run_to_due() {
    now = std::max(now, ri.next_due());
    EXPECT_TRUE(poll());
  }
  const Report& last() const { return sent.back(); }

  Nanoseconds now = kFirst;
  SciState now_state;
  std::vector<Report> sent;
  ReportingInterface ri;
};

TEST(Reporting, FullReportEvery60Seconds_SCI100) {
  ReportingRig r;
  for (Nanoseconds i = 1; i <= 3; ++i) {
    r.now = kFirst + i * 60 * kSecond - 1;
    EXPECT_FALSE(r.poll());
    EXPECT_EQ(r.ri.next_due(), kFirst + i * 60 * kSecond);
    r.now += 1;
    EXPECT_TRUE(r.poll());
    EXPECT_EQ(r.last().trigger, Trigger::kPeriodic);
    EXPECT_TRUE(r.last().full);
  }
}

TEST(Reporting, DeltasDoNotMoveThePeriodicReport_SCI100) {
  ReportingRig r;
  r.now += 30 * kSecond;
  EXPECT_TRUE(r.observe(state(500)));
  EXPECT_EQ(r.ri.next_due(), kFirst + 60 * kSecond);
}

TEST(Reporting, AfterALongPauseOnePeriodicReportGoesNotOneForEachMissed) {
  ReportingRig r;
  r.now = kFirst + 1000 * kSecond;
  EXPECT_TRUE(r.poll());
  EXPECT_FALSE(r.poll());
  EXPECT_EQ(r.ri.next_due(), kFirst + 1020 * kSecond);
}

TEST(Reporting, GasThresholdIsMoreThanTenPercentOrMoreThan50_SCI102_D48) {
  // base 100: 10 % is 10
  EXPECT_FALSE(ReportingRig(config(), state(100)).observe(state(110)));
  EXPECT_TRUE(ReportingRig(config(), state(100)).observe(state(111)));
  EXPECT_FALSE(ReportingRig(config(), state(100)).observe(state(90)));
  EXPECT_TRUE(ReportingRig(config(), state(100)).observe(state(89)));
  // base 1000: 50 comes before 10 %
  EXPECT_FALSE(ReportingRig(config(), state(1000)).observe(state(1050)));
  EXPECT_TRUE(ReportingRig(config(), state(1000)).observe(state(1051)));
  EXPECT_FALSE(ReportingRig(config(), state(1000)).observe(state(950)));
  EXPECT_TRUE(ReportingRig(config(), state(1000)).observe(state(949)));
}

TEST(Reporting, GasBaseZeroAnyChangeCountsAndNeverBelowOneSlot_D37_D48) {
  EXPECT_TRUE(ReportingRig(config(), state(0)).observe(state(1)));
  EXPECT_FALSE(ReportingRig(config(), state(0)).observe(state(0)));
  EXPECT_FALSE(ReportingRig(config(), state(10)).observe(state(11)));  // 1 of 10 is not more than 10 %
  EXPECT_TRUE(ReportingRig(config(), state(9)).observe(state(10)));
}

TEST(Reporting, ComputingTimeThresholdIsMoreThanTwentyPercent_SCI103_D48) {
  EXPECT_FALSE(ReportingRig().observe(state(1000, 120)));
  EXPECT_TRUE(ReportingRig().observe(state(1000, 121)));
  EXPECT_FALSE(ReportingRig().observe(state(1000, 80)));
  EXPECT_TRUE(ReportingRig().observe(state(1000, 79)));
  EXPECT_TRUE(ReportingRig().observe(state(1000, std::nullopt)));  // absent is not 0
  EXPECT_FALSE(ReportingRig(config(), state(1000, 5)).observe(state(1000, 6)));
  EXPECT_TRUE(ReportingRig(config(), state(1000, 4)).observe(state(1000, 5)));
}

TEST(Reporting, ThresholdsCompareWithWhatWasSent_SCI101_SCI94) {
  ReportingRig r(config(), state(1000));
  EXPECT_FALSE(r.observe(state(1030)));
  EXPECT_TRUE(r.observe(state(1060)));  // 60 from what was sent, 30 from what was last seen
  EXPECT_EQ(r.last().trigger, Trigger::kThreshold);
  EXPECT_FALSE(r.last().full);
  EXPECT_FALSE(r.observe(state(1100)));
  EXPECT_TRUE(r.observe(state(1111)));
}

TEST(Reporting, ThresholdsAreConfigurable_SCI105) {
  SciSpec c = config();
  c.report.gas_change = Share{0.5};
  c.report.gas_absolute = 400;
  c.report.computing_time_change = Share{0.01};
  EXPECT_FALSE(ReportingRig(c, state(1000)).observe(state(1400)));
  EXPECT_TRUE(ReportingRig(c, state(1000)).observe(state(1401)));
  EXPECT_TRUE(ReportingRig(c, state(1000)).observe(state(1000, 102)));
}

TEST(Reporting, RoutineReportsAreLimitedToOneASecondAfterFive_SCI109) {
  ReportingRig r;
  uint32_t gas = 1000;
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(r.observe(state(gas += 100)));
  EXPECT_FALSE(r.observe(state(gas += 100)));
  EXPECT_FALSE(r.observe(state(gas += 100)));
  EXPECT_EQ(r.ri.next_due(), kFirst + kSecond);
  r.run_to_due();
  EXPECT_EQ(r.last().state.gas->value, gas);  // both meet in the newest state
  EXPECT_FALSE(r.observe(state(gas += 100)));
  EXPECT_EQ(r.ri.next_due(), kFirst + 2 * kSecond);
}

TEST(Reporting, AChangeThatCameBackBeforeItsTokenIsNotTold_SCI109) {
  ReportingRig r;
  for (uint32_t gas = 1100; gas <= 1500; gas += 100) r.observe(state(gas));
  EXPECT_FALSE(r.observe(state(2000)));
  EXPECT_FALSE(r.observe(state(1500)));
  EXPECT_EQ(r.ri.next_due(), kFirst + 60 * kSecond);
}

TEST(Reporting, CriticalTriggersHaveTheirOwnBucketOfTwentyAndTenASecond_D11_D34) {
  ReportingRig r;
  for (uint32_t gas = 1100; gas <= 1600; gas += 100) r.observe(state(gas));  // routine is spent
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(r.raise(Trigger::kAdmin)) << i;
  EXPECT_FALSE(r.raise(Trigger::kAdmin));
  EXPECT_FALSE(r.raise(Trigger::kAllDown));
  EXPECT_EQ(r.ri.next_due(), kFirst + 100 * kMillisecond);
  r.now_state = state(0);
  r.run_to_due();
  EXPECT_EQ(r.last().trigger, Trigger::kAllDown);  // coalesced, the graver one named, the newest state told
  EXPECT_TRUE(r.last().reasons.has(Trigger::kAdmin));
  EXPECT_EQ(r.last().state.gas->value, 0u);
  EXPECT_EQ(r.ri.next_due(), kFirst + 60 * kSecond);
}

TEST(Reporting, CriticalEventsGoAtOnce_SCI106_SCI107_SCI108) {
  for (const Trigger t : {Trigger::kAllDown, Trigger::kRecovery, Trigger::kAdmin}) {
    ReportingRig r;
    if (t == Trigger::kAllDown) r.now_state = state(0);
    EXPECT_TRUE(r.raise(t));
    EXPECT_EQ(r.last().trigger, t);
    EXPECT_FALSE(r.last().full);
  }
  ReportingRig r;
  r.ri.raise(SecurityEvent{"SYN flood", 0}, r.now);
  EXPECT_TRUE(r.poll());
  EXPECT_EQ(r.last().trigger, Trigger::kSecurity);
  ASSERT_EQ(r.last().security_events.size(), 1u);
  EXPECT_EQ(r.last().security_events[0].what, "SYN flood");
}

TEST(Reporting, ChangesOfHealthWaitAHundredMillisecondsForEachOther_SCI72_SCI104_D50) {
  ReportingRig r;
  EXPECT_FALSE(r.raise(Trigger::kHealth));
  EXPECT_EQ(r.ri.next_due(), kFirst + 100 * kMillisecond);
  r.now += 60 * kMillisecond;
  EXPECT_FALSE(r.raise(Trigger::kHealth));
  EXPECT_EQ(r.ri.next_due(), kFirst + 100 * kMillisecond);  // of the first
  r.run_to_due();
  EXPECT_EQ(r.last().trigger, Trigger::kHealth);
  EXPECT_EQ(r.sent.size(), 1u);
  EXPECT_FALSE(r.poll());
}

// Counters come many times a second, and a change of health changes GAS.
TEST(Reporting, AThresholdWaitsWithTheChangesOfHealthAndSpendsNoTokenOfItsOwn_SCI72_D50) {
  ReportingRig r;
  r.raise(Trigger::kHealth);
  EXPECT_FALSE(r.observe(state(500)));
  EXPECT_EQ(r.ri.next_due(), kFirst + 100 * kMillisecond);
  r.run_to_due();
  EXPECT_EQ(r.last().trigger, Trigger::kHealth);
  EXPECT_TRUE(r.last().reasons.has(Trigger::kThreshold));
  uint32_t gas = 1000;
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(r.observe(state(gas += 100))) << i;
  ReportingRig pulled;
  pulled.raise(Trigger::kHealth);
  EXPECT_TRUE(pulled.raise(Trigger::kPulled));  // who asks is answered
}

TEST(Reporting, AGraverEventTakesWaitingChangesOfHealthWithIt_SCI106) {
  ReportingRig r;
  r.now_state = state(0);
  r.raise(Trigger::kHealth);
  EXPECT_TRUE(r.raise(Trigger::kAllDown));
  EXPECT_EQ(r.last().trigger, Trigger::kAllDown);
  EXPECT_TRUE(r.last().reasons.has(Trigger::kHealth));
  EXPECT_EQ(r.ri.next_due(), kFirst + 60 * kSecond);
}

// A report tells the newest state: what waited for a token and is not so any more is a reason, not the trigger.
TEST(Reporting, AllDownIsNotSaidOfAnSciThatHasSlotsAgain_SCI106) {
  ReportingRig r;
  r.now_state = state(10);
  EXPECT_TRUE(r.raise(Trigger::kAllDown));
  EXPECT_EQ(r.last().trigger, Trigger::kHealth);
  EXPECT_TRUE(r.last().reasons.has(Trigger::kAllDown));
}

TEST(Reporting, NoSecurityEventIsLost_D11) {
  ReportingRig r;
  for (int i = 0; i < 20; ++i) r.raise(Trigger::kAdmin);
  for (size_t i = 0; i < kSecurityEventsMax + 3; ++i) r.ri.raise(SecurityEvent{std::to_string(i), 0}, r.now);
  r.run_to_due();
  EXPECT_EQ(r.last().security_events.size(), kSecurityEventsMax);
  EXPECT_EQ(r.last().security_events_dropped, 3u);
  r.raise(Trigger::kAdmin);
  r.run_to_due();
  EXPECT_TRUE(r.last().security_events.empty());
  EXPECT_EQ(r.last().security_events_dropped, 0u);
}

TEST(Reporting, ARoutineReportCarriesACriticalReasonThatWaits_D11) {
  ReportingRig r;
  for (int i = 0; i < 21; ++i) r.raise(Trigger::kAdmin);  // the last one waits for its token
  EXPECT_TRUE(r.observe(state(5)));
  EXPECT_EQ(r.last().trigger, Trigger::kAdmin);
  EXPECT_TRUE(r.last().reasons.has(Trigger::kThreshold));
  EXPECT_EQ(r.ri.next_due(), kFirst + 60 * kSecond);
}

TEST(Reporting, APullIsAnsweredInFullOutOfTheRoutineBucket_D21) {
  ReportingRig r;
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(r.raise(Trigger::kPulled));
  EXPECT_TRUE(r.last().full);
  EXPECT_EQ(r.last().trigger, Trigger::kPulled);
  EXPECT_FALSE(r.raise(Trigger::kPulled));
}

TEST(Reporting, StartAndStopGoWhateverTheBucketsSay_D21) {
  ReportingRig r;
  for (int i = 0; i < 30; ++i) r.raise(Trigger::kAdmin);
  for (uint32_t gas = 1; gas <= 1000; gas += 100) r.observe(state(gas));
  EXPECT_TRUE(r.raise(Trigger::kStop));
  EXPECT_EQ(r.last().trigger, Trigger::kStop);
  EXPECT_TRUE(r.last().full);
}

TEST(Reporting, CarriesItsFields_SCI112_SCI113_SCI114_SCI115_SCI116_SCI117_SCI119_D42) {
  SciSpec c = config();
  c.report.interval = 30 * kSecond;
  SciState s = state(42, 17);
  s.price = 10;
  s.reputation = 8;
  s.security_level = 5;
  s.ledger_at = kFirst - 3 * kMillisecond;
  ReportingInterface ri(c, 7, kFirst);
  ri.raise(Trigger::kStart, kFirst);
  const Report r = ri.make(s, kFirst, 1'700'000'000'123);
  EXPECT_EQ(r.csci_id, "192.0.2.10:80");
  EXPECT_EQ(r.cs_id, "ARS");
  EXPECT_EQ(r.timestamp_ms, 1'700'000'000'123);
  EXPECT_EQ(r.epoch, 7u);
  EXPECT_EQ(r.sequence, 1u);
  EXPECT_EQ(r.trigger, Trigger::kStart);
  EXPECT_TRUE(r.full);
  EXPECT_EQ(r.state.gas->value, 42u);
  EXPECT_EQ(r.state.computing_time.value, 17u);
  EXPECT_EQ(r.state.price, 10u);
  EXPECT_EQ(r.state.reputation, 8u);
  EXPECT_EQ(r.state.security_level, 5u);
  EXPECT_EQ(r.reporting_interval, 30 * kSecond);
  EXPECT_EQ(r.ledger_age, 3 * kMillisecond);
}

TEST(Reporting, TheSequenceRisesByOne_SCI115) {
  ReportingRig r;
  for (uint64_t i = 2; i < 20; ++i) {
    r.now += 60 * kSecond;
    r.poll();
    EXPECT_EQ(r.last().sequence, i);
  }
}

TEST(Reporting, ADeltaLeavesOutWhatDidNotChange_SCI119_SCI120_D42) {
  SciState s = state(1000);
  s.price = 10;
  s.security_level = 5;
  s.instances = {{"a", HealthState::kHealthy, Admin::kEnabled, 10, 1},
                 {"b", HealthState::kHealthy, Admin::kEnabled, 10, 1}};
  ReportingRig r(config(), s);
  s.price = 11;
  s.instances[1].health = HealthState::kDegraded;
  EXPECT_TRUE(r.observe(s));  // the price
  EXPECT_EQ(r.last().trigger, Trigger::kThreshold);
  EXPECT_EQ(r.last().state.price, 11u);
  EXPECT_FALSE(r.last().state.security_level.has_value());
  ASSERT_EQ(r.last().state.instances.size(), 1u);
  EXPECT_EQ(r.last().state.instances[0].id, "b");
  EXPECT_EQ(r.last().state.gas->value, 1000u);
  s.instances[0].active = 7;  // sessions come and go
  s.instances[1].limit = 20;
  r.now_state = s;
  EXPECT_TRUE(r.raise(Trigger::kAdmin));
  ASSERT_EQ(r.last().state.instances.size(), 1u);
  EXPECT_EQ(r.last().state.instances[0].limit, 20u);
  r.now += 60 * kSecond;
  EXPECT_TRUE(r.poll());
  EXPECT_EQ(r.last().state.instances.size(), 2u);
  EXPECT_EQ(r.last().state.security_level, 5u);
}

TEST(Reporting, AReloadTakesIntervalsAndRatesAndKeepsTheSequence_SCI105) {
  ReportingRig r;
  SciSpec c = config();
  c.report.interval = 10 * kSecond;
  c.report.rate = {.spacing = 2 * kSecond, .burst = 1};
  r.ri.configure(c, r.now);
  EXPECT_EQ(r.ri.next_due(), kFirst + 10 * kSecond);
  EXPECT_TRUE(r.observe(state(1)));
  EXPECT_EQ(r.last().sequence, 2u);
  EXPECT_FALSE(r.observe(state(500)));
  EXPECT_EQ(r.ri.next_due(), kFirst + 2 * kSecond);
}

// The C-SMA was told the shorter interval and lets the SCI age by it.
TEST(Reporting, ALongerIntervalBeginsWithTheReportThatTellsOfIt_SCI100_D42) {
  ReportingRig r;
  SciSpec c = config();
  c.report.interval = 600 * kSecond;
  r.now += 59 * kSecond;
  r.ri.configure(c, r.now);
  EXPECT_EQ(r.ri.next_due(), kFirst + 60 * kSecond);
  r.run_to_due();
  EXPECT_EQ(r.last().reporting_interval, 600 * kSecond);
  EXPECT_EQ(r.ri.next_due(), kFirst + 660 * kSecond);
}

TEST(Reporting, AReloadTakesTheServiceItsReportsName_SCI113) {
  ReportingRig r;
  SciSpec c = config();
  c.cs_id = "VRS";
  r.ri.configure(c, r.now);
  EXPECT_TRUE(r.raise(Trigger::kPulled));
  EXPECT_EQ(r.last().cs_id, "VRS");
}

TEST(Reporting, WhatIsGoneIsToldByAFullReport_SCI44_SCI119_SCI120) {
  SciState s = state(1000);
  s.price = 10;
  s.reputation = 8;
  s.instances = {{.id = "a"}, {.id = "b"}};
  ReportingRig price(config(), s);
  SciState less = s;
  less.price.reset();
  EXPECT_TRUE(price.observe(less));
  EXPECT_EQ(price.last().trigger, Trigger::kThreshold);
  EXPECT_TRUE(price.last().full);
  EXPECT_FALSE(price.last().state.price.has_value());
  EXPECT_EQ(price.last().state.reputation, 8u);
  less.reputation = 9;
  EXPECT_TRUE(price.observe(less));
  EXPECT_FALSE(price.last().full);

  ReportingRig instance(config(), s);
  instance.now_state.instances.pop_back();
  EXPECT_TRUE(instance.raise(Trigger::kAdmin));
  EXPECT_TRUE(instance.last().full);
  EXPECT_EQ(instance.last().state.instances.size(), 1u);
}

}  // namespace
}  // namespace margay::control
