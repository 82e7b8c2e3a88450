// SPDX-License-Identifier: Apache-2.0
// One SCI as a whole: events in, actions out, in simulated time.
#include "control/sci/sci.h"

#include <gtest/gtest.h>

#include "tests/unit/control/sci_rig.h"

namespace margay::control {
namespace {

using test::kBegin;
using test::SciRig;
using test::two_instances;

using enum HealthState;

TEST(Sci, ComesUpFromUnknown_SCI60_SCI46) {
  SciRig r;
  r.ledger({});
  ASSERT_EQ(r.reports.size(), 1u);
  EXPECT_EQ(r.last().trigger, Trigger::kStart);
  EXPECT_TRUE(r.last().full);
  EXPECT_EQ(r.last().state.gas->value, 0u);
  EXPECT_EQ(r.last().state.health.unknown, 2u);
  ASSERT_EQ(r.tables.size(), 1u);
  EXPECT_EQ(r.tables[0].second.changed.size(), 2u);
  EXPECT_EQ(r.tables[0].second.changed[0].limit, 0u);
  r.run_for(3 * kSecond);
  EXPECT_EQ(r.state_of("si-1"), kHealthy);
  EXPECT_EQ(r.last().trigger, Trigger::kRecovery);
  EXPECT_EQ(r.last().state.gas->value, 400u);
  EXPECT_EQ(r.last().state.health.healthy, 2u);
}

TEST(Sci, ProbesAsConfigured_SCI46_SCI47) {
  SciSpec config = two_instances();
  config.instances[0].address = "2001:db8::11";
  config.health.readiness = ProbeConfig{.http = "http://{address}:{port}/ready", .interval = 30 * kSecond};
  SciRig r(config);
  r.run_for(2 * kSecond);
  for (const auto& [at, probe] : r.probes) {
    EXPECT_EQ(probe.deadline, at + kSecond);
    const std::string ready = probe.id == "si-1" ? "http://[2001:db8::11]:8080/ready" : "http://10.1.0.12:8080/ready";
    EXPECT_EQ(probe.url, probe.kind == CheckKind::kLiveness ? "" : ready);
  }
  EXPECT_GE(r.count(CheckKind::kLiveness), 2u);
  EXPECT_GE(r.count(CheckKind::kReadiness), 2u);
}

TEST(Sci, LivenessEvery5SecondsReadinessAndPerformanceEvery30_SCI51) {
  SciSpec config = two_instances();
  config.health.readiness = ProbeConfig{.http = "x", .interval = 30 * kSecond};
  SciRig r(config);
  r.settle();
  r.run_for(600 * kSecond);
  EXPECT_NEAR(static_cast<double>(r.count(CheckKind::kLiveness)), 240, 4);  // two instances
  EXPECT_NEAR(static_cast<double>(r.count(CheckKind::kReadiness)), 40, 2);
}

TEST(Sci, DeathOfAnInstanceReachesTableEventLogAndReport_SCI62_SCI66_SCI68_SCI71) {
  SciRig r;
  r.settle();
  r.ledger({{"si-1", 30}, {"si-2", 50}});
  r.forget();
  r.behaviours["si-2"].liveness = Outcome::kFail;
  r.run_for(9 * kSecond);  // one interval, its jitter, and two confirm intervals
  ASSERT_EQ(r.transitions.size(), 1u);
  const auto& [at, transition] = r.transitions[0];
  EXPECT_EQ(transition.id, "si-2");
  EXPECT_EQ(transition.change.to, kUnhealthy);
  EXPECT_EQ(transition.change.cause.kind, CheckKind::kLiveness);
  EXPECT_EQ(transition.change.cause.count, 3u);
  EXPECT_EQ(transition.change.cause.detail, "so");
  ASSERT_EQ(r.tables.size(), 1u);
  EXPECT_EQ(r.tables[0].first, at);                  // at once
  ASSERT_EQ(r.tables[0].second.changed.size(), 1u);  // what changed, not what exists
  EXPECT_EQ(r.tables[0].second.changed[0],
            (TableChanged::Entry{.id = "si-2", .health = kUnhealthy, .health_since = r.tables[0].first, .weight = 1}));
  ASSERT_EQ(r.reports.size(), 1u);
  EXPECT_EQ(r.reports[0].first, at + 100 * kMillisecond);
  EXPECT_EQ(r.last().trigger, Trigger::kHealth);
  EXPECT_EQ(r.last().state.gas->value, 170u);
  EXPECT_EQ(r.last().state.health.unhealthy, 1u);
}

TEST(Sci, AnInstanceThatComesBackIsRestoredByItsLoad_SCI63_SCI69_SCI107) {
  SciRig r;
  r.settle();
  r.ledger({{"si-1", 30}, {"si-2", 50}});
  r.behaviours["si-2"].liveness = Outcome::kFail;
  r.run_for(9 * kSecond);
  r.behaviours["si-2"].liveness = Outcome::kPass;
  r.forget();
  r.run_for(6 * kSecond);
  ASSERT_EQ(r.transitions.size(), 2u);
  EXPECT_EQ(r.transitions[0].second.change.to, kDegraded);
  EXPECT_EQ(r.transitions[1].second.change.to, kHealthy);
  ASSERT_EQ(r.tables.size(), 2u);
  EXPECT_EQ(r.tables[0].second.changed[0].limit, 100u);
  EXPECT_EQ(r.tables[1].second.changed[0].limit, 200u);
  ASSERT_EQ(r.reports.size(), 2u);
  EXPECT_EQ(r.reports[0].second.trigger, Trigger::kHealth);
  EXPECT_EQ(r.reports[0].second.state.gas->value, 220u);  // 170 + (100 - 50)
  EXPECT_EQ(r.reports[1].second.trigger, Trigger::kRecovery);
  EXPECT_EQ(r.reports[1].first, r.transitions[1].first);  // immediately
  EXPECT_EQ(r.reports[1].second.state.gas->value, 320u);
}

TEST(Sci, AllDownIsReportedAtOnceWithGas0_SCI106) {
  SciRig r;
  r.settle();
  r.behaviours["si-1"].liveness = r.behaviours["si-2"].liveness = Outcome::kFail;
  r.run_for(9 * kSecond);
  const Report* report = r.first_with(Trigger::kAllDown);
  ASSERT_NE(report, nullptr);
  EXPECT_EQ(r.reports.back().first, r.transitions.back().first);
  EXPECT_EQ(report->state.gas->value, 0u);
  EXPECT_FALSE(report->state.computing_time.value.has_value());
  EXPECT_EQ(report->state.health.sci_health(), kUnhealthy);
}

TEST(Sci, AProberThatDoesNotAnswerMakesUnknownNotUnhealthy_D54) {
  SciRig r;
  r.settle();
  r.behaviours["si-1"].hangs = true;
  r.run_for(20 * kSecond);
  EXPECT_EQ(r.state_of("si-1"), kUnknown);
  EXPECT_EQ(r.state_of("si-2"), kHealthy);
  EXPECT_EQ(r.sci.state().gas->value, 200u);  // UNKNOWN contributes nothing
}

TEST(Sci, AfterUnknownEveryProbeRunsAtTheConfirmInterval_D24) {
  SciSpec config = two_instances();
  config.health.readiness = ProbeConfig{.http = "x", .interval = 3600 * kSecond};
  SciRig r(config);
  r.settle();
  r.behaviours["si-1"].liveness = Outcome::kError;
  r.run_for(10 * kSecond);
  ASSERT_EQ(r.state_of("si-1"), kUnknown);
  r.behaviours["si-1"].liveness = Outcome::kPass;
  r.run_for(4 * kSecond);
  EXPECT_EQ(r.state_of("si-1"), kHealthy);
}

TEST(Sci, ALateOrForeignAnswerIsIgnored) {
  SciRig r;
  r.settle();
  for (uint64_t serial = 0; serial < 200; ++serial) {
    r.handle(CheckResult{"si-1", CheckKind::kLiveness, serial, Outcome::kFail, 0, ""});
    r.handle(CheckResult{"si-1", CheckKind::kPerformance, serial, Outcome::kFail, 0, ""});
    r.handle(CheckResult{"nobody", CheckKind::kLiveness, serial, Outcome::kFail, 0, ""});
    r.handle(ScrapeResult{"nobody", serial, false, {}});
  }
  r.run_for(10 * kSecond);
  EXPECT_TRUE(r.transitions.empty());
}

TEST(Sci, TakesOverFromTheRunningSnapshotWithoutGas0) {
  SciRig r(two_instances(), {{"si-1", {kHealthy, 50 * kSecond}}, {"si-2", {kDegraded, 5 * kSecond}}});
  r.tick();
  EXPECT_TRUE(r.reports.empty());  // no counters yet
  r.now += 200 * kMillisecond;
  r.ledger({{"si-1", 30}, {"si-2", 50}});
  ASSERT_EQ(r.reports.size(), 1u);
  EXPECT_EQ(r.last().trigger, Trigger::kStart);
  EXPECT_EQ(r.last().state.gas->value, 220u);
  EXPECT_EQ(r.sci.monitor("si-1")->since(), kBegin - 50 * kSecond);
  r.run_for(10 * kSecond);
  for (const auto& [at, report] : r.reports) EXPECT_GT(report.state.gas->value, 0u);
  for (const auto& [at, transition] : r.transitions) EXPECT_EQ(transition.id, "si-2");
}

TEST(Sci, WithoutNewsOfTheDataPlaneGasIsAbsentNot0_D42) {
  SciRig r(two_instances(), {{"si-1", {kHealthy}}});
  r.run_for(kSecond);
  ASSERT_FALSE(r.reports.empty());
  EXPECT_EQ(r.reports[0].second.trigger, Trigger::kStart);
  EXPECT_EQ(r.reports[0].first, kBegin + kSecond);
  EXPECT_FALSE(r.reports[0].second.state.gas.has_value());
}

TEST(Sci, ALostDataPlaneIsGas0AtOnceAndItsReturnIsARecovery) {
  SciRig r;
  r.settle();
  r.ledger({{"si-1", 30}});
  r.forget();
  r.handle(DataPlaneLost{"no heartbeat for 1 s"});
  ASSERT_EQ(r.reports.size(), 1u);
  EXPECT_EQ(r.last().trigger, Trigger::kAllDown);
  EXPECT_EQ(r.last().state.gas->value, 0u);
  EXPECT_TRUE(r.last().state.data_plane_lost);
  EXPECT_EQ(r.last().state.health.healthy, 2u);  // the instances are as they were
  r.handle(DataPlaneLost{"again"});
  r.ledger({{"si-1", 30}});  // of before
  EXPECT_EQ(r.reports.size(), 1u);
  r.handle(DataPlaneBack{});
  EXPECT_EQ(r.tables.back().second.changed.size(), 2u);  // the whole table again
  EXPECT_EQ(r.reports.size(), 1u);
  r.ledger({{"si-1", 10}});
  EXPECT_EQ(r.last().trigger, Trigger::kRecovery);
  EXPECT_EQ(r.last().state.gas->value, 390u);
  EXPECT_FALSE(r.last().state.data_plane_lost);
}

TEST(Sci, GasFollowsTheLedgerByThresholds_SCI93_SCI94_SCI102) {
  SciRig r;
  r.settle();
  r.ledger({{"si-1", 40}});  // 400 -> 360: exactly 10 %
  EXPECT_TRUE(r.reports.empty());
  r.ledger({{"si-1", 41}});
  ASSERT_EQ(r.reports.size(), 1u);
  EXPECT_EQ(r.last().trigger, Trigger::kThreshold);
  EXPECT_EQ(r.last().state.gas->value, 359u);
}

TEST(Sci, AnOperatorsLowerLimitCounts_D7) {
  SciRig r;
  r.settle();
  r.handle(LedgerSample{{{"si-1", {.active = 30, .provisional = 2, .max_sessions = 20}}}});
  EXPECT_EQ(r.last().state.gas->value, 200u);
  EXPECT_EQ(r.last().state.gas->over_limit, 10u);
  EXPECT_EQ(r.last().state.gas->provisional, 2u);
  EXPECT_TRUE(r.tables.empty()) << "what the data plane knows better is not told back to it";
}

TEST(Sci, WeightOfTheSiteFileAndOfTheOperatorSayWhoTakesNewFlows) {
  SciSpec config = two_instances();
  config.instances[0].weight = 0;
  SciRig r(config);
  r.settle();
  EXPECT_EQ(r.sci.state().gas->value, 200u);
  r.handle(LedgerSample{{{"si-1", {.weight = 3}}}});
  EXPECT_EQ(r.sci.state().gas->value, 400u);
  r.handle(LedgerSample{{{"si-2", {.weight = 0}}}});
  EXPECT_EQ(r.sci.state().gas->value, 200u);
  EXPECT_EQ(r.last().trigger, Trigger::kThreshold);
}

TEST(Sci, SecurityEventsAndAChangedSecurityLevelAreCritical_SCI108_D20) {
  SciSpec config = two_instances();
  config.security_level = 5;
  SciRig r(config);
  r.settle();
  r.handle(SecurityNotice{"SYN flood"});
  EXPECT_EQ(r.last().trigger, Trigger::kSecurity);
  config.security_level = 3;
  r.handle(ConfigChanged{config});
  EXPECT_EQ(r.last().trigger, Trigger::kSecurity);
  EXPECT_EQ(r.last().security_events[0].what, "security level changed from 5 to 3");
  EXPECT_EQ(r.last().state.security_level, 3u);
}

TEST(Sci, PullAndStopAreAnswered_D21) {
  SciRig r;
  r.settle();
  r.handle(Pull{});
  EXPECT_EQ(r.last().trigger, Trigger::kPulled);
  EXPECT_EQ(r.last().state.instances.size(), 2u);
  r.handle(Stop{});
  EXPECT_EQ(r.last().trigger, Trigger::kStop);
  EXPECT_EQ(r.last().state.gas->value, 400u);  // the data plane goes on
}

TEST(Sci, ADataPlaneLostTwiceComesBackByItsOwnCounters) {
  SciRig r;
  r.settle();
  r.handle(DataPlaneLost{"first"});
  r.handle(DataPlaneBack{});
  r.handle(DataPlaneLost{"second"});  // before any counters
  r.ledger({{"si-1", 30}});           // of before
  EXPECT_EQ(r.sci.state().gas->value, 0u);
  r.handle(DataPlaneBack{});
  r.ledger({{"si-1", 30}});
  EXPECT_EQ(r.sci.state().gas->value, 370u);
  EXPECT_EQ(r.last().trigger, Trigger::kRecovery);
}

// Everything but the time stamp runs on the monotonic clock.
TEST(Sci, AWallClockThatJumpsAnHourChangesNothingButTheTimeStamp_SCI114) {
  const auto run = [](int64_t jump) {
    SciRig r;
    r.settle();
    std::string trace;
    for (int i = 0; i < 200; ++i) {
      r.unix_ms += i % 2 == 0 ? jump : -jump;
      if (i == 50) r.behaviours["si-1"].liveness = Outcome::kFail;
      if (i == 100) r.behaviours["si-1"].liveness = Outcome::kPass;
      r.ledger({{"si-2", static_cast<uint32_t>(i)}});
      r.run_for(kSecond);
    }
    for (const auto& [at, p] : r.probes) trace += std::to_string(at) + p.id + "\n";
    for (const auto& [at, t] : r.transitions) trace += std::to_string(at) + std::string(name_of(t.change.to)) + "\n";
    for (const auto& [at, p] : r.reports) {
      trace += std::to_string(at) + std::string(name_of(p.trigger)) + std::to_string(p.sequence) + " " +
               std::to_string(p.state.gas->value) + " " + std::to_string(*p.ledger_age) + "\n";
    }
    return trace;
  };
  const std::string still = run(0);
  EXPECT_GT(still.size(), 1000u);
  EXPECT_EQ(run(3'600'000), still);
  EXPECT_EQ(run(-3'600'000), still);
}

TEST(Sci, AStormOfHealthChangesIsCoalescedAndEndsInTheNewestState_SCI72_SCI109_D34) {
  SciSpec config = two_instances();
  config.instances.clear();
  for (int i = 0; i < 300; ++i) {
    config.instances.push_back({.id = "i" + std::to_string(i), .address = "10.0.0.1", .port = 80, .max_sessions = 10});
  }
  SciRig r(config);
  r.settle();
  for (int i = 0; i < 300; ++i) r.behaviours["i" + std::to_string(i)].liveness = Outcome::kFail;
  r.run_for(10 * kSecond);
  EXPECT_EQ(r.transitions.size(), 300u);
  EXPECT_LE(r.reports.size(), 120u);  // 20 and 10 a second
  EXPECT_EQ(r.last().state.gas->value, 0u);
  EXPECT_EQ(r.last().state.health.unhealthy, 300u);
}

}  // namespace
}  // namespace margay::control
