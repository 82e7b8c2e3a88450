// SPDX-License-Identifier: Apache-2.0
// The core with streams, limits, reloads, revocation and restarts.
#include <gtest/gtest.h>

#include "control/c_sma/c_sma.h"
#include "tests/unit/control/c_sma/c_sma_rig.h"

namespace margay::c_sma {
namespace {

using control::Trigger;
using northbound::WithdrawReason;
using test::config_of;
using test::CSmaRig;
using test::kBegin;
using test::kUnix;
using test::sci;

// ---- streams

TEST(Streams, ANewerReportOfTheSameIdentityTakesOver_D31) {
  CSmaRig r(config_of(1));
  EXPECT_EQ(r.send(r.next_report(sci(0)), 1), Verdict::kAccepted);
  EXPECT_EQ(r.send(r.next_report(sci(0)), 2), Verdict::kAccepted);  // same epoch, higher sequence
  EXPECT_EQ(r.closed, std::vector<StreamId>{1});
  EXPECT_EQ(r.core.stream_of(sci(0)), 2u);
  control::Report newer = r.next_report(sci(0), {.epoch = 2});
  newer.sequence = 1;
  EXPECT_EQ(r.send(newer, 3), Verdict::kAccepted);
  EXPECT_EQ(r.closed, (std::vector<StreamId>{1, 2}));
}

TEST(Streams, AnOlderReportTakesNothingOver_D31) {
  CSmaRig r(config_of(1));
  const control::Report old = r.next_report(sci(0));
  r.send(r.next_report(sci(0)), 1);
  EXPECT_EQ(r.send(old, 2), Verdict::kRefused);
  EXPECT_EQ(r.reason(), "OLD_SEQUENCE");
  EXPECT_EQ(r.core.stream_of(sci(0)), 1u);
  EXPECT_TRUE(r.closed.empty());
}

TEST(Streams, AnotherIdentityIsTurnedAwayWhileTheStreamLives_D31) {
  CSmaRig r(config_of(1));
  r.send(r.next_report(sci(0)), 1);
  const auto mine = r.peer;
  r.peer = std::make_shared<Peer>(Peer{.identity = "twin", .names = {{sci(0), "ARS"}}});
  EXPECT_EQ(r.send(r.next_report(sci(0)), 2), Verdict::kRefused);
  EXPECT_EQ(r.reason(), "SECOND_STREAM");
  EXPECT_EQ(r.closed, std::vector<StreamId>{2});
  EXPECT_EQ(r.core.explain(sci(0))->last_report->identity, mine->identity);
  r.handle(StreamClosed{1});
  EXPECT_EQ(r.send(r.next_report(sci(0)), 2), Verdict::kAccepted);
  EXPECT_EQ(r.entry(sci(0))->id->identity, "twin");
}

TEST(Streams, AStreamIsOneScis_CSMA33) {
  CSmaRig r(config_of(2));
  r.send(r.next_report(sci(0)), 1);
  EXPECT_EQ(r.send(r.next_report(sci(1)), 1), Verdict::kRefused);
  EXPECT_EQ(r.reason(), "OTHER_CSCI_ID");
  EXPECT_EQ(r.closed, std::vector<StreamId>{1});
}

TEST(Streams, APullsAnswerNeedsNoStream_CSMA31) {
  CSmaRig r(config_of(1));
  r.send(r.next_report(sci(0)), 1);
  EXPECT_EQ(r.send(r.next_report(sci(0)), 0, true), Verdict::kAccepted);
  EXPECT_EQ(r.core.stream_of(sci(0)), 1u);
}

TEST(Streams, RepeatedTakeOversAreAnAlarmAndBackOff_D31) {
  CSmaRig r(config_of(1));
  StreamId stream = 1;
  const auto try_it = [&] {
    const Verdict v = r.send(r.next_report(sci(0)), stream++);
    return v == Verdict::kAccepted;
  };
  EXPECT_TRUE(try_it());
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(try_it());
  EXPECT_EQ(r.audited(AuditKind::kTakeOver), 0u);
  EXPECT_TRUE(try_it());
  EXPECT_EQ(r.audited(AuditKind::kTakeOver), 1u);
  EXPECT_FALSE(try_it());
  EXPECT_EQ(r.reason(), "TAKE_OVER_TOO_OFTEN");
  r.pass(kSecond);
  EXPECT_TRUE(try_it());
  r.pass(kSecond);
  EXPECT_FALSE(try_it());  // two seconds now
  r.pass(kSecond);
  EXPECT_TRUE(try_it());
  r.pass(70 * kSecond);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(try_it());  // calm again
}

TEST(Streams, AnEndedStreamAgesNormally_D39) {
  CSmaRig r(config_of(1));
  r.send(r.next_report(sci(0)), 1);
  r.forget();
  r.handle(StreamClosed{1});
  EXPECT_TRUE(r.commits.empty());
  r.run_for(119 * kSecond);
  EXPECT_EQ(r.state_of(sci(0)), SourceState::kHealthy);
}

// ---- authority

TEST(CSma, RevocationWithdrawsAtOnce_D39) {
  CSmaRig r(config_of(3));
  r.send(r.next_report(sci(2)), 9);
  r.peer = std::make_shared<Peer>(Peer{.identity = "bad", .names = {{sci(0), "ARS"}, {sci(1), "ARS"}}});
  r.send(r.next_report(sci(0)), 1);
  r.send(r.next_report(sci(1)), 2);
  r.forget();
  r.handle(Revoked{"bad"});
  EXPECT_EQ(r.closed, (std::vector<StreamId>{1, 2}));
  ASSERT_EQ(r.commits.size(), 1u);
  EXPECT_TRUE(r.commits[0].critical);
  ASSERT_EQ(r.commits[0].change.withdrawals.size(), 2u);
  EXPECT_EQ(r.commits[0].change.withdrawals[0].reason, WithdrawReason::kRevoked);
  EXPECT_EQ(r.gas("ARS"), 100u);
  EXPECT_EQ(r.audited(AuditKind::kRevoked), 1u);
}

TEST(CSma, EveryRefusalIsAuditedAndAnswered_CSMA17_CSMA193) {
  CSmaRig r(config_of(1));
  r.handle(ReportUnreadable{"host", "x", "no health summary", 5});
  r.send(test::report_of("nobody", "ARS", 3, {}), 5);
  EXPECT_EQ(r.audited(AuditKind::kRefused), 2u);
  EXPECT_EQ(r.audits[0].detail, "UNREADABLE: no health summary");
  EXPECT_EQ(r.audits[1].detail, "NOT_LISTED: the site file lists no such SCI");
  EXPECT_EQ(r.judged[0].reason, "UNREADABLE");
  EXPECT_EQ(r.judged[1].stream, 5u);
  EXPECT_EQ(r.judged[1].sequence, 3u);
  EXPECT_EQ(r.judged[1].received_ms, kUnix);
}

TEST(CSma, AnOperatorResetsAnEpoch_D14) {
  CSmaRig r(config_of(1));
  r.report(sci(0), {.epoch = 1'000'000});
  EXPECT_EQ(r.report(sci(0), {.epoch = 2}), Verdict::kRefused);
  r.handle(EpochReset{sci(0), "root"});
  EXPECT_EQ(r.audited(AuditKind::kOperator), 1u);
  EXPECT_EQ(r.report(sci(0), {.epoch = 2}), Verdict::kAccepted);
}

// ---- limits

TEST(CSma, AnEvictionIsAWithdrawal_CSMA76_D19) {
  CSmaConfig c = config_of(3);
  c.cache.max_entries = 2;
  CSmaRig r(c);
  for (uint32_t i = 0; i < 3; ++i) r.report(sci(i));
  EXPECT_EQ(r.row("ARS", sci(0)), nullptr);
  EXPECT_EQ(r.gas("ARS"), 200u);
  const northbound::Change& change = r.commits.back().change;
  EXPECT_EQ(change.withdrawals.at(0).reason, WithdrawReason::kEvicted);
  EXPECT_EQ(change.rows.size(), 2u);  // the newcomer's and the site's, in the same change
  EXPECT_EQ(r.audited(AuditKind::kEvicted), 1u);
  c.cache.max_entries = 1;
  r.reload(c);
  EXPECT_EQ(r.row("ARS", sci(1)), nullptr);
}

TEST(CSma, ANewcomerWithoutRoomIsRefusedByName_D19) {
  CSmaConfig c = config_of(3);
  c.cache.max_entries = 2;
  c.cache.at_limit = AtLimit::kRefuse;
  CSmaRig r(c);
  for (uint32_t i = 0; i < 3; ++i) r.report(sci(i));
  EXPECT_EQ(r.reason(), "CACHE_FULL");
  c.cache.quota_per_identity = Share{0.5};
  CSmaRig quota(c);
  quota.report(sci(0));
  quota.report(sci(1));
  EXPECT_EQ(quota.reason(), "QUOTA_IDENTITY");
}

// ---- reload

TEST(CSma, AnSciThatIsNotListedAnyMoreIsWithdrawn_CSMA151) {
  CSmaConfig c = config_of(2);
  CSmaRig r(c);
  r.send(r.next_report(sci(0)), 1);
  r.report(sci(1));
  r.forget();
  c.accept.erase(c.accept.begin());
  r.reload(c);
  EXPECT_EQ(r.closed, std::vector<StreamId>{1});
  ASSERT_EQ(r.commits.size(), 1u);
  EXPECT_EQ(r.commits[0].change.withdrawals.at(0).reason, WithdrawReason::kAdmin);
  EXPECT_EQ(r.gas("ARS"), 100u);
  EXPECT_FALSE(r.core.explain(sci(0)));
  c.accept[0].cs_id = "VRS";
  r.reload(c);
  EXPECT_EQ(r.row("ARS"), nullptr);  // nobody serves it here any more
  EXPECT_EQ(r.report(sci(1)), Verdict::kAccepted);
  EXPECT_EQ(r.gas("VRS"), 100u);
}

TEST(CSma, ANewMarginIsAdvertisedAtOnce_CSMA115_CSMA151) {
  CSmaConfig c = config_of(1);
  CSmaRig r(c);
  r.report(sci(0), {.gas = 1000});
  c.transform.safety_margin = Share{0.8};
  r.reload(c);
  EXPECT_EQ(r.gas("ARS"), 800u);
  EXPECT_EQ(r.commits.back().cause, Cause::kPolicy);
  EXPECT_FALSE(r.commits.back().critical);
}

// ---- pulls that fail

TEST(CSma, AFailedPullIsTriedAgainWhileTheSciIsStale_CSMA69) {
  CSmaRig r(config_of(1));
  r.report(sci(0));
  r.run_for(120 * kSecond);
  EXPECT_EQ(r.pulls.size(), 1u);
  r.handle(PullFailed{sci(0), "refused"});
  r.run_for(3 * kSecond);
  EXPECT_EQ(r.pulls.size(), 2u);
  r.report(sci(0));
  r.handle(PullFailed{sci(0), "refused"});
  r.run_for(5 * kSecond);
  EXPECT_EQ(r.pulls.size(), 2u);
  EXPECT_EQ(r.audited(AuditKind::kPullFailed), 2u);
}

TEST(CSma, SourcesThatAreDueTogetherComeInTheOrderThatTheyCame) {
  CSmaRig r(config_of(50));
  for (uint32_t i = 0; i < 50; ++i) r.report(sci(i * 7 % 50));
  r.forget();
  r.run_for(120 * kSecond);
  ASSERT_EQ(r.changes.size(), 50u);
  for (uint32_t i = 0; i < 50; ++i) EXPECT_EQ(r.changes[i].csci_id, sci(i * 7 % 50));
}

TEST(CSma, StaleDecayIsAdvertisedAsItFalls_D27) {
  CSmaConfig c = config_of(3);
  c.cache.stale = Stale::kDecay;
  CSmaRig r(c);
  for (uint32_t i = 0; i < 3; ++i) r.report(sci(i), {.gas = 1000});
  r.run_for(60 * kSecond);
  r.report(sci(1), {.gas = 1000});
  r.report(sci(2), {.gas = 1000});
  r.run_for(65 * kSecond);
  EXPECT_EQ(r.gas("ARS", sci(0)), 500u);
  EXPECT_EQ(r.gas("ARS"), 2500u);
}

// ---- restart

TEST(Restart, AdvertisesTheLastGoodValuesAsRestoredUntilAReportConfirms_D55) {
  CSmaRig before(config_of(2));
  before.report(sci(0), {.gas = 40, .price = 3});
  before.report(sci(1), {.gas = 60});
  before.run_for(5 * kSecond);
  const SavedState saved = before.core.save(before.time());
  EXPECT_EQ(saved.entries.size(), 2u);
  EXPECT_EQ(saved.entries[0].age, 5 * kSecond);

  CSmaRig r(config_of(2), saved, 9000 * kSecond, before.wall + 10'000);
  EXPECT_EQ(r.core.next_due(), 0u);
  r.tick();
  EXPECT_EQ(r.gas("ARS"), 100u);
  EXPECT_TRUE(r.row("ARS")->restored);
  EXPECT_TRUE(r.row("ARS", sci(0))->restored);
  EXPECT_EQ(r.row("ARS", sci(0))->source, SourceState::kActive);
  EXPECT_EQ(r.row("ARS", sci(0))->metrics.price, 3u);
  EXPECT_EQ(r.row("ARS", sci(0))->measured_at, 8985 * kSecond);  // 5 s old then, 10 s away
  EXPECT_EQ(r.commits.at(0).cause, Cause::kRestored);
  EXPECT_TRUE(r.rounds.empty());

  r.sequences = before.sequences;
  r.report(sci(0), {.gas = 40, .price = 3});
  EXPECT_FALSE(r.row("ARS", sci(0))->restored);
  EXPECT_EQ(r.row("ARS", sci(0))->source, SourceState::kHealthy);
  EXPECT_TRUE(r.row("ARS")->restored);
  EXPECT_TRUE(r.rounds.empty());
  r.report(sci(1), {.gas = 60});
  EXPECT_FALSE(r.row("ARS")->restored);
  EXPECT_EQ(r.rounds, std::vector<uint32_t>{0});
}

TEST(Restart, RemembersWhichReportsItHasSeen_D14) {
  CSmaRig before(config_of(1));
  const control::Report seen = before.next_report(sci(0));
  before.send(seen);
  CSmaRig r(config_of(1), before.core.save(before.time()));
  EXPECT_EQ(r.send(seen), Verdict::kRefused);
  EXPECT_EQ(r.reason(), "DUPLICATE");
}

TEST(Restart, TheFirstRoundWaitsAtMostForTheLongestInterval_D55) {
  CSmaRig before(config_of(3));
  before.report(sci(0), {.interval = 20 * kSecond});
  before.report(sci(1), {.interval = 30 * kSecond});
  before.report(sci(2), {.interval = 30 * kSecond});
  CSmaRig r(config_of(3), before.core.save(before.time()));
  r.sequences = before.sequences;
  r.report(sci(1));
  r.run_for(30 * kSecond - 1);
  EXPECT_TRUE(r.rounds.empty());
  EXPECT_FALSE(r.core.first_round_over());
  r.run_for(1);
  EXPECT_EQ(r.rounds, std::vector<uint32_t>{2});

  CSmaConfig c = config_of(3);
  c.cache.ttl_gas = 7 * kSecond;  // never longer than the TTL
  CSmaRig short_ttl(c, before.core.save(before.time()));
  short_ttl.run_for(7 * kSecond);
  EXPECT_EQ(short_ttl.rounds, std::vector<uint32_t>{3});
}

TEST(Restart, WithoutAStateTheFirstRoundIsOverAtOnce_D55) {
  CSmaRig r(config_of(3));
  r.tick();
  EXPECT_EQ(r.rounds, std::vector<uint32_t>{0});
  r.report(sci(0));
  EXPECT_EQ(r.rounds.size(), 1u);
}

TEST(Restart, ARestoredSciThatNeverReportsFailsLikeAnother_CSMA163) {
  CSmaRig before(config_of(1));
  before.report(sci(0));
  CSmaRig r(config_of(1), before.core.save(before.time()));
  r.run_for(130 * kSecond - 1);
  EXPECT_EQ(r.gas("ARS"), 100u);
  r.run_for(1);
  EXPECT_EQ(r.row("ARS", sci(0)), nullptr);
}

TEST(Restart, ValuesThatWouldHaveFailedAreNotAdvertisedAgain_D55) {
  for (const int64_t away_ms : {130'000, 130'001}) {
    CSmaRig before(config_of(1));
    before.report(sci(0));
    CSmaRig r(config_of(1), before.core.save(before.time()), kBegin, before.wall + away_ms);
    r.tick();
    EXPECT_EQ(r.gas("ARS").has_value(), away_ms == 130'000);
    EXPECT_TRUE(r.rounds.empty());  // it is awaited all the same
  }
}

TEST(Restart, SciThatTheSiteFileDoesNotListAreNotRestored_CSMA187) {
  CSmaRig before(config_of(2));
  before.report(sci(0));
  before.report(sci(1));
  CSmaConfig c = config_of(1);
  c.accept[0].cs_id = "VRS";
  CSmaRig r(c, before.core.save(before.time()));
  r.tick();
  EXPECT_TRUE(r.table.empty());
  EXPECT_EQ(r.rounds, std::vector<uint32_t>{0});
}

TEST(CSma, ExplainsFromReportToRow) {
  CSmaConfig c = config_of(1);
  c.transform.safety_margin = Share{0.5};
  CSmaRig r(c);
  EXPECT_FALSE(r.core.explain("nobody"));
  EXPECT_FALSE(r.core.explain(sci(0))->last_report);
  r.report(sci(0), {.gas = 100});
  r.report(sci(0), {.gas = 300});
  const auto e = r.core.explain(sci(0));
  EXPECT_EQ(e->last_report->gas, 300u);
  EXPECT_EQ(e->last_report->judgement.verdict, Verdict::kQuarantined);
  EXPECT_EQ(e->last_report->judgement.detail, "GAS from 100 to 300");
  EXPECT_EQ(e->entry->metrics.gas, 100u);
  EXPECT_EQ(e->waiting->report.state.gas->value, 300u);
  EXPECT_EQ(e->row->steps.raw, 100u);
  EXPECT_EQ(e->row->steps.with_margin, 50u);
  EXPECT_EQ(e->row->committed->metrics.gas, 50u);
  EXPECT_EQ(e->row->cause, Cause::kDiscovery);
  EXPECT_EQ(e->site->committed->metrics.gas, 50u);
}

}  // namespace
}  // namespace margay::c_sma
