// SPDX-License-Identifier: Apache-2.0
// What a C-SMA's side sends, and when.
#include <gtest/gtest.h>

#include "control/northbound/core/sender_session.h"
#include "tests/unit/control/northbound/rig.h"

namespace margay::northbound {
namespace {

using test::at;
using test::gone;
using test::kStart;
using test::sci_row;
using test::SenderRig;
using test::site_row;

struct UpdatesTest : testing::Test {
  UpdatesTest() { rig.settle(kStart); }
  void routine(Nanoseconds now, uint32_t gas = 1) { rig.commit({"ARS", {site_row("ARS", gas)}}, false, now); }
  void critical(Nanoseconds now) { rig.commit({"ARS", {site_row("ARS")}}, true, now); }
  bool sends(Nanoseconds now) { return rig.c_ps.next_of<Batch>(now).has_value(); }
  // Heartbeats out of the way.
  static SenderConfig config(SenderConfig c = SenderRig::config({"ARS", "LLMS"})) {
    c.heartbeat = 100'000 * kSecond;
    return c;
  }
  SenderRig rig{config()};
};

TEST_F(UpdatesTest, CriticalLeavesAtOnce) {  // D-50: within 100 ms; CSMA-149
  critical(kStart);
  EXPECT_LE(rig.sender.next_due(rig.store), kStart);
  EXPECT_TRUE(sends(kStart));
  EXPECT_FALSE(sends(kStart));
}

TEST_F(UpdatesTest, RoutineGathersForASecond) {  // D-50
  routine(kStart, 1);
  EXPECT_EQ(rig.sender.next_due(rig.store), kStart + kSecond);
  routine(kStart + 900 * kMillisecond, 2);
  EXPECT_FALSE(sends(kStart + kSecond - 1));
  const auto batch = rig.c_ps.next_of<Batch>(kStart + kSecond);
  ASSERT_TRUE(batch);
  ASSERT_EQ(batch->deltas.size(), 1u);
  ASSERT_EQ(batch->deltas[0].change.rows.size(), 1u);  // they met
  EXPECT_EQ(batch->deltas[0].change.rows[0].metrics.gas, 2u);
}

TEST_F(UpdatesTest, RoutineOfACsIdKeepsItsMinimumInterval) {  // CSMA-125, D-50
  routine(kStart);
  EXPECT_TRUE(sends(kStart + kSecond));
  routine(kStart + kSecond);
  rig.commit({"LLMS", {site_row("LLMS")}}, false, kStart + kSecond);
  const auto other = rig.c_ps.next_of<Batch>(kStart + 2 * kSecond);  // has an interval of its own
  ASSERT_TRUE(other);
  EXPECT_EQ(other->deltas.at(0).change.cs_id, "LLMS");
  EXPECT_EQ(rig.sender.next_due(rig.store), kStart + 6 * kSecond);
  EXPECT_FALSE(sends(kStart + 6 * kSecond - 1));
  EXPECT_TRUE(sends(kStart + 6 * kSecond));
}

TEST_F(UpdatesTest, CriticalNeitherWaitsForTheIntervalNorResetsIt) {  // D-11, D-50
  routine(kStart);
  EXPECT_TRUE(sends(kStart + kSecond));
  critical(kStart + 2 * kSecond);
  EXPECT_TRUE(sends(kStart + 2 * kSecond));
  routine(kStart + 3 * kSecond);
  EXPECT_FALSE(sends(kStart + 6 * kSecond - 1));
  EXPECT_TRUE(sends(kStart + 6 * kSecond));
}

TEST_F(UpdatesTest, CriticalGoesBeforeRoutine) {  // CSMA-152
  rig.commit({"ARS", {site_row("ARS")}}, false, kStart);
  rig.commit({"LLMS", {site_row("LLMS")}}, true, kStart + 2 * kSecond);
  const auto first = rig.c_ps.next_of<Batch>(kStart + 2 * kSecond);
  const auto second = rig.c_ps.next_of<Batch>(kStart + 2 * kSecond);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->deltas.at(0).change.cs_id, "LLMS");
  EXPECT_EQ(second->deltas.at(0).change.cs_id, "ARS");
}

TEST_F(UpdatesTest, CriticalBeyondItsBucketMeetsAndLeavesWithTheNextToken) {  // CSMA-128, D-11: 100, then 50 a second
  for (int i = 0; i < 100; ++i) {
    critical(kStart);
    ASSERT_TRUE(sends(kStart)) << i;
  }
  critical(kStart);
  critical(kStart);
  EXPECT_FALSE(sends(kStart));
  EXPECT_EQ(rig.sender.next_due(rig.store), kStart + 20 * kMillisecond);
  const auto batch = rig.c_ps.next_of<Batch>(kStart + 20 * kMillisecond);
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->deltas[0].change.rows.at(0).version, rig.store.newest());  // nothing is lost
  EXPECT_FALSE(sends(kStart + 20 * kMillisecond));
}

