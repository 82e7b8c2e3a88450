// SPDX-License-Identifier: Apache-2.0
// All parts of the control plane in one process but the sockets to instances, over a data plane that the test plays.
#include "control/site.h"

#include <gtest/gtest.h>

#include "tests/support/fake_data_plane.h"
#include "tests/support/temp_folder.h"
#include "tests/unit/control/table_plan_rig.h"

namespace margay::control {
namespace {

constexpr Nanoseconds kStep = 100 * kMillisecond;

SiteSpec site_of(const std::string& socket, const std::string& state, const std::vector<SciConfig>& scis) {
  SiteSpec spec;
  spec.site.site = "test";
  spec.site.control_socket = socket;
  spec.state_directory = state;
  for (const SciConfig& sci : scis) {
    spec.site.scis.push_back(sci);
    spec.scis.push_back(spec_of(sci));
  }
  return spec;
}

class SiteTest : public ::testing::Test {
 protected:
  void start(const std::vector<SciConfig>& scis = {sci("a", {instance("x", 1), instance("y", 2)})}) {
    Site::Parts parts;
    parts.ask = [this](const Prober::Question& q) { questions_.push_back(q); };
    parts.report = [this](const Report& r) { reports_.push_back(r); };
    parts.handled = [this](const std::string&, const Event& e, const std::vector<Action>&, Time) {
      if (const auto* check = std::get_if<CheckResult>(&e)) heard_.insert(check->id);
    };
    auto site = Site::make(site_of(plane_.path(), state_.path(), scis), std::move(parts), 1, -1, now_.monotonic);
    ASSERT_TRUE(site) << site.error().message;
    site_ = std::move(*site);
  }
  // A step of time. Every instance that is asked answers, those that `down_` names with a failure.
  void step(bool beats = true) {
    now_.monotonic += kStep;
    now_.unix_ms += 100;
    if (beats) plane_.beat();
    if (plane_.connected()) {
      if (const auto taken = plane_.take()) table_ = *taken;
    }
    for (const Prober::Question& q : std::exchange(questions_, {})) {
      EXPECT_FALSE(q.keep_body);
      EXPECT_GT(q.timeout, 0u);
      EXPECT_LE(q.timeout, kSecond);
      const bool up = down_.count(q.port) == 0;
      site_->answer({.ticket = q.ticket,
                     .verdict = up ? Prober::Verdict::kOk : verdict_,
                     .detail = up ? "" : "refused",
                     .silent = !up && silent_,
                     .took = kMillisecond,
                     .body = ""},
                    now_);
    }
    site_->turn(now_);
  }
  void steps(Nanoseconds time) {
    for (Nanoseconds t = 0; t < time; t += kStep) step();
  }
  void connect(const std::optional<Snapshot>& running = {}) {
    for (int n = 0; n < 40 && !plane_.accept(); ++n) step();
    ASSERT_TRUE(plane_.connected());
    plane_.welcome(running);
  }
  HealthState health(const std::string& csci_id, const std::string& id) {
    return site_->scis().at(csci_id).monitor(id)->state();
  }
  const Report& last() { return reports_.back(); }

