// SPDX-License-Identifier: Apache-2.0
#include "control/c_sma/update_controller.h"

#include <gtest/gtest.h>

#include "control/c_sma/phase.h"
#include "tests/unit/control/c_sma/c_sma_rig.h"

namespace margay::c_sma {
namespace {

using northbound::Row;
using northbound::SourceState;
using northbound::WithdrawReason;
using test::config_of;
using test::kBegin;
using test::kDeadOne;
using test::kHealthyOne;
using test::sci;

Contribution giving(std::optional<uint32_t> gas, std::optional<uint32_t> time = 100,
                    HealthSummary health = kHealthyOne) {
  return {.metrics = {.gas = gas, .computing_time_ms = time}, .health = health};
}

struct UpdateRig {
  explicit UpdateRig(CSmaConfig c = config_of(10)) : config(std::move(c)), updates(config, kBegin) {}

  // What goes out when the SCI says this.
  std::vector<UpdateController::Commit> say(uint32_t i, const Contribution& c,
                                            SourceState source = SourceState::kHealthy) {
    updates.set(sci(i), "ARS", source, c);
    return updates.flush(now);
  }
  // The cause of the one change, NONE where none is made.
  std::string_view cause(uint32_t i, const Contribution& c, SourceState source = SourceState::kHealthy) {
    const auto commits = say(i, c, source);
    return commits.empty() ? "NONE" : name_of(commits.at(0).cause);
  }