TEST_F(UpdatesTest, RoutineBeyondItsBucketWaitsAndLeavesCriticalItsOwn) {  // CSMA-128: 20, then 10 a second
  SenderConfig c = config();
  c.minimum_interval = c.gather = 0;
  SenderRig fast(c);
  fast.settle(kStart);  // the snapshot took one
  int sent = 0;
  for (int i = 0; i < 50; ++i) {
    fast.commit({"ARS", {site_row("ARS")}}, false, kStart);
    sent += fast.c_ps.next_of<Batch>(kStart) ? 1 : 0;
  }
  EXPECT_EQ(sent, 19);
  EXPECT_EQ(fast.sender.next_due(fast.store), kStart + 100 * kMillisecond);
  fast.commit({"LLMS", {site_row("LLMS")}}, true, kStart);
  EXPECT_TRUE(fast.c_ps.next_of<Batch>(kStart));
}

TEST_F(UpdatesTest, SeveralCsIdsShareAMessage) {  // CSMA-182
  rig.commit({"ARS", {site_row("ARS")}}, false, kStart);
  rig.commit({"LLMS", {site_row("LLMS")}}, false, kStart);
  const auto batch = rig.c_ps.next_of<Batch>(kStart + kSecond);
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->deltas.size(), 2u);
}

// D-1, D-40: the withdrawal was committed with a site row that has changed since.
TEST_F(UpdatesTest, AWithdrawalCarriesTheSiteRowAsItIs) {
  rig.commit({"ARS", {sci_row("ARS", "x"), sci_row("ARS", "y"), site_row("ARS", 200)}}, true, kStart);
  EXPECT_TRUE(sends(kStart));
  rig.commit({"ARS", {}, {gone("ARS", "x")}}, true, kStart);  // a change without one
  const auto batch = rig.c_ps.next_of<Batch>(kStart);
  ASSERT_TRUE(batch);
  const Change& change = batch->deltas.at(0).change;
  EXPECT_EQ(change.withdrawals.at(0).reason, WithdrawReason::kFailed);
  ASSERT_EQ(change.rows.size(), 1u);
  EXPECT_EQ(change.rows[0].key, RowKey{"ARS"});
  EXPECT_EQ(change.rows[0].metrics.gas, 200u);
}

// A delta is applied as one, so what does not fit one message becomes a snapshot of that CS-ID.
TEST_F(UpdatesTest, ADeltaBeyondTheSizeLimitBecomesASnapshot) {
  for (int i = 0; i < 1000; ++i) {  // 1000 x 224 bytes and more do not fit 64 KiB
    rig.commit({"ARS", {sci_row("ARS", "sci-" + std::to_string(i))}}, false, kStart);
  }
  rig.commit({"LLMS", {site_row("LLMS")}}, false, kStart);
  const std::vector<Message> all = rig.drain(kStart + kSecond);
  ASSERT_GE(all.size(), 4u);
  EXPECT_EQ(std::get<Batch>(all[0].body).deltas.at(0).change.cs_id, "LLMS");
  const auto& begin = std::get<SnapshotBegin>(all[1].body);
  EXPECT_EQ(begin.cs_ids, std::vector<std::string>{"ARS"});
  EXPECT_EQ(begin.rows, 1000u);
  size_t rows = 0;
  Digest digest;
  for (size_t i = 2; i + 1 < all.size(); ++i) {
    const auto& chunk = std::get<SnapshotChunk>(all[i].body);
    size_t size = kEnvelopeSize;
    for (const Row& row : chunk.rows) {
      size += size_of(row);
      digest += digest_of(row.key, row.version);
    }
    EXPECT_LE(size, kSizeLimitMin);
    rows += chunk.rows.size();
  }
  EXPECT_EQ(rows, 1000u);
  EXPECT_EQ(std::get<SnapshotEnd>(all.back().body).digest, digest);
}

