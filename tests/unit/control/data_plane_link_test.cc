// SPDX-License-Identifier: Apache-2.0
// The control plane's connection to the data plane, and a data plane that does everything wrong.
#include "control/table/data_plane_link.h"

#include <functional>

#include <gtest/gtest.h>

#include "tests/support/fake_data_plane.h"
#include "tests/unit/control/table_plan_rig.h"

namespace margay::control {
namespace {

using shared_table::Message;
using shared_table::MessageKind;

constexpr Nanoseconds kStep = 100 * kMillisecond;

struct Rig {
  FakeDataPlane plane;
  TablePlan plan;
  Nanoseconds now = kSecond;
  std::optional<DataPlaneLink> link;
  std::vector<std::string> lost;
  int back = 0;
  std::map<std::string, LedgerSample> ledger;

  explicit Rig(std::vector<SciConfig> scis = {sci("a", {instance("x", 1), instance("y", 2)})}) {
    EXPECT_TRUE(plan.configure(scis));
    link.emplace(plane.path(), plan, -1, now);
  }
  void turn() {
    const DataPlaneLink::Turn t = link->poll(now);
    if (t.lost) lost.push_back(*t.lost);
    back += t.back ? 1 : 0;
    if (!t.ledger.empty()) ledger.clear();
    for (const auto& [name, sample] : t.ledger) ledger[name] = sample;
    link->flush(now);
  }
  // A step of time; `beats`: the workers make progress.
  void step(bool beats = true) {
    now += kStep;
    if (beats) plane.beat();
    turn();
  }
  void connect(const std::optional<Snapshot>& running = {}) {
    meet(running);
    ASSERT_TRUE(link->status().alive);
  }
  void meet(const std::optional<Snapshot>& running) {
    for (int n = 0; n < 40 && !plane.accept(); ++n) turn(), now += kStep;
    ASSERT_TRUE(plane.connected());
    plane.welcome(running);
    turn();
    ASSERT_TRUE(link->status().connected) << link->status().why;
    step();
  }
};

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

// ---- a hostile data plane: each ends the connection with its reason, and the next one is served

void expect_parted(const std::function<void(FakeDataPlane&)>& deed, const std::string& why) {
  Rig r;
  r.connect();
  deed(r.plane);
  r.turn();
  EXPECT_FALSE(r.link->status().connected) << why;
  ASSERT_EQ(r.lost.size(), 1u) << why;
  EXPECT_NE(r.lost[0].find(why), std::string::npos) << r.lost[0] << ", expected: " << why;
  r.plane.close();
  r.connect();
  EXPECT_EQ(r.back, 1);
}

TEST(HostileDataPlane, EveryMessageOutOfPlaceEndsTheConnection) {
  const auto say = [](MessageKind kind, uint32_t buffer, uint64_t generation) {
    return [=](FakeDataPlane& p) { p.say(kind, buffer, generation); };
  };
  expect_parted(say(MessageKind::kAck, 0, 2), "acked generation 2, expected 0 to 1");
  expect_parted([](FakeDataPlane& p) { p.take(), p.say(MessageKind::kAck, 0, 0); }, "acked generation 0, expected 1");
  expect_parted(say(MessageKind::kTaken, 1, 1), "a buffer that it does not have");
  expect_parted(say(MessageKind::kTaken, 99, 1), "a buffer that it does not have");
  expect_parted(say(MessageKind::kTaken, 0, 7), "answered for generation 7, committed was 1");
  expect_parted(say(MessageKind::kRefused, 0, 7), "answered for generation 7, committed was 1");
  expect_parted(say(MessageKind::kHello, 0, 0), "not its to send now");
  expect_parted(say(MessageKind::kCommit, 0, 0), "not its to send now");
  expect_parted(say(MessageKind::kStalled, 2, 1), "named worker 2 of 2");
  expect_parted(say(static_cast<MessageKind>(77), 0, 0), "kind 77");
  expect_parted([](FakeDataPlane& p) { p.say_raw("x", 1); }, "a message of 1 bytes");
  expect_parted([](FakeDataPlane& p) { p.say_raw(std::string(400, 'x').data(), 400); }, "bytes, expected 256");
  expect_parted([](FakeDataPlane& p) { p.say_raw(std::string(256, 'x').data(), 256); }, "none of ours");
  expect_parted([](FakeDataPlane& p) { p.close(); }, "closed the connection");
}

TEST(HostileDataPlane, NoAnswerToACommitEndsTheConnection) {
  Rig r;
  r.connect();
  for (int n = 0; n < 110 && r.lost.empty(); ++n) r.step();
  ASSERT_EQ(r.lost.size(), 1u);
  EXPECT_EQ(r.lost[0], "the data plane did not answer the commit of generation 1");
}

void expect_turned_away(const std::function<void(FakeDataPlane&, Message)>& deed, const std::string& why) {
  Rig r;
  r.turn();
  ASSERT_TRUE(r.plane.accept());
  r.plane.make_buffers();
  Message hello;
  hello.kind = MessageKind::kHello;
  deed(r.plane, hello);
  r.turn();
  EXPECT_FALSE(r.link->status().connected) << why;
  EXPECT_NE(r.link->status().why.find(why), std::string::npos) << r.link->status().why << ", expected: " << why;
  r.plane.close();
  r.connect();
}

Fd plain_memory(size_t bytes) {
  Fd fd(::memfd_create("plain", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(::ftruncate(fd.get(), static_cast<off_t>(bytes)), 0);
  return fd;
}

TEST(HostileDataPlane, AWelcomeThatIsWrongIsNone) {
  constexpr size_t kBuffersBytes = shared_table::kBuffers * shared_table::kSnapshotBytesMax;
  const auto running = [](Snapshot s, auto spoil) {
    return [=](FakeDataPlane& p, Message hello) {
      const std::vector<std::byte> bytes = encode(s);
      std::copy(bytes.begin(), bytes.end(), p.buffers().bytes().begin());
      hello.generation = s.generation;
      hello.length = bytes.size();
      hello.checksum = shared_table::checksum(bytes);
      spoil(hello);
      p.welcome_with(hello, p.buffers().fd(), p.counters_fd());
    };
  };
  Snapshot s{
      .generation = 5, .base = 0, .scis = {{.index = 0, .policy = sci("a", {}), .instances = {}}}, .removed = {}};
  const auto nothing = [](Message&) {};
  expect_turned_away([](FakeDataPlane& p, Message) { p.say(MessageKind::kBusy, 0, 0, "process 7 is connected"); },
                     "process 7 is connected");
  expect_turned_away([](FakeDataPlane& p, Message) { p.say(MessageKind::kAck, 0, 0); }, "a welcome with two");
  expect_turned_away([](FakeDataPlane& p, Message) { p.close(); }, "closed the connection");
  expect_turned_away(
      [](FakeDataPlane& p, Message m) { p.welcome_with(m, plain_memory(kBuffersBytes).get(), p.counters_fd()); },
      "seal");
  expect_turned_away([](FakeDataPlane& p, Message m) { p.welcome_with(m, p.counters_fd(), p.counters_fd()); }, "bytes");
  expect_turned_away([](FakeDataPlane& p, Message m) { p.welcome_with(m, p.buffers().fd(), plain_memory(4096).get()); },
                     "seal");
  expect_turned_away([](FakeDataPlane& p, Message m) { p.welcome_with(m, p.buffers().fd(), STDERR_FILENO); }, "");
  expect_turned_away([](FakeDataPlane& p, Message m) { p.welcome_with(m, p.buffers().fd(), p.buffers().fd()); },
                     "counters");
  expect_turned_away(running(s, [](Message& m) { m.length = kBuffersBytes; }), "longer than its buffer");
  expect_turned_away(running(s, [](Message& m) { ++m.checksum; }), "another checksum");
  expect_turned_away(running(s, [](Message& m) { ++m.generation; }), "another generation");
  Snapshot far = s;
  far.scis[0].index = 4;
  expect_turned_away(running(far, nothing), "an index without a counter");
  Snapshot last = s;
  last.generation = ~uint64_t{0};
  expect_turned_away(running(last, nothing), "leaves no generation");
}

TEST(HostileDataPlane, CountersThatSayOtherSizesAreRefused) {
  Rig r;
  r.turn();
  ASSERT_TRUE(r.plane.accept());
  auto few = std::move(*shared_table::MemoryFile::create("counters", 4096, shared_table::MemoryFile::Writers::kMaker));
  std::memcpy(few.bytes().data(), std::as_const(r.plane).counters().stopped().data() - 8, 64);
  r.plane.make_buffers();
  Message hello;
  hello.kind = MessageKind::kHello;
  r.plane.welcome_with(hello, r.plane.buffers().fd(), few.fd());
  r.turn();
  EXPECT_FALSE(r.link->status().connected);
  EXPECT_NE(r.link->status().why.find("counters: 4096 bytes, expected"), std::string::npos) << r.link->status().why;
}

// More than any data plane has to say between two looks of ours.
TEST(HostileDataPlane, AFloodEndsTheConnection) {
  Rig r;
  r.connect();
  r.plane.take();
  r.turn();
  for (int n = 0; n < 64; ++n) r.plane.say(MessageKind::kStalled, 0, 1);
  r.step();
  EXPECT_TRUE(r.lost.empty());
  for (int n = 0; n < 100; ++n) r.plane.say(MessageKind::kStalled, 0, 1);
  r.step();
  ASSERT_EQ(r.lost.size(), 1u);
  EXPECT_EQ(r.lost[0], "the data plane sent more than 64 messages at once");
}

TEST(HostileDataPlane, ADeafOneDoesNotHoldUsUp) {
  Rig r;
  for (int n = 0; n < 100; ++n) r.step();  // takes nobody: the backlog fills
  EXPECT_FALSE(r.link->status().connected);
  ASSERT_EQ(r.lost.size(), 1u);
}

}  // namespace
}  // namespace margay::control