  CSmaConfig config;
  UpdateController updates;
  Nanoseconds now = kBegin;
};
// One SCI that said this last.
UpdateRig after(const Contribution& c, const CSmaConfig& config = config_of(10)) {
  UpdateRig r(config);
  r.say(0, c);
  return r;
}

TEST(UpdateController, ADiscoveryCommitsItsRowAndTheSiteRow_CSMA150_D36) {
  UpdateRig r;
  Contribution c{.metrics = {.gas = 400,
                             .computing_time_ms = 5,
                             .computing_time_minimum_ms = 4,
                             .computing_time_maximum_ms = 6,
                             .price = 1,
                             .reputation = 2,
                             .security_level = 3},
                 .health = {2, 1, 0, 0},
                 .measured_at = 77};
  const auto commits = r.say(0, c);
  ASSERT_EQ(commits.size(), 1u);
  EXPECT_EQ(commits[0].cause, Cause::kDiscovery);
  EXPECT_EQ(commits[0].change.cs_id, "ARS");
  Row expected{.key = {"ARS", sci(0)},
               .metrics = c.metrics,
               .health = c.health,
               .sci_health = HealthState::kHealthy,
               .source = SourceState::kHealthy,
               .measured_at = 77,
               .valid_for = 180 * kSecond};
  ASSERT_EQ(commits[0].change.rows.size(), 2u);
  EXPECT_EQ(commits[0].change.rows[0], expected);
  expected.key.csci_id.reset();
  expected.source.reset();
  expected.scis = 1;
  EXPECT_EQ(commits[0].change.rows[1], expected);
}

TEST(UpdateController, GasMovesByMoreThanTenPercentOrMoreThan50_CSMA119_CSMA148_D48) {
  EXPECT_EQ(after(giving(100)).cause(0, giving(110)), "NONE");
  EXPECT_EQ(after(giving(100)).cause(0, giving(111)), "THRESHOLD");
  EXPECT_EQ(after(giving(100)).cause(0, giving(90)), "NONE");
  EXPECT_EQ(after(giving(100)).cause(0, giving(89)), "THRESHOLD");
  EXPECT_EQ(after(giving(1000)).cause(0, giving(1050)), "NONE");
  EXPECT_EQ(after(giving(1000)).cause(0, giving(1051)), "THRESHOLD");
}

TEST(UpdateController, GasBaseZeroAnyChange_NeverBelowOneSlot_D37_D48) {
  EXPECT_EQ(after(giving(0)).cause(0, giving(1)), "THRESHOLD");
  EXPECT_EQ(after(giving(10)).cause(0, giving(11)), "NONE");
  EXPECT_EQ(after(giving(9)).cause(0, giving(10)), "THRESHOLD");
  EXPECT_EQ(after(giving(5)).cause(0, giving({})), "THRESHOLD");  // absent is not 0
}

TEST(UpdateController, ComputingTimeMovesByMoreThanTwentyPercent_CSMA120_D48) {
  EXPECT_EQ(after(giving(50, 100)).cause(0, giving(50, 120)), "NONE");
  EXPECT_EQ(after(giving(50, 100)).cause(0, giving(50, 121)), "THRESHOLD");
  EXPECT_EQ(after(giving(50, 100)).cause(0, giving(50, 80)), "NONE");
  EXPECT_EQ(after(giving(50, 100)).cause(0, giving(50, 79)), "THRESHOLD");
}

TEST(UpdateController, ComparesWithWhatWasCommittedLast_CSMA148) {
  UpdateRig r = after(giving(1000));
  EXPECT_EQ(r.cause(0, giving(1030)), "NONE");
  EXPECT_EQ(r.cause(0, giving(1060)), "THRESHOLD");
  EXPECT_EQ(r.cause(0, giving(1100)), "NONE");
}

TEST(UpdateController, ThresholdsAreConfigurable_CSMA123) {
  CSmaConfig c = config_of(10);
  c.updates.gas_change = Share{0.5};
  c.updates.gas_absolute = 400;
  c.updates.computing_time_change = Share{0.01};
  EXPECT_EQ(after(giving(1000), c).cause(0, giving(1400)), "NONE");
  EXPECT_EQ(after(giving(1000), c).cause(0, giving(1401)), "THRESHOLD");
  EXPECT_EQ(after(giving(1000, 100), c).cause(0, giving(1000, 102)), "THRESHOLD");
}

TEST(UpdateController, TheSiteRowHasThresholdsOfItsOwn_CSMA148) {
  UpdateRig r;
  for (uint32_t i = 0; i < 6; ++i) r.say(i, giving(1000));
  for (uint32_t i = 0; i < 1; ++i) EXPECT_EQ(r.cause(i, giving(970)), "NONE");  // site 6000 -> 5970
  const auto commits = r.say(1, giving(970));                                   // 60 fewer than committed
  ASSERT_EQ(commits.size(), 1u);
  EXPECT_EQ(commits[0].cause, Cause::kThreshold);
  ASSERT_EQ(commits[0].change.rows.size(), 2u);
  EXPECT_EQ(commits[0].change.rows[1].metrics.gas, 5940u);
}

TEST(UpdateController, AnSciRowsThresholdTakesTheSiteRowWithIt_D36) {
  UpdateRig r;
  for (uint32_t i = 0; i < 6; ++i) r.say(i, giving(1000));
  r.say(6, giving(10));
  const auto commits = r.say(6, giving(5));
  ASSERT_EQ(commits.size(), 1u);
  ASSERT_EQ(commits[0].change.rows.size(), 2u);
  EXPECT_EQ(commits[0].change.rows[1].metrics.gas, 6005u);
}

TEST(UpdateController, AnyCountOfTheHealthSummaryIsCritical_CSMA121_CSMA149_CSMA152_D34) {
  const HealthSummary before{5, 2, 2, 1};
  for (const HealthSummary& h : {HealthSummary{4, 2, 2, 1}, {5, 3, 2, 1}, {5, 2, 1, 1}, {5, 2, 2, 2}}) {
    EXPECT_EQ(after(giving(100, 100, before)).cause(0, giving(100, 100, h)), "HEALTH");
  }
  EXPECT_TRUE(critical(Cause::kHealth));
  EXPECT_FALSE(critical(Cause::kThreshold));
}

TEST(UpdateController, SourceAndAdministrativeStateAreCritical_CSMA82_D34) {
  EXPECT_EQ(after(giving(100)).cause(0, giving(100), SourceState::kStale), "SOURCE");
  Contribution draining = giving(0);
  draining.admin = Admin::kDraining;
  EXPECT_EQ(after(giving(100)).cause(0, draining), "ADMIN");
  for (const Cause c : {Cause::kSource, Cause::kAdmin, Cause::kSecurity, Cause::kWithdrawal, Cause::kConsistency}) {
    EXPECT_TRUE(critical(c));
  }
}

TEST(UpdateController, SecurityLevelPriceAndReputationGoWithAnyChange_CSMA122_D20) {
  Contribution c = giving(100);
  c.metrics.security_level = 5;
  c.metrics.price = 5;
  c.metrics.reputation = 5;
  Contribution other = c;
  other.metrics.security_level = 6;
  EXPECT_EQ(after(c).cause(0, other), "SECURITY_LEVEL");
  EXPECT_FALSE(critical(Cause::kSecurityLevel));
  other = c;
  other.metrics.price = 6;
  EXPECT_EQ(after(c).cause(0, other), "THRESHOLD");
  other = c;
  other.metrics.reputation = 4;
  EXPECT_EQ(after(c).cause(0, other), "THRESHOLD");
}

TEST(UpdateController, ASecurityEventSendsWhatDiffersAtOnce_D34) {
  UpdateRig r = after(giving(100));
  r.updates.set(sci(0), "ARS", SourceState::kHealthy, giving(101));
  r.updates.urge(sci(0), Cause::kSecurity);
  const auto commits = r.updates.flush(r.now);
  ASSERT_EQ(commits.size(), 1u);
  EXPECT_EQ(commits[0].cause, Cause::kSecurity);
  EXPECT_EQ(commits[0].change.rows[0].metrics.gas, 101u);
}

TEST(UpdateController, AWithdrawalAndTheSiteRowAreOneChange_D1_CSMA89) {
  UpdateRig r = after(giving(100));
  r.say(1, giving(40));
  r.updates.withdraw(sci(0), WithdrawReason::kFailed);
  const auto commits = r.updates.flush(r.now);
  ASSERT_EQ(commits.size(), 1u);
  EXPECT_EQ(commits[0].cause, Cause::kWithdrawal);
  const northbound::Change& change = commits[0].change;
  ASSERT_EQ(change.withdrawals.size(), 1u);
  EXPECT_EQ(change.withdrawals[0], (northbound::Withdrawal{.key = {"ARS", sci(0)}, .reason = WithdrawReason::kFailed}));
  ASSERT_EQ(change.rows.size(), 1u);
  EXPECT_FALSE(change.rows[0].key.csci_id);
  EXPECT_EQ(change.rows[0].metrics.gas, 40u);
  EXPECT_EQ(change.rows[0].scis, 1u);
  r.updates.withdraw(sci(0), WithdrawReason::kFailed);
  EXPECT_TRUE(r.updates.flush(r.now).empty());
}

TEST(UpdateController, ALastWithdrawalLeavesASiteRowWithoutSlots_D1) {
  UpdateRig r = after(giving(100));
  r.updates.withdraw(sci(0), WithdrawReason::kDeregistered);
  const auto commits = r.updates.flush(r.now);
  const Row& site = commits.at(0).change.rows.at(0);
  EXPECT_EQ(site.metrics, (northbound::Metrics{.gas = 0}));
  EXPECT_EQ(site.scis, 0u);
  EXPECT_EQ(site.sci_health, HealthState::kUnhealthy);
}

TEST(UpdateController, AdvertiseDecidesWhichRowsThereAre_D40) {
  CSmaConfig c = config_of(3);
  c.updates.advertise = Advertise::kPerSci;
  UpdateRig scis(c);
  auto commits = scis.say(0, giving(100));
  ASSERT_EQ(commits.at(0).change.rows.size(), 1u);
  EXPECT_EQ(commits[0].change.rows[0].key.csci_id, sci(0));
  scis.updates.withdraw(sci(0), WithdrawReason::kFailed);
  commits = scis.updates.flush(kBegin);
  EXPECT_TRUE(commits.at(0).change.rows.empty());
  EXPECT_EQ(commits[0].change.withdrawals.size(), 1u);

  c.updates.advertise = Advertise::kPerSite;
  UpdateRig site(c);
  commits = site.say(0, giving(100));
  ASSERT_EQ(commits.at(0).change.rows.size(), 1u);
  EXPECT_FALSE(commits[0].change.rows[0].key.csci_id);
  site.updates.withdraw(sci(0), WithdrawReason::kFailed);
  commits = site.updates.flush(kBegin);
  EXPECT_EQ(commits.at(0).change.rows.size(), 1u);
  EXPECT_TRUE(commits[0].change.withdrawals.empty());
}

TEST(UpdateController, AnotherAdvertiseTakesBackTheRowsThatAreNoMore_D40_CSMA151) {
  UpdateRig r = after(giving(100));
  r.config.updates.advertise = Advertise::kPerSite;
  r.updates.configure(r.config, r.now);
  auto commits = r.updates.flush(r.now);
  ASSERT_EQ(commits.at(0).change.withdrawals.size(), 1u);
  EXPECT_EQ(commits[0].change.withdrawals[0].reason, WithdrawReason::kAdmin);
  r.config.updates.advertise = Advertise::kPerSci;
  r.updates.configure(r.config, r.now);
  commits = r.updates.flush(r.now);
  ASSERT_EQ(commits.at(0).change.rows.size(), 1u);
  EXPECT_EQ(commits[0].change.rows[0].key.csci_id, sci(0));
  ASSERT_EQ(commits[0].change.withdrawals.size(), 1u);
  EXPECT_FALSE(commits[0].change.withdrawals[0].key.csci_id);
}

TEST(UpdateController, APolicyIsAppliedToAllRowsAtOnce_CSMA151) {
  UpdateRig r = after(giving(100));
  r.say(1, giving(200));
  r.updates.configure(r.config, r.now);
  EXPECT_TRUE(r.updates.flush(r.now).empty());  // nothing differs
  r.config.transform.safety_margin = Share{0.99};
  r.updates.configure(r.config, r.now);
  const auto commits = r.updates.flush(r.now);
  ASSERT_EQ(commits.size(), 1u);
  EXPECT_EQ(commits[0].cause, Cause::kPolicy);
  ASSERT_EQ(commits[0].change.rows.size(), 3u);
  EXPECT_EQ(commits[0].change.rows[0].metrics.gas, 99u);
  EXPECT_EQ(commits[0].change.rows[2].metrics.gas, 297u);
}

TEST(UpdateController, AServiceThatNobodyListsLosesItsSiteRow_CSMA151) {
  UpdateRig r = after(giving(100));
  r.config.accept.clear();
  r.updates.configure(r.config, r.now);
  r.updates.withdraw(sci(0), WithdrawReason::kAdmin);
  const auto commits = r.updates.flush(r.now);
  ASSERT_EQ(commits.size(), 1u);
  EXPECT_TRUE(commits[0].change.rows.empty());
  EXPECT_EQ(commits[0].change.withdrawals.size(), 2u);
}

TEST(UpdateController, EachHeartbeatCommitsWhateverDiffers_CSMA124_CSMA153_D12) {
  UpdateRig r = after(giving(1000));
  Contribution measured = giving(1000);
  const Nanoseconds first = r.updates.next_due();
  EXPECT_GT(first, kBegin);
  EXPECT_LE(first, kBegin + 60 * kSecond);
  r.now = first;
  EXPECT_TRUE(r.updates.flush(r.now).empty());  // nothing differs
  EXPECT_EQ(r.updates.next_due(), first + 60 * kSecond);
  r.now = first + 30 * kSecond;
  measured.measured_at = r.now;
  measured.metrics.gas = 1001;
  EXPECT_EQ(r.cause(0, measured), "NONE");
  r.now = first + 60 * kSecond;
  auto commits = r.updates.flush(r.now);
  ASSERT_EQ(commits.size(), 1u);
  EXPECT_EQ(commits[0].cause, Cause::kHeartbeat);
  EXPECT_FALSE(critical(commits[0].cause));
  ASSERT_EQ(commits[0].change.rows.size(), 2u);
  EXPECT_EQ(commits[0].change.rows[0].metrics.gas, 1001u);
  // Measured anew with the same result: the age differs.
  measured.measured_at = r.now;
  EXPECT_EQ(r.cause(0, measured), "NONE");
  r.now += 60 * kSecond;
  commits = r.updates.flush(r.now);
  EXPECT_EQ(commits.at(0).change.rows.at(0).measured_at, first + 60 * kSecond);
}

TEST(UpdateController, HeartbeatIsConfigurableAndHasAPhaseOfItsOwn_CSMA127_CSMA155_D30) {
  CSmaConfig c = config_of(1);
  c.updates.heartbeat = 10 * kSecond;
  UpdateRig r(c);
  EXPECT_EQ(r.updates.next_due(), kBegin + 1 + phase_of("c-sma", 10 * kSecond));
  c.identity = "another";
  EXPECT_NE(UpdateRig(c).updates.next_due(), r.updates.next_due());
  r.now = kBegin + 1000 * kSecond;  // one, not one for each missed
  r.updates.flush(r.now);
  EXPECT_GT(r.updates.next_due(), r.now);
  EXPECT_LE(r.updates.next_due(), r.now + 10 * kSecond);
  c.updates.heartbeat = kSecond;
  r.updates.configure(c, r.now);
  EXPECT_LE(r.updates.next_due(), r.now + kSecond);
}

TEST(UpdateController, ValidForIsConfigurable_D41) {
  CSmaConfig c = config_of(1);
  c.updates.valid_for = 7 * kSecond;
  EXPECT_EQ(UpdateRig(c).say(0, giving(1)).at(0).change.rows.at(0).valid_for, 7 * kSecond);
}

TEST(UpdateController, SmoothingTouchesSiteRows_SciRowsWhereThoseAreAlone_D49) {
  for (const Advertise advertise : {Advertise::kBoth, Advertise::kPerSci}) {
    CSmaConfig c = config_of(1);
    c.updates.advertise = advertise;
    c.transform.gas_smoothing = Smoothing{};
    UpdateRig r = after(giving(100), c);
    r.now += 5 * kSecond;
    const auto commits = r.say(0, giving(200));
    EXPECT_EQ(commits.at(0).change.rows.at(0).metrics.gas, advertise == Advertise::kBoth ? 200u : 130u);
    EXPECT_EQ(commits[0].change.rows.back().metrics.gas, 130u);
  }
}

TEST(UpdateController, SmoothingBeginsAnewWhenHealthChanges_D35) {
  CSmaConfig c = config_of(2);
  c.transform.gas_smoothing = Smoothing{};
  UpdateRig r = after(giving(100, 100, {1, 1, 0, 0}), c);
  r.now += kSecond;
  EXPECT_EQ(r.say(0, giving(200, 100, {2, 0, 0, 0})).at(0).change.rows.at(1).metrics.gas, 200u);
  r.now += kSecond;
  EXPECT_EQ(r.say(0, giving(0, {}, kDeadOne)).at(0).change.rows.at(1).metrics.gas, 0u);
}

TEST(UpdateController, ExplainsAndMovesNothing) {
  CSmaConfig c = config_of(2);
  c.transform.gas_smoothing = Smoothing{};
  c.transform.safety_margin = Share{0.5};
  UpdateRig r = after(giving(100), c);
  for (int i = 0; i < 3; ++i) {
    const auto site = r.updates.explain_site("ARS", r.now + 5 * kSecond);
    EXPECT_EQ(site->steps.raw, 100u);
    EXPECT_EQ(site->steps.with_margin, 50u);
    EXPECT_EQ(site->committed->metrics.gas, 50u);
    EXPECT_EQ(site->cause, Cause::kDiscovery);
    EXPECT_EQ(site->at, kBegin);
  }
  EXPECT_EQ(r.updates.explain(sci(0), r.now)->steps.raw, 100u);
  EXPECT_FALSE(r.updates.explain("nobody", r.now));
  EXPECT_FALSE(r.updates.explain_site("nothing", r.now));
}

}  // namespace
}  // namespace margay::c_sma
