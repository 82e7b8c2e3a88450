// SPDX-License-Identifier: Apache-2.0
// A data plane that does everything wrong: each deed ends the connection with its reason, and the next one is served.
#include <functional>

#include "tests/unit/control/data_plane_link_rig.h"

namespace margay::control {
namespace {

using Rig = LinkRig;
using shared_table::Message;
using shared_table::MessageKind;

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