  FakeDataPlane plane_;
  test::TempFolder state_;
  Time now_{.monotonic = 1000 * kSecond, .unix_ms = 1'700'000'000'000};
  std::set<uint16_t> down_;
  Prober::Verdict verdict_ = Prober::Verdict::kFailed;  // of those
  bool silent_ = false;
  std::vector<Prober::Question> questions_;
  std::vector<Report> reports_;
  std::set<std::string> heard_;  // instances whose answers reached a core
  Snapshot table_;
  std::unique_ptr<Site> site_;
};

TEST_F(SiteTest, InstancesThatAnswerReachTheDataPlaneAndTheReports) {
  start();
  connect();
  steps(10 * kSecond);
  ASSERT_EQ(table_.scis.size(), 1u);
  for (const InstanceRecord& i : table_.scis[0].instances) {
    EXPECT_EQ(i.health, HealthState::kHealthy);
    EXPECT_EQ(i.limit, 100u);
  }
  ASSERT_FALSE(reports_.empty());
  EXPECT_EQ(reports_[0].trigger, Trigger::kStart);
  EXPECT_EQ(last().state.gas->value, 200u);
}

TEST_F(SiteTest, AnInstanceThatFailsGoesOutOfTableAndReport) {
  start();
  connect();
  steps(10 * kSecond);
  down_ = {2};
  steps(15 * kSecond);
  EXPECT_EQ(table_.scis[0].instances[1].health, HealthState::kUnhealthy);
  EXPECT_EQ(table_.scis[0].instances[1].limit, 0u);
  EXPECT_EQ(last().state.gas->value, 100u);
}

// "A new one takes over with no report of GAS 0 and no state reset."
TEST_F(SiteTest, ATakeOverStartsFromWhatRuns) {
  start();
  connect();
  steps(10 * kSecond);
  down_ = {2};
  steps(15 * kSecond);
  const uint64_t epoch = last().epoch;
  Snapshot running = table_;
  running.base = 0;
  const InstanceRecord x = table_.scis[0].instances[0];
  plane_.counts(0, x.index).generation.set(x.generation);
  plane_.counts(0, x.index).active.set(30);
  site_.reset();
  plane_.close();
  reports_.clear();
  questions_.clear();
  start();
  connect(running);
  steps(kSecond);
  EXPECT_EQ(health("a", "x"), HealthState::kHealthy);
  EXPECT_EQ(health("a", "y"), HealthState::kUnhealthy);
  ASSERT_FALSE(reports_.empty());
  for (const Report& r : reports_) EXPECT_EQ(r.state.gas->value, 70u);
  EXPECT_GT(reports_[0].epoch, epoch);
  ASSERT_EQ(table_.scis.size(), 1u);
  EXPECT_EQ(table_.scis[0].instances[0].index, x.index);
  EXPECT_EQ(table_.scis[0].instances[0].generation, x.generation);
  EXPECT_EQ(table_.scis[0].instances[0].health_since, x.health_since);
  EXPECT_GT(table_.generation, running.generation);
}

// Whichever of the two processes starts first.
TEST_F(SiteTest, ADataPlaneThatComesLaterWithATableIsBelievedToo) {
  Snapshot running{.generation = 7,
                   .base = 0,
                   .scis = {{.index = 2,
                             .policy = sci("a", {}),
                             .instances = {{.index = 5, .generation = 3, .config = instance("x", 1)}}}},
                   .removed = {}};
  running.scis[0].instances[0].health = HealthState::kHealthy;
  running.scis[0].instances[0].limit = 100;
  plane_.stop_listening();
  start({sci("a", {instance("x", 1)})});
  down_ = {};
  for (int n = 0; n < 12; ++n) {
    questions_.clear();  // nothing is known yet
    step();
  }
  EXPECT_EQ(last().state.gas->value, 0u);
  EXPECT_EQ(health("a", "x"), HealthState::kUnknown);
  plane_.listen();
  for (int n = 0; n < 40 && !plane_.accept(); ++n) {
    questions_.clear();
    step();
  }
  plane_.welcome(running);
  questions_.clear();
  step();
  step();
  step();
  EXPECT_EQ(health("a", "x"), HealthState::kHealthy);
  EXPECT_EQ(table_.scis[0].index, 2u);
  EXPECT_EQ(table_.scis[0].instances[0].index, 5u);
  EXPECT_EQ(last().state.gas->value, 100u);
}

TEST_F(SiteTest, AFrozenDataPlaneIsGas0Within2SecondsAndComesBack) {
  start();
  connect();
  steps(10 * kSecond);
  const Nanoseconds frozen = now_.monotonic;
  while (last().state.gas->value != 0 && now_.monotonic < frozen + 5 * kSecond) step(false);
  EXPECT_LE(now_.monotonic - frozen, 2 * kSecond);
  EXPECT_EQ(last().trigger, Trigger::kAllDown);
  steps(kSecond);
  EXPECT_EQ(last().trigger, Trigger::kRecovery);
  EXPECT_EQ(last().state.gas->value, 200u);
}

// Set back and forth by an hour it changes no timer, age or order.
TEST_F(SiteTest, TheWallClockIsOnlyATimeStamp) {
  start();
  connect();
  steps(10 * kSecond);
  const size_t before = reports_.size();
  const Nanoseconds due = site_->next_due();
  for (const int64_t hour : {-1, 1, 1, -1}) {
    now_.unix_ms += hour * 3'600'000;
    steps(kSecond);
  }
  EXPECT_EQ(reports_.size(), before);
  EXPECT_LE(due, now_.monotonic);
  now_.unix_ms -= 3'600'000;
  const uint64_t epoch = last().epoch, sequence = last().sequence;
  down_ = {2};
  steps(15 * kSecond);
  EXPECT_EQ(last().epoch, epoch);
  EXPECT_GT(last().sequence, sequence);
}

// D-54: what our prober could not do is no instance's failure. D-51: nor is the silence of many, at first.
TEST_F(SiteTest, WhatMayBeOurOwnFaultMakesUnknown) {
  start({sci("a", {instance("x", 1)}), sci("b", {instance("p", 5), instance("q", 6), instance("r", 7)})});
  connect();
  steps(10 * kSecond);
  down_ = {1};
  verdict_ = Prober::Verdict::kOwnError;
  steps(20 * kSecond);
  EXPECT_EQ(health("a", "x"), HealthState::kUnknown);
  down_ = {5, 6, 7};
  verdict_ = Prober::Verdict::kFailed;
  silent_ = true;
  for (int n = 0; n < 300 && health("b", "q") == HealthState::kHealthy; ++n) step();
  EXPECT_EQ(health("b", "q"), HealthState::kUnknown);
}

TEST_F(SiteTest, BeginsAfterASecondWithoutADataPlane) {
  plane_.stop_listening();
  start();
  steps(900 * kMillisecond);
  EXPECT_TRUE(site_->scis().empty());
  steps(300 * kMillisecond);
  EXPECT_EQ(site_->scis().size(), 1u);
}

TEST_F(SiteTest, ManyScisAreNotInStepAndAllAreServedInOneTurn) {
  start({sci("a", {instance("x", 1)}), sci("b", {instance("y", 2)}), sci("c", {instance("z", 3)})});
  connect();
  step();
  EXPECT_NE(site_->scis().at("a").next_due(), site_->scis().at("b").next_due());
  steps(10 * kSecond);
  EXPECT_EQ(site_->asking(), questions_.size()) << "what was answered is done";
  now_.monotonic += 30 * kSecond;
  site_->turn(now_);
  EXPECT_EQ(site_->asking(), 3u);
  questions_.clear();
}

TEST_F(SiteTest, TheDataPlaneIsLookedAtAsOftenAsTheLinkWants) {
  start();
  connect();
  steps(10 * kSecond);
  EXPECT_LE(site_->next_due(), now_.monotonic + DataPlaneLink::kLedgerInterval);
}

TEST_F(SiteTest, AReloadIsSentAtOnceAndANewSciKnowsWhetherTheDataPlaneIsLost) {
  start({sci("a", {instance("x", 1)})});
  connect();
  steps(10 * kSecond);
  const auto with = [this](const char* name, uint16_t port) {
    std::vector<SciConfig> scis = site_->spec().site.scis;
    scis.push_back(sci(name, {instance(std::string("of-") + name, port)}));
    ASSERT_TRUE(site_->reload(site_of(plane_.path(), state_.path(), scis), now_));
  };
  const auto told_lost = [this](const char* name) { return site_->scis().at(name).state().data_plane_lost; };
  with("b", 2);
  EXPECT_TRUE(plane_.take()) << "without waiting for a turn";
  EXPECT_FALSE(told_lost("b"));
  for (int n = 0; n < 20; ++n) step(false);
  with("c", 3);
  EXPECT_TRUE(told_lost("c"));
  steps(kSecond);
  EXPECT_FALSE(told_lost("c"));
  with("d", 4);
  EXPECT_FALSE(told_lost("d"));
}

TEST_F(SiteTest, AReloadKeepsWhatStaysAndSaysWhatChanged) {
  start({sci("a", {instance("x", 1), instance("y", 2)}), sci("b", {instance("z", 3)})});
  connect();
  steps(10 * kSecond);
  const InstanceRecord x = record(site_->plan(), "a", "x");
  InstanceConfig larger = instance("y", 2);
  larger.max_sessions = 150;
  SciConfig a = sci("a", {instance("x", 1), larger, instance("w", 4)});
  a.ramp = 3 * kSecond;
  const auto changes = site_->reload(site_of(plane_.path(), state_.path(), {a, sci("c", {instance("q", 5)})}), now_);
  ASSERT_TRUE(changes) << changes.error().message;
  EXPECT_EQ(*changes, (std::vector<std::string>{"scis[a].ramp: changed", "scis[a].instances[y]: changed",
                                                "scis[a].instances[w]: added", "scis[c]: added", "scis[b]: removed"}));
  EXPECT_EQ(health("a", "x"), HealthState::kHealthy);
  step();
  step();
  EXPECT_EQ(record(site_->plan(), "a", "x").index, x.index);
  EXPECT_EQ(record(site_->plan(), "a", "y").limit, 150u);
  EXPECT_EQ(site_->scis().count("b"), 0u);
  EXPECT_TRUE(std::any_of(reports_.begin(), reports_.end(),
                          [](const Report& r) { return r.csci_id == "b" && r.trigger == Trigger::kStop; }));
  steps(10 * kSecond);
  EXPECT_EQ(health("a", "w"), HealthState::kHealthy);
  EXPECT_EQ(health("c", "q"), HealthState::kHealthy);
}

TEST_F(SiteTest, AnAnswerThatComesAfterItsInstanceWentIsNobodys) {
  start();
  connect();
  steps(10 * kSecond);
  std::set<uint16_t> asked;
  while (asked.size() < 2) {
    now_.monotonic += kStep;
    plane_.beat();
    site_->turn(now_);
    for (const Prober::Question& q : questions_) asked.insert(q.port);
  }
  heard_.clear();
  ASSERT_TRUE(site_->reload(site_of(plane_.path(), state_.path(), {sci("a", {instance("x", 1)})}), now_));
  step();
  EXPECT_EQ(heard_, std::set<std::string>{"x"});
}

TEST_F(SiteTest, AReloadThatDoesNotFitChangesNothing) {
  start();
  connect();
  steps(10 * kSecond);
  std::vector<InstanceConfig> many;
  for (uint16_t n = 1; n < 40; ++n) many.push_back(instance("i" + std::to_string(n), n));
  const auto full = site_->reload(site_of(plane_.path(), state_.path(), {sci("a", many)}), now_);
  ASSERT_FALSE(full);
  EXPECT_NE(full.error().message.find("room for 16 instances"), std::string::npos) << full.error().message;
  const auto elsewhere = site_->reload(site_of("/elsewhere", state_.path(), {sci("a", {})}), now_);
  ASSERT_FALSE(elsewhere);
  EXPECT_NE(elsewhere.error().message.find("restart"), std::string::npos) << elsewhere.error().message;
  const size_t before = reports_.size();
  steps(kSecond);
  EXPECT_EQ(health("a", "x"), HealthState::kHealthy);
  EXPECT_EQ(site_->spec().scis[0].instances.size(), 2u);
  EXPECT_EQ(reports_.size(), before);
}

TEST_F(SiteTest, TheLastReportIsAStop) {
  start();
  connect();
  steps(10 * kSecond);
  site_->stop(now_);
  EXPECT_EQ(last().trigger, Trigger::kStop);
}

}  // namespace
}  // namespace margay::control
