// SPDX-License-Identifier: Apache-2.0
// Hellos, acks, nacks and time-outs of a C-SMA's side.
#include "control/northbound/core/sender_session.h"

#include <gtest/gtest.h>

#include "tests/unit/control/northbound/rig.h"

namespace margay::northbound {
namespace {

using test::at;
using test::gone;
using test::kCPs;
using test::kCPsChallenge;
using test::kCSma;
using test::kCSmaChallenge;
using test::kStart;
using test::sci_row;
using test::SenderRig;
using test::site_row;

TEST(SenderSession, AnswersTheHelloOfTheCPs) {
  SenderRig rig;
  rig.store.end_first_round();
  rig.sender.connected(kCSmaChallenge, kStart);
  EXPECT_TRUE(std::holds_alternative<std::monostate>(rig.sender.next(rig.store, at(kStart))));  // the C-PS speaks first
  EXPECT_EQ(rig.c_ps.say(rig.c_ps.hello(), kStart), std::nullopt);
  const auto next = rig.sender.next(rig.store, at(kStart));
  ASSERT_TRUE(std::holds_alternative<Message>(next));
  const auto& [header, body] = std::get<Message>(next);
  EXPECT_EQ(header, (Header{Direction::kToCPs, kCSma, kCPs, kCPsChallenge, 1, 1, 0, at(kStart).unix_ms}));
  const Hello& hello = std::get<Hello>(body);
  EXPECT_EQ(hello.versions, std::vector<uint32_t>{1});
  EXPECT_EQ(hello.cs_ids, (std::vector<std::string>{"ARS", "LLMS"}));
  EXPECT_EQ(hello.challenge, kCSmaChallenge);
  EXPECT_EQ(hello.epoch, 7u);
  EXPECT_EQ(hello.heartbeat, 60 * kSecond);
}

TEST(SenderSession, RefusesAHelloByItsName) {
  const auto fault_of = [](auto change) {
    SenderRig rig;
    rig.sender.connected(kCSmaChallenge, kStart);
    Hello hello = rig.c_ps.hello();
    change(hello);
    return rig.c_ps.say(std::move(hello), kStart);
  };
  EXPECT_EQ(fault_of([](Hello&) {}), std::nullopt);
  EXPECT_EQ(fault_of([](Hello& h) { h.versions = {2, 3}; }), Fault::kNoCommonVersion);
  EXPECT_EQ(fault_of([](Hello& h) { h.versions = {3, 1}; }), std::nullopt);
  EXPECT_EQ(fault_of([](Hello& h) { h.cs_ids = {"VRS"}; }), Fault::kNoCommonCsId);  // CSMA-139
  EXPECT_EQ(fault_of([](Hello& h) { h.challenge.resize(15); }), Fault::kBadHello);
  EXPECT_EQ(fault_of([](Hello& h) { h.challenge.resize(65); }), Fault::kBadHello);
  EXPECT_EQ(fault_of([](Hello& h) { h.size_limit = kSizeLimitMin - 1; }), Fault::kBadHello);
}

TEST(SenderSession, NothingHasAPlaceBeforeTheHelloOrASecondOne) {
  SenderRig rig;
  rig.sender.connected(kCSmaChallenge, kStart);
  EXPECT_EQ(rig.c_ps.say(Ack{1}, kStart), Fault::kUnexpected);
  rig.sender.lost(kStart);
  (void)rig.c_ps.begin(rig.c_ps.hello(), kStart);
  EXPECT_EQ(rig.c_ps.say(rig.c_ps.hello(), kStart), Fault::kUnexpected);
  EXPECT_EQ(rig.c_ps.say(Batch{}, kStart), Fault::kUnexpected);
  EXPECT_EQ(rig.sender.peer().faults.of(Fault::kUnexpected), 3u);
}

// CSMA-129, 170: who accepts and then drops is called less and less often.
TEST(SenderSession, OnlyAnAckedHelloResetsTheBackoff) {
  SenderRig rig;
  Nanoseconds now = rig.sender.connect_at();
  EXPECT_GE(now, 750 * kMillisecond);
  EXPECT_LE(now, 1250 * kMillisecond);
  for (const uint64_t nominal : {2u, 4u, 8u, 16u}) {
    rig.c_ps.sequence = 0;
    rig.sender.connected(kCSmaChallenge, now);
    (void)rig.c_ps.say(rig.c_ps.hello(), now);
    (void)rig.sender.next(rig.store, at(now));  // our hello is out; no ack comes
    rig.sender.lost(now);
    EXPECT_GE(rig.sender.connect_at() - now, nominal * kSecond * 3 / 4);
    now = rig.sender.connect_at();
  }
  (void)rig.c_ps.begin(rig.c_ps.hello(), now);
  rig.sender.lost(now);
  EXPECT_LE(rig.sender.connect_at() - now, kSecond * 5 / 4);
}

// CSMA-170, D-50: up to a minute, but not more than half a heartbeat, with a quarter of jitter: a C-PS that is there
// again has everything within a heartbeat. Where the first wait is longer it stays as long as it is.
TEST(SenderSession, AHeartbeatBoundsTheBackoff) {
  struct Row {
    Nanoseconds heartbeat, initial, longest;
  };
  for (const auto& [heartbeat, initial, longest] : {Row{60 * kSecond, kSecond, 30 * kSecond},
                                                    {240 * kSecond, kSecond, 60 * kSecond},
                                                    {kSecond, kSecond, kSecond}}) {
    SenderConfig config = SenderRig::config({"ARS"});
    config.heartbeat = heartbeat;
    config.backoff_initial = initial;
    SenderSession sender(config, 1, 0);
    Nanoseconds now = 0, most = 0;
    for (int n = 0; n < 200; ++n) {
      sender.lost(now);
      const Nanoseconds wait = sender.connect_at() - now;
      EXPECT_TRUE(n < 10 || wait >= longest * 3 / 4) << wait;
      most = std::max(most, wait);
      now += wait;
    }
    EXPECT_LE(most, longest * 5 / 4);
    EXPECT_GT(most, longest * 6 / 5);
  }
  const SenderConfig usual;
  EXPECT_LT(usual.heartbeat / 2 * 5 / 4 + usual.ack_timeout, usual.heartbeat);
}

TEST(SenderSession, EndsWhereNoHelloOrNoAckComes) {
  SenderRig rig;
  rig.sender.connected(kCSmaChallenge, kStart);
  EXPECT_EQ(rig.sender.next_due(rig.store), kStart + 10 * kSecond);
  EXPECT_EQ(rig.sender.overdue(kStart + 10 * kSecond - 1), std::nullopt);
  EXPECT_EQ(std::get<Fault>(rig.sender.next(rig.store, at(kStart + 10 * kSecond))), Fault::kHelloTimeout);
  rig.sender.lost(kStart);

  rig.c_ps.sequence = 0;
  rig.sender.connected(kCSmaChallenge, kStart);
  (void)rig.c_ps.say(rig.c_ps.hello(), kStart);
  (void)rig.sender.next(rig.store, at(kStart));
  EXPECT_EQ(rig.sender.overdue_at(), kStart + 10 * kSecond);
  EXPECT_EQ(std::get<Fault>(rig.sender.next(rig.store, at(kStart + 10 * kSecond))), Fault::kAckTimeout);
}

TEST(SenderSession, AtMostSixteenMessagesWaitForTheirAck) {
  SenderConfig config = SenderRig::config({"ARS"});
  SenderRig rig(config);
  rig.settle(kStart);
  size_t sent = 0;
  for (int i = 0; i < 40; ++i) {
    rig.commit({"ARS", {site_row("ARS")}}, true, kStart);
    sent += std::holds_alternative<Message>(rig.sender.next(rig.store, at(kStart))) ? 1 : 0;
  }
  EXPECT_EQ(sent, 16u);
  EXPECT_EQ(rig.sender.next_due(rig.store), kStart + 10 * kSecond);
  EXPECT_EQ(rig.c_ps.say(Ack{rig.c_ps.last + 16}, kStart), std::nullopt);  // of all of them
  const auto batch = std::get<Message>(rig.sender.next(rig.store, at(kStart)));
  EXPECT_EQ(std::get<Batch>(batch.body).deltas.at(0).change.rows.size(), 1u);  // the rows met while they waited
  EXPECT_EQ(rig.c_ps.say(Ack{99}, kStart), Fault::kUnexpected);
}

// CSMA-159: a resume point is one delta, where it can be known.
TEST(SenderSession, ResumesWhereTheCPsStands) {
  SenderRig rig(SenderRig::config({"ARS", "LLMS"}));
  rig.store.end_first_round();
  rig.commit({"ARS", {sci_row("ARS", "x"), site_row("ARS")}}, false, 0);     // 7.1
  rig.commit({"LLMS", {sci_row("LLMS", "y"), site_row("LLMS")}}, false, 0);  // 7.2
  rig.commit({"ARS", {site_row("ARS")}, {gone("ARS", "x")}}, true, 0);       // 7.3
  Hello hello = rig.c_ps.hello();
  hello.resume = {{"ARS", {7, 1}}, {"LLMS", {7, 2}}};
  (void)rig.c_ps.begin(hello, kStart);
  const auto batch = rig.c_ps.next_of<Batch>(kStart);
  ASSERT_TRUE(batch);
  ASSERT_EQ(batch->deltas.size(), 1u);
  const Delta& delta = batch->deltas[0];
  EXPECT_EQ(delta.after, (RowVersion{7, 1}));
  EXPECT_EQ(delta.through, (RowVersion{7, 3}));
  ASSERT_EQ(delta.change.rows.size(), 1u);
  EXPECT_EQ(delta.change.rows[0].version, (RowVersion{7, 3}));
  ASSERT_EQ(delta.change.withdrawals.size(), 1u);
  EXPECT_EQ(delta.change.withdrawals[0].version, (RowVersion{7, 3}));
  EXPECT_FALSE(rig.c_ps.next(kStart));  // no snapshot
}

TEST(SenderSession, ASnapshotWhereTheResumePointSaysNothing) {
  const auto snapshotted = [](std::vector<Position> resume) {
    SenderRig rig(SenderRig::config({"ARS"}), 1);
    rig.store.end_first_round();
    rig.commit({"ARS", {sci_row("ARS", "x")}}, false, 0);
    for (const char* id : {"a", "b", "c"}) rig.commit({"ARS", {}, {gone("ARS", id)}}, true, 0);  // low water 7.3
    Hello hello = rig.c_ps.hello();
    hello.resume = std::move(resume);
    (void)rig.c_ps.begin(hello, kStart);
    const auto begin = rig.c_ps.next_of<SnapshotBegin>(kStart);
    return begin ? begin->cs_ids : std::vector<std::string>{};
  };
  const std::vector<std::string> all{"ARS"}, none;
  EXPECT_EQ(snapshotted({}), all);
  EXPECT_EQ(snapshotted({{"ARS", {6, 3}}}), all);   // another epoch
  EXPECT_EQ(snapshotted({{"ARS", {7, 2}}}), all);   // below the low water
  EXPECT_EQ(snapshotted({{"ARS", {7, 3}}}), none);  // at it
  EXPECT_EQ(snapshotted({{"ARS", {7, 5}}}), all);   // never was
}

// A C-PS sees only the CS-IDs that it may see, in whatever is sent (CSMA-139, 188).
TEST(SenderSession, NothingOutOfScopeInAnyMessage) {
  SenderRig rig(SenderRig::config({"ARS"}));
  rig.commit({"ARS", {sci_row("ARS", "x")}}, false, 0);
  rig.commit({"LLMS", {sci_row("LLMS", "y")}}, false, 0);
  std::vector<Message> all = rig.settle(kStart);
  rig.commit({"LLMS", {}, {gone("LLMS", "y")}}, true, kStart);
  rig.commit({"ARS", {sci_row("ARS", "z")}}, true, kStart);
  (void)rig.c_ps.say(SyncRequest{{"LLMS"}, SyncReason::kOperator}, kStart);
  for (Message& message : rig.drain(kStart + 60 * kSecond)) all.push_back(std::move(message));
  size_t rows = 0, views = 0;
  for (const auto& [header, body] : all) {
    if (const auto* batch = std::get_if<Batch>(&body)) {
      for (const Delta& delta : batch->deltas) EXPECT_EQ(delta.change.cs_id, "ARS");
      rows += batch->deltas.size();
    } else if (const auto* begin = std::get_if<SnapshotBegin>(&body)) {
      EXPECT_EQ(begin->cs_ids, std::vector<std::string>{"ARS"});
      EXPECT_EQ(begin->rows, 1u);
    } else if (const auto* chunk = std::get_if<SnapshotChunk>(&body)) {
      for (const Row& row : chunk->rows) EXPECT_EQ(row.key.cs_id, "ARS");
      rows += chunk->rows.size();
    } else if (const auto* keepalive = std::get_if<Keepalive>(&body)) {
      ASSERT_EQ(keepalive->views.size(), 1u);
      EXPECT_EQ(keepalive->views[0].position.cs_id, "ARS");
      EXPECT_EQ(keepalive->views[0].check->rows, 2u);
      views += 1;
    }
  }
  EXPECT_EQ(rows, 2u);
  EXPECT_EQ(views, 1u);
}

struct NackTest : testing::Test {
  NackTest() {
    rig.commit({"ARS", {sci_row("ARS", "x"), sci_row("ARS", "y")}}, false, 0);  // 7.1
    rig.settle(kStart);
    rig.commit({"ARS", {sci_row("ARS", "x"), sci_row("ARS", "y")}}, true, kStart);  // 7.2
    rig.c_ps.last =
        std::get<Message>(rig.sender.next(rig.store, at(kStart))).header.sequence;  // a nack precedes its ack
  }
  std::optional<View> view(Nanoseconds now) {
    const auto keepalive = rig.c_ps.next_of<Keepalive>(now);
    return keepalive && !keepalive->views.empty() ? std::optional(keepalive->views[0]) : std::nullopt;
  }
  void nack() {
    (void)rig.c_ps.say(Nack{rig.c_ps.last, NackCode::kTableFull, "", {{RowKey{"ARS", "x"}, {7, 2}}}}, kStart);
    rig.c_ps.ack(kStart);
  }
  SenderRig rig{SenderRig::config({"ARS"})};
};

TEST_F(NackTest, WhatWasRefusedIsLeftOutOfTheDigest) {
  nack();
  const auto of = view(kStart + 60 * kSecond);
  ASSERT_TRUE(of && of->check);
  EXPECT_EQ(*of->check, (View::Check{1, digest_of(RowKey{"ARS", "y"}, {7, 2})}));
}

TEST_F(NackTest, WhatWasRefusedIsNotSentAgainUntilItChanges) {
  nack();
  rig.commit({"ARS", {sci_row("ARS", "y")}}, true, kStart);  // 7.3
  auto batch = rig.c_ps.next_of<Batch>(kStart);
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->deltas[0].change.rows.size(), 1u);
  rig.commit({"ARS", {sci_row("ARS", "x")}}, true, kStart);  // 7.4
  batch = rig.c_ps.next_of<Batch>(kStart);
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->deltas[0].change.rows[0].key.csci_id, "x");
  const auto of = view(kStart + 60 * kSecond);
  ASSERT_TRUE(of && of->check);
  EXPECT_EQ(of->check->rows, 2u);
}

