// SPDX-License-Identifier: Apache-2.0
#include "control/cps/core/receiver_session.h"

#include <gtest/gtest.h>

#include "tests/unit/control/northbound/rig.h"

namespace margay::cps {
namespace {

using namespace northbound;  // NOLINT: every name of the messages
using northbound::test::at;
using northbound::test::kCPs;
using northbound::test::kCPsChallenge;
using northbound::test::kCSma;
using northbound::test::kCSmaChallenge;
using northbound::test::kStart;
using northbound::test::versioned;

struct ReceiverTest : testing::Test {
  void start(ReceiverConfig config = {kCPs, kCSma, {"ARS", "LLMS"}, kSizeLimitMin}) {
    session.emplace(std::move(config), kCPsChallenge, kStart);
    sequence = 0;
  }
  std::optional<Fault> say(Body body, uint64_t seen = 1, Nanoseconds now = kStart) {
    const Header header{Direction::kToCPs, kCSma, kCPs, kCPsChallenge, ++sequence, seen, ++nonce, at(now).unix_ms};
    return session->received(table, peer, {header, std::move(body)}, "k1", at(now));
  }
  static Hello hello() {
    Hello out{{1}, kSizeLimit, {"ARS"}, kCSmaChallenge};
    out.epoch = 7;
    out.heartbeat = 60 * kSecond;
    return out;
  }
  std::optional<Message> next(Nanoseconds now = kStart) {
    auto next = session->next(table, peer, at(now));
    return std::holds_alternative<Message>(next) ? std::optional(std::get<Message>(std::move(next))) : std::nullopt;
  }
  template <class T>
  std::optional<T> next_of(Nanoseconds now = kStart) {
    const auto message = next(now);
    if (!message || !std::holds_alternative<T>(message->body)) return std::nullopt;
    return std::get<T>(message->body);
  }
  // Up to the ack of the C-SMA's hello.
  void establish() {
    start();
    (void)next();
    ASSERT_EQ(say(hello()), std::nullopt);
    ASSERT_EQ(next_of<Ack>(), Ack{1});
  }
  std::optional<Fault> begin(uint64_t rows, std::vector<std::string> cs_ids = {"ARS"}) {
    return say(SnapshotBegin{1, {7, 5}, rows, std::move(cs_ids)});
  }
  bool holds(const std::string& csci_id) const { return table.find(kCSma, RowKey{"ARS", csci_id}) != nullptr; }