TEST_F(UpdatesTest, AStandingSessionBelowTheLowWaterGetsASnapshot) {
  SenderRig few(config(), 2);
  few.settle(kStart);
  for (const char* id : {"a", "b", "c"}) few.commit({"ARS", {}, {gone("ARS", id)}}, true, kStart);
  const auto begin = few.c_ps.next_of<SnapshotBegin>(kStart);
  ASSERT_TRUE(begin);
  EXPECT_EQ(begin->cs_ids, std::vector<std::string>{"ARS"});
}

// D-55: no end marker, and so no deletion, before a first collection round; what this epoch committed goes.
TEST(SenderSnapshot, WaitsForTheFirstRound) {
  SenderRig rig(UpdatesTest::config(SenderRig::config({"ARS"})));
  (void)rig.c_ps.begin(rig.c_ps.hello(), kStart);
  EXPECT_FALSE(rig.c_ps.next(kStart));
  rig.commit({"ARS", {sci_row("ARS", "x")}}, true, kStart);
  const auto batch = rig.c_ps.next_of<Batch>(kStart);
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->deltas.at(0).after, (RowVersion{7, 0}));
  EXPECT_FALSE(rig.c_ps.next(kStart + 10 * kSecond));
  rig.store.end_first_round();
  EXPECT_TRUE(rig.c_ps.next_of<SnapshotBegin>(kStart + 10 * kSecond));
}

// A change while a snapshot is on its way goes between its messages, and does not wait for it.
TEST(SenderSnapshot, CriticalGoesBetweenItsChunks) {
  SenderRig rig(UpdatesTest::config(SenderRig::config({"ARS"})));
  for (int i = 0; i < 1000; ++i) rig.commit({"ARS", {sci_row("ARS", "sci-" + std::to_string(i))}}, false, 0);
  rig.store.end_first_round();
  (void)rig.c_ps.begin(rig.c_ps.hello(), kStart);
  const auto begin = rig.c_ps.next_of<SnapshotBegin>(kStart);
  ASSERT_TRUE(begin);
  EXPECT_TRUE(rig.c_ps.next_of<SnapshotChunk>(kStart));
  rig.commit({"ARS", {}, {gone("ARS", "sci-999")}}, true, kStart);
  const auto batch = rig.c_ps.next_of<Batch>(kStart);
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->deltas.at(0).after, begin->version);
  EXPECT_EQ(batch->deltas.at(0).through, (RowVersion{7, 1001}));
  EXPECT_TRUE(rig.c_ps.next_of<SnapshotChunk>(kStart));
}

struct HeartbeatTest : testing::Test {
  HeartbeatTest() {
    rig.commit({"ARS", {sci_row("ARS", "x")}}, false, 0);
    rig.settle(kStart);
  }
  SenderRig rig{SenderRig::config({"ARS", "LLMS"})};
};

// CSMA-153..155, D-30
TEST_F(HeartbeatTest, OneViewACsIdEachHeartbeat) {
  const Nanoseconds first = rig.sender.next_due(rig.store);
  EXPECT_GE(first, kStart);
  EXPECT_LT(first, kStart + 60 * kSecond);
  for (int beat = 0; beat < 3; ++beat) {
    const Nanoseconds now = first + static_cast<Nanoseconds>(beat) * 60 * kSecond;
    EXPECT_FALSE(rig.c_ps.next(now - 1));
    const auto keepalive = rig.c_ps.next_of<Keepalive>(now);
    ASSERT_TRUE(keepalive);
    ASSERT_EQ(keepalive->views.size(), 2u);
    EXPECT_EQ(keepalive->views[0].position, (Position{"ARS", {7, 1}}));
    EXPECT_EQ(*keepalive->views[0].check, (View::Check{1, digest_of(RowKey{"ARS", "x"}, {7, 1})}));
    EXPECT_EQ(*keepalive->views[1].check, (View::Check{0, {}}));
    EXPECT_FALSE(rig.c_ps.next(now));
  }
}