TEST_F(NackTest, AMalformedMessagesRowsStayRefusedOverTheSession) {
  (void)rig.c_ps.say(Nack{rig.c_ps.last, NackCode::kMalformed, "key: expected one", {}}, kStart);
  rig.sender.lost(kStart);
  (void)rig.c_ps.begin(rig.c_ps.hello(), kStart);  // holds nothing
  auto begin = rig.c_ps.next_of<SnapshotBegin>(kStart);
  ASSERT_TRUE(begin);
  EXPECT_EQ(begin->rows, 0u);
  rig.drain(kStart);
  (void)rig.c_ps.say(SyncRequest{{}, SyncReason::kMismatch}, kStart);
  begin = rig.c_ps.next_of<SnapshotBegin>(kStart);
  EXPECT_EQ(begin->rows, 0u);
  rig.drain(kStart);
  (void)rig.c_ps.say(SyncRequest{{}, SyncReason::kOperator}, kStart);  // now it may be read
  begin = rig.c_ps.next_of<SnapshotBegin>(kStart);
  EXPECT_EQ(begin->rows, 2u);
}

TEST_F(NackTest, ANackOfWhatIsNotSentEndsTheSession) {
  EXPECT_EQ(rig.c_ps.say(Nack{99, NackCode::kTableFull}, kStart), Fault::kUnexpected);
  EXPECT_EQ(rig.c_ps.say(Nack{0, NackCode::kTableFull}, kStart), Fault::kUnexpected);
}

}  // namespace
}  // namespace margay::northbound
