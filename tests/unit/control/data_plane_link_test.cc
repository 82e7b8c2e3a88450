// SPDX-License-Identifier: Apache-2.0
// The control plane's connection to the data plane.
#include "tests/unit/control/data_plane_link_rig.h"

namespace margay::control {
namespace {

using Rig = LinkRig;
using shared_table::Message;
using shared_table::MessageKind;

TEST(DataPlaneLink, ConnectsCommitsAndReadsTheLedger) {
  Rig r;
  r.connect();
  const auto first = r.plane.take();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->base, 0u);
  r.step();
  EXPECT_EQ(r.link->status().acked, 1u);
  const InstanceRecord x = record(r.plan, "a", "x");
  for (uint32_t w : {0u, 1u}) r.plane.counts(w, x.index).generation.set(x.generation);
  r.plane.counts(0, x.index).active.set(3);
  r.plane.counts(1, x.index).active.set(4);
  r.plane.counts(1, x.index).provisional.set(2);
  r.step();
  ASSERT_EQ(r.ledger["a"].instances.size(), 2u);
  const LedgerSample::Entry& entry = r.ledger["a"].instances[0];
  EXPECT_EQ(entry.id, "x");
  EXPECT_EQ(entry.counts.active, 7u);
  EXPECT_EQ(entry.counts.provisional, 2u);
  EXPECT_FALSE(entry.counts.admin);
  EXPECT_EQ(r.ledger["a"].instances[1].counts.active, 0u);
  EXPECT_TRUE(r.lost.empty());
}

TEST(DataPlaneLink, CountsOfTheInstanceBeforeAreNotTaken) {
  Rig r;
  r.connect();
  r.plane.take();
  const InstanceRecord x = record(r.plan, "a", "x");
  r.plane.counts(0, x.index).generation.set(x.generation + 1u);
  r.plane.counts(0, x.index).active.set(3);
  r.plane.counters().settings()[x.index].set(shared_table::OperatorSetting{
      .generation = 9,
      .admin = Admin::kDisabled,
      .max_sessions = 1,
      .weight = {}}.pack());
  r.step();
  EXPECT_EQ(r.ledger["a"].instances[0].counts.active, 0u);
  EXPECT_FALSE(r.ledger["a"].instances[0].counts.admin);
  r.plane.counters().settings()[x.index].set(shared_table::OperatorSetting{
      .generation = x.generation, .admin = Admin::kDisabled, .max_sessions = 1, .weight = 0}
                                                 .pack());
  r.step();
  EXPECT_EQ(r.ledger["a"].instances[0].counts.admin, Admin::kDisabled);
  EXPECT_EQ(r.ledger["a"].instances[0].counts.max_sessions, 1u);
  EXPECT_EQ(r.ledger["a"].instances[0].counts.weight, 0u);
}

TEST(DataPlaneLink, AbsurdCountersSaturate) {
  Rig r;
  r.connect();
  const InstanceRecord x = record(r.plan, "a", "x");
  for (uint32_t w : {0u, 1u}) {
    r.plane.counts(w, x.index).generation.set(x.generation);
    r.plane.counts(w, x.index).active.set(~uint64_t{0} - w);
    r.plane.counts(w, x.index).provisional.set(uint64_t{1} << 32);
  }
  r.step();
  EXPECT_EQ(r.ledger["a"].instances[0].counts.active, ~uint32_t{0});
  EXPECT_EQ(r.ledger["a"].instances[0].counts.provisional, ~uint32_t{0});
}

TEST(DataPlaneLink, HistogramsComeWhenTheyMoved) {
  Rig r;
  r.connect();
  const InstanceRecord x = record(r.plan, "a", "x");
  r.plane.counts(1, x.index).generation.set(x.generation);
  r.step();
  r.step();
  EXPECT_FALSE(r.ledger["a"].instances[0].responses);
  r.plane.times(1, x.index).responses.add(5 * kMillisecond);
  r.step();
  ASSERT_TRUE(r.ledger["a"].instances[0].responses);
  EXPECT_EQ(r.ledger["a"].instances[0].responses->count(), 1u);
  r.step();
  EXPECT_FALSE(r.ledger["a"].instances[0].responses);
}

TEST(DataPlaneLink, NoDataPlaneIsNewsAfterASecondAndItsComingToo) {
  Rig r;
  r.plane.stop_listening();
  for (int n = 0; n < 9; ++n) r.step();
  EXPECT_TRUE(r.lost.empty());
  r.step(), r.step();
  ASSERT_EQ(r.lost.size(), 1u);
  EXPECT_NE(r.lost[0].find("no daemon answers there"), std::string::npos) << r.lost[0];
  r.plane.listen();
  r.connect();
  EXPECT_EQ(r.back, 1);
  EXPECT_FALSE(r.ledger.empty());
}

// "The data plane frozen: GAS 0 within 2 s."
TEST(DataPlaneLink, AFrozenDataPlaneIsLostWithin1200MsAndComesBack) {
  Rig r;
  r.connect();
  r.plane.take();
  r.step();
  const Nanoseconds frozen = r.now;
  while (r.lost.empty() && r.now < frozen + 3 * kSecond) r.step(false);
  EXPECT_GE(r.now - frozen, kSecond);
  EXPECT_LE(r.now - frozen, 1200 * kMillisecond);
  r.ledger.clear();
  r.step(false);
  EXPECT_TRUE(r.ledger.empty());
  EXPECT_TRUE(r.link->status().connected);
  for (int n = 0; n < 200; ++n) r.step(false);  // a commit waits as long as it takes
  EXPECT_TRUE(r.link->status().connected);
  r.step();
  EXPECT_EQ(r.back, 1);
  EXPECT_FALSE(r.ledger.empty());
}

// It takes no flow while its operator has stopped it, whatever it has free (SCI-10).
TEST(DataPlaneLink, AStoppedDataPlaneIsLostUntilItGoesOn) {
  Rig r;
  r.plane.counters().stopped().front().set(1);
  r.meet({});  // a control plane that begins meanwhile learns of it too
  EXPECT_FALSE(r.link->status().alive);
  ASSERT_EQ(r.lost.size(), 1u);
  EXPECT_EQ(r.lost[0], "its operator stopped it");
  EXPECT_TRUE(r.ledger.empty());
  EXPECT_TRUE(r.link->status().connected);
  r.plane.counters().stopped().front().set(0);
  r.step();
  EXPECT_EQ(r.back, 1);
  EXPECT_FALSE(r.ledger.empty());
  r.plane.counters().stopped().front().set(1);
  r.step();
  EXPECT_EQ(r.lost.size(), 2u);
}

TEST(DataPlaneLink, CountsTellWhetherAnyWorkerRanSince) {
  Rig r;
  r.connect();
  r.plane.take();
  for (const bool beats : {true, false, false, true}) {
    r.ledger.clear();
    r.step(beats);
    EXPECT_EQ(r.ledger.at("a").stood_still, !beats);
  }
}

TEST(DataPlaneLink, OneWorkerThatStandsStillIsNotTheDataPlane) {
  Rig r;
  r.connect();
  r.plane.take();
  for (int n = 0; n < 50; ++n) {
    r.plane.counters().workers()[1].polls.add();
    r.step(false);
  }
  EXPECT_TRUE(r.lost.empty());
  EXPECT_FALSE(r.ledger.empty());
}

TEST(DataPlaneLink, AClosedSocketIsLostAtOnceAndTheWholeTableGoesToTheNext) {
  Rig r;
  r.connect();
  r.plane.take();
  r.step();
  r.plane.close();
  r.turn();
  EXPECT_EQ(r.lost, std::vector<std::string>{"the data plane closed the connection"});
  r.plan.apply("a", health_of("x", HealthState::kHealthy, 100));
  r.connect();
  EXPECT_EQ(r.back, 1);
  const auto again = r.plane.take();
  ASSERT_TRUE(again);
  EXPECT_EQ(again->base, 0u);
  EXPECT_EQ(again->generation, 2u);
}

TEST(DataPlaneLink, WhileACommitIsUnderWayTheNewestStateWaits) {
  Rig r;
  r.connect();
  const auto first = r.plane.commit();
  ASSERT_TRUE(first);
  for (uint32_t limit = 1; limit <= 50; ++limit) {
    r.plan.apply("a", health_of("x", HealthState::kHealthy, limit));
    r.step();
  }
  EXPECT_FALSE(r.plane.commit());
  r.plane.say(MessageKind::kTaken, first->message.buffer, first->message.generation);
  r.turn();
  const auto second = r.plane.take();
  ASSERT_TRUE(second);
  EXPECT_EQ(second->generation, 2u);
  EXPECT_EQ(second->base, 1u);
  EXPECT_EQ(second->scis[0].instances[0].limit, 50u);
  r.step();
  EXPECT_FALSE(r.plane.commit());
}

TEST(DataPlaneLink, ARefusedTableComesAgainCompleteAndNotInATightLoop) {
  Rig r;
  r.connect();
  int commits = 0;
  for (int n = 0; n < 50; ++n) {  // 5 s
    while (const auto c = r.plane.commit()) {
      ++commits;
      EXPECT_EQ(c->snapshot.base, 0u);
      r.plane.say(MessageKind::kRefused, c->message.buffer, c->message.generation, "scis[a]: no");
      r.turn();
    }
    r.step();
  }
  EXPECT_GE(commits, 4);
  EXPECT_LE(commits, 6);
  EXPECT_EQ(r.link->status().last_refusal, "scis[a]: no");
  EXPECT_TRUE(r.link->status().connected);
}

}  // namespace
}  // namespace margay::control