// CSMA-124: what waits for its interval goes with the heartbeat, so that the view is of what the C-PS has.
TEST_F(HeartbeatTest, WhatWaitsGoesFirst) {
  const Nanoseconds first = rig.sender.next_due(rig.store);
  rig.commit({"ARS", {sci_row("ARS", "y")}}, false, first - 1);
  EXPECT_TRUE(rig.c_ps.next_of<Batch>(first));
  const auto keepalive = rig.c_ps.next_of<Keepalive>(first);
  ASSERT_TRUE(keepalive);
  EXPECT_EQ(keepalive->views[0].position.through, (RowVersion{7, 2}));
  EXPECT_EQ(keepalive->views[0].check->rows, 2u);
}

// Between the two something changed: that is not compared.
TEST_F(HeartbeatTest, NoCheckOfWhatIsNotSent) {
  const Nanoseconds first = rig.sender.next_due(rig.store);
  rig.commit({"ARS", {sci_row("ARS", "y")}}, false, first - 1);
  EXPECT_TRUE(rig.c_ps.next_of<Batch>(first));
  rig.commit({"ARS", {sci_row("ARS", "z")}}, false, first + 1);
  const auto keepalive = rig.c_ps.next_of<Keepalive>(first + 1);
  ASSERT_TRUE(keepalive);
  EXPECT_EQ(keepalive->views[0].position.through, (RowVersion{7, 2}));
  EXPECT_FALSE(keepalive->views[0].check);
  EXPECT_TRUE(keepalive->views[1].check);
}

TEST_F(HeartbeatTest, ASnapshotWhereTheCPsTakesNoDigests) {
  SenderRig plain(SenderRig::config({"ARS"}));
  plain.store.end_first_round();
  Hello hello = plain.c_ps.hello();
  hello.takes_digests = false;
  (void)plain.c_ps.begin(hello, kStart);
  plain.drain(kStart);
  const Nanoseconds due = plain.sender.next_due(plain.store);
  EXPECT_TRUE(plain.c_ps.next_of<SnapshotBegin>(due));
}

TEST_F(HeartbeatTest, PhasesOfCSmasDiffer) {  // D-30
  std::set<Nanoseconds> phases;
  for (int i = 0; i < 20; ++i) {
    SenderConfig config = SenderRig::config({"ARS"});
    config.identity = "c-sma." + std::to_string(i);
    SenderSession sender(config, 1, 0);
    RowStore store(7);
    sender.connected("0123456789abcdef", kStart);
    const Header header{Direction::kToCSma, config.c_ps, config.identity, "", 1, 0, 1, at(kStart).unix_ms};
    EXPECT_EQ(sender.received(store, {header, Hello{{1}, kSizeLimit, {}, "0123456789abcdef", true}}, "k", at(kStart)),
              std::nullopt);
    (void)sender.next(store, at(kStart));
    const Header ack{Direction::kToCSma, config.c_ps, config.identity, "0123456789abcdef", 2, 1, 2, at(kStart).unix_ms};
    EXPECT_EQ(sender.received(store, {ack, Ack{1}}, "k", at(kStart)), std::nullopt);
    phases.insert(sender.next_due(store) / kSecond);
  }
  EXPECT_GT(phases.size(), 12u);
}

TEST_F(HeartbeatTest, AnswersARequestForSync) {  // CSMA-160
  (void)rig.c_ps.say(SyncRequest{{"ARS"}, SyncReason::kMismatch}, kStart);
  const auto begin = rig.c_ps.next_of<SnapshotBegin>(kStart);
  ASSERT_TRUE(begin);
  EXPECT_EQ(begin->cs_ids, std::vector<std::string>{"ARS"});
  rig.drain(kStart);
  (void)rig.c_ps.say(SyncRequest{{}, SyncReason::kOperator}, kStart);
  (void)rig.c_ps.say(SyncRequest{{}, SyncReason::kOperator}, kStart);  // no second snapshot
  size_t begins = 0;
  for (const Message& message : rig.drain(kStart)) begins += std::holds_alternative<SnapshotBegin>(message.body);
  EXPECT_EQ(begins, 1u);
}

}  // namespace
}  // namespace margay::northbound