  ServiceTable table{{3, 100}};
  Peer peer;
  std::optional<ReceiverSession> session;
  uint64_t sequence = 0, nonce = 0;
};

TEST_F(ReceiverTest, SpeaksFirst) {
  start();
  const auto message = next();
  ASSERT_TRUE(message);
  EXPECT_EQ(message->header, (Header{Direction::kToCSma, kCPs, kCSma, "", 1, 0, 0, at(kStart).unix_ms}));
  const Hello& hello = std::get<Hello>(message->body);
  EXPECT_EQ(hello.versions, std::vector<uint32_t>{1});
  EXPECT_EQ(hello.cs_ids, (std::vector<std::string>{"ARS", "LLMS"}));
  EXPECT_EQ(hello.challenge, kCPsChallenge);
  EXPECT_TRUE(hello.resume.empty());
  EXPECT_FALSE(next());
}

TEST_F(ReceiverTest, RefusesAHelloByItsName) {
  const auto fault_of = [&](auto change) {
    start();
    Hello of = hello();
    change(of);
    return say(of);
  };
  EXPECT_EQ(fault_of([](Hello&) {}), std::nullopt);
  EXPECT_EQ(fault_of([](Hello& h) { h.cs_ids = {"ARS", "VRS"}; }), Fault::kOutOfScope);
  EXPECT_EQ(fault_of([](Hello& h) { h.cs_ids = {}; }), Fault::kNoCommonCsId);
  EXPECT_EQ(fault_of([](Hello& h) { h.versions = {2}; }), Fault::kNoCommonVersion);
  EXPECT_EQ(fault_of([](Hello& h) { h.challenge = "short"; }), Fault::kBadHello);
  EXPECT_EQ(fault_of([](Hello& h) { h.heartbeat = 0; }), Fault::kBadHello);
  EXPECT_EQ(fault_of([](Hello& h) { h.epoch = 6; }), Fault::kEpochWentBack);
  EXPECT_EQ(peer.faults.of(Fault::kEpochWentBack), 1u);
}

TEST_F(ReceiverTest, AcksAfterApplying) {
  establish();
  EXPECT_EQ(say(Batch{{Delta{{"ARS", {versioned("x", {7, 1})}}, {7, 0}, {7, 1}}}}), std::nullopt);
  EXPECT_EQ(say(Batch{{Delta{{"ARS", {versioned("y", {7, 2})}}, {7, 1}, {7, 2}}}}), std::nullopt);
  EXPECT_TRUE(holds("x"));
  EXPECT_EQ(next_of<Ack>(), Ack{3});  // cumulative
  EXPECT_FALSE(next());
}

TEST_F(ReceiverTest, AcksWhatIsPersistedWhereItSaysSo) {
  start({kCPs, kCSma, {"ARS"}, kSizeLimitMin, true, true});
  EXPECT_TRUE(next_of<Hello>()->persists);
  ASSERT_EQ(say(hello()), std::nullopt);
  EXPECT_FALSE(next());
  session->persisted();
  EXPECT_EQ(next_of<Ack>(), Ack{1});
}

TEST_F(ReceiverTest, ASnapshotIsNothingBeforeItsEnd) {
  establish();
  EXPECT_EQ(begin(2), std::nullopt);
  EXPECT_EQ(say(SnapshotChunk{1, {versioned("x", {7, 1})}}), std::nullopt);
  EXPECT_EQ(say(SnapshotChunk{1, {versioned("y", {7, 2})}}), std::nullopt);
  EXPECT_FALSE(holds("x"));
  Digest digest = digest_of(RowKey{"ARS", "x"}, {7, 1});
  digest += digest_of(RowKey{"ARS", "y"}, {7, 2});
  EXPECT_EQ(say(SnapshotEnd{1, digest}), std::nullopt);
  EXPECT_TRUE(holds("x"));
  EXPECT_EQ(session->snapshots(), 1u);
  EXPECT_EQ(table.resume(kCSma), (std::vector<Position>{{"ARS", {7, 5}}}));
}

TEST_F(ReceiverTest, RefusesASnapshotThatDoesNotAddUp) {
  const auto fault_of = [&](auto... bodies) {
    establish();
    std::optional<Fault> last;
    ((last = last ? last : say(bodies)), ...);
    return last;
  };
  const SnapshotBegin begin{1, {7, 5}, 1, {"ARS"}};
  const SnapshotChunk chunk{1, {versioned("x", {7, 1})}};
  const Digest digest = digest_of(RowKey{"ARS", "x"}, {7, 1});
  EXPECT_EQ(fault_of(begin, chunk, SnapshotEnd{1, digest}), std::nullopt);
  EXPECT_EQ(fault_of(begin, SnapshotEnd{1, {}}), Fault::kSnapshotBroken);         // before all chunks
  EXPECT_EQ(fault_of(begin, chunk, SnapshotEnd{1, {}}), Fault::kSnapshotBroken);  // another digest
  EXPECT_EQ(fault_of(begin, chunk, SnapshotEnd{2, digest}), Fault::kSnapshotBroken);
  EXPECT_EQ(fault_of(begin, chunk, chunk), Fault::kSnapshotBroken);  // a row twice
  EXPECT_EQ(fault_of(begin, begin), Fault::kSnapshotBroken);
  EXPECT_EQ(fault_of(chunk), Fault::kSnapshotBroken);
  EXPECT_EQ(fault_of(SnapshotEnd{1, {}}), Fault::kSnapshotBroken);
  EXPECT_EQ(fault_of(begin, SnapshotChunk{1, {versioned("x", {7, 1}, "LLMS")}}), Fault::kSnapshotBroken);
  EXPECT_EQ(fault_of(SnapshotBegin{1, {7, 5}, 1, {"LLMS"}}), Fault::kOutOfScope);
}

TEST_F(ReceiverTest, NacksComeBeforeTheAckAndNameTheRows) {
  establish();
  const Change change{"ARS",
                      {versioned("a", {7, 1}), versioned("b", {7, 1}), versioned("c", {7, 1}), versioned("d", {7, 1})}};
  EXPECT_EQ(
      say(Batch{{Delta{change, {7, 0}, {7, 1}}, Delta{{"LLMS", {versioned("x", {7, 1}, "LLMS")}}, {7, 0}, {7, 1}}}}),
      std::nullopt);
  const auto full = next_of<Nack>(), scope = next_of<Nack>();
  ASSERT_TRUE(full && scope);
  EXPECT_EQ(*full, (Nack{2, NackCode::kTableFull, "", {{RowKey{"ARS", "d"}, {7, 1}}}}));
  EXPECT_EQ(*scope, (Nack{2, NackCode::kOutOfScope, "", {{RowKey{"LLMS", "x"}, {7, 1}}}}));
  EXPECT_EQ(next_of<Ack>(), Ack{2});
}

TEST_F(ReceiverTest, AMalformedMessageIsAnsweredAndEndsTheSession) {
  establish();
  session->malformed(peer, "key: expected a csci_id or the site");
  EXPECT_EQ(next_of<Nack>(), (Nack{2, NackCode::kMalformed, "key: expected a csci_id or the site", {}}));
  EXPECT_EQ(std::get<Fault>(session->next(table, peer, at(kStart))), Fault::kMalformed);
  EXPECT_EQ(peer.faults.of(Fault::kMalformed), 1u);
}

TEST_F(ReceiverTest, AsksForSyncWhereAViewIsNotItsOwn) {  // CSMA-157, 160
  establish();
  EXPECT_EQ(begin(0), std::nullopt);
  EXPECT_EQ(say(SnapshotEnd{1, {}}), std::nullopt);
  (void)next();
  const View good{{"ARS", {7, 5}}, View::Check{0, {}}}, bad{{"ARS", {7, 5}}, View::Check{1, {}}};
  EXPECT_EQ(say(Keepalive{{good}}), std::nullopt);
  EXPECT_EQ(next_of<Ack>(), Ack{4});
  EXPECT_EQ(say(Keepalive{{bad}}), std::nullopt);
  EXPECT_EQ(next_of<SyncRequest>(), (SyncRequest{{"ARS"}, SyncReason::kMismatch}));
  EXPECT_EQ(session->mismatches(), 1u);
  (void)next();
  EXPECT_EQ(say(Keepalive{{bad}}), std::nullopt);  // it is on its way
  EXPECT_FALSE(next_of<SyncRequest>());
  EXPECT_EQ(session->mismatches(), 1u);
}

// A view that was made before the C-SMA knew what was refused says nothing of it.
TEST_F(ReceiverTest, DoesNotCompareWhatTheCSmaCouldNotKnow) {
  establish();
  EXPECT_EQ(begin(0), std::nullopt);
  EXPECT_EQ(say(SnapshotEnd{1, {}}), std::nullopt);
  const Change change{"ARS",
                      {versioned("a", {7, 6}), versioned("b", {7, 6}), versioned("c", {7, 6}), versioned("d", {7, 6})}};
  EXPECT_EQ(say(Batch{{Delta{change, {7, 5}, {7, 6}}}}), std::nullopt);
  Digest three, four;
  for (const char* id : {"a", "b", "c"}) three += digest_of(RowKey{"ARS", id}, {7, 6});
  four = three;
  four += digest_of(RowKey{"ARS", "d"}, {7, 6});
  const View with{{"ARS", {7, 6}}, View::Check{4, four}}, without{{"ARS", {7, 6}}, View::Check{3, three}};
  EXPECT_EQ(say(Keepalive{{with}}), std::nullopt);  // our nack is not even written
  const auto nack = next();
  ASSERT_TRUE(nack && std::holds_alternative<Nack>(nack->body));
  EXPECT_EQ(say(Keepalive{{with}}, nack->header.sequence - 1), std::nullopt);
  EXPECT_EQ(session->mismatches(), 0u);
  EXPECT_EQ(say(Keepalive{{without}}, nack->header.sequence), std::nullopt);
  EXPECT_EQ(session->mismatches(), 0u);
  EXPECT_EQ(say(Keepalive{{with}}, nack->header.sequence), std::nullopt);
  EXPECT_EQ(session->mismatches(), 1u);
}

TEST_F(ReceiverTest, AsksForSyncWhenAnOperatorDoes) {
  establish();
  session->request_sync({});
  EXPECT_EQ(next_of<SyncRequest>(), (SyncRequest{{"ARS"}, SyncReason::kOperator}));
}

TEST_F(ReceiverTest, EndsWhereNothingComes) {
  start();
  (void)next();
  EXPECT_EQ(session->next_due(), kStart + 10 * kSecond);
  EXPECT_EQ(std::get<Fault>(session->next(table, peer, at(kStart + 10 * kSecond))), Fault::kHelloTimeout);
  establish();
  EXPECT_EQ(session->next_due(), kStart + 150 * kSecond);  // two heartbeats and a half
  EXPECT_FALSE(next(kStart + 150 * kSecond - 1));
  EXPECT_EQ(std::get<Fault>(session->next(table, peer, at(kStart + 150 * kSecond))), Fault::kSilent);
}

TEST_F(ReceiverTest, EndsBeyondSixteenMessagesWithoutAnAck) {
  establish();
  for (int i = 0; i < 16; ++i) ASSERT_EQ(say(Keepalive{}), std::nullopt);
  EXPECT_EQ(say(Keepalive{}), Fault::kTooManyUnacked);
}

// There is room for three rows.
TEST_F(ReceiverTest, EndsWhereFarTooMuchIsToBeRemembered) {
  establish();
  EXPECT_EQ(begin(16), Fault::kTooManyRows);
  establish();
  EXPECT_EQ(begin(15), std::nullopt);
  establish();
  Change change{"ARS"};
  for (int i = 0; i < 18; ++i) change.rows.push_back(versioned("x" + std::to_string(i), {7, 1}));  // 15 of them refused
  EXPECT_EQ(say(Batch{{Delta{change, {7, 0}, {7, 1}}}}), std::nullopt);
  EXPECT_EQ(say(Batch{{Delta{{"ARS", {versioned("y", {7, 2})}}, {7, 1}, {7, 2}}}}), Fault::kTooManyRows);
}

TEST_F(ReceiverTest, TakesNothingOfItsOwnKind) {
  establish();
  EXPECT_EQ(say(Ack{1}), Fault::kUnexpected);
  establish();
  EXPECT_EQ(say(hello()), Fault::kUnexpected);
  start();
  EXPECT_EQ(say(Keepalive{}), Fault::kUnexpected);
}

TEST_F(ReceiverTest, TellsWhereItStandsInTheNextSession) {
  establish();
  EXPECT_EQ(begin(0), std::nullopt);
  EXPECT_EQ(say(SnapshotEnd{1, {}}), std::nullopt);
  start();
  EXPECT_EQ(next_of<Hello>()->resume, (std::vector<Position>{{"ARS", {7, 5}}}));
}

TEST_F(ReceiverTest, AnUnfinishedSnapshotIsForgottenWithItsSession) {
  establish();
  EXPECT_EQ(begin(1), std::nullopt);
  EXPECT_EQ(say(SnapshotChunk{1, {versioned("x", {7, 1})}}), std::nullopt);
  EXPECT_EQ(say(Batch{{Delta{{"ARS", {versioned("y", {7, 6})}}, {7, 5}, {7, 6}}}}), std::nullopt);
  start();
  EXPECT_TRUE(next_of<Hello>()->resume.empty());
  EXPECT_TRUE(holds("y"));
  EXPECT_FALSE(holds("x"));
}

}  // namespace
}  // namespace margay::cps
