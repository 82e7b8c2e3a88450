// SPDX-License-Identifier: Apache-2.0
// What a port that anybody reaches must stand (CSMA-191), and links that die without a word.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <random>
#include <string>
#include <vector>

#include "tests/unit/control/rpc/proxy.h"
#include "tests/unit/control/rpc/rpc_rig.h"

namespace margay::rpc {
namespace {

bool closed_by_peer(int fd) {
  pollfd in{.fd = fd, .events = POLLIN, .revents = 0};
  std::array<char, 4096> chunk;
  while (poll(&in, 1, 0) == 1) {
    if (recv(fd, chunk.data(), chunk.size(), MSG_DONTWAIT) <= 0) return true;
  }
  return false;
}

TEST(Hostile, BytesThatAreNoTls) {
  Rig rig;
  rig.add();
  const auto [there, here] = rig.open_stream();
  std::mt19937 random(7);
  for (int i = 0; i < 200; ++i) {
    const Fd fd = connect_to(rig.server->port());
    ASSERT_TRUE(fd);
    std::string bytes(random() % 3000, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    if (i % 4 == 1) bytes = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes;
    if (i % 4 == 2) bytes = "GET / HTTP/1.1\r\n\r\n";
    if (i % 4 == 3) bytes = std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11) + bytes;
    (void)!send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (i % 10 == 0) rig.turn();
  }
  ASSERT_TRUE(rig.until([&] { return rig.server->counters().connections == 1; }));
  EXPECT_TRUE(rig.clients[0]->send(there, "x"));
  ASSERT_TRUE(rig.until([&] { return rig.seen.received.size() == 1; }));
  EXPECT_EQ(rig.seen.end(here), nullptr);
}

TEST(Hostile, HandshakesThatAreNotFinishedAreClosedInTime) {
  Limits limits;
  limits.handshake = 1s;
  Rig rig(limits);
  std::vector<Fd> fds;
  for (int i = 0; i < 50; ++i) fds.push_back(connect_to(rig.server->port()));
  ASSERT_TRUE(rig.until([&] { return rig.server->counters().connections == 50; }));
  ASSERT_TRUE(rig.until([&] { return rig.server->counters().connections == 0; }, 20s));
  for (const Fd& fd : fds) EXPECT_TRUE(closed_by_peer(fd.get()));
}

TEST(Hostile, AConnectionWithoutAStreamIsClosedInTime) {
  Limits limits;
  limits.idle = 1s;
  Rig rig(limits);
  rig.add();
  const auto [there, here] = rig.open_stream();
  rig.run(2500ms);
  EXPECT_EQ(rig.server->counters().connections, 1u);  // it has a stream
  rig.clients[0]->close(there, Code::kOk, "");
  ASSERT_TRUE(rig.until([&] { return rig.server->counters().connections == 0; }, 20s));
  (void)here;
}

// A tenth of them fit. Those that carry a stream stay, and a good peer still gets in.
TEST(Hostile, TenThousandIdleConnectionsDoNotStopAGoodPeer) {
  constexpr size_t kIdle = 10'000;
  Limits limits;
  limits.connections = 1000;
  limits.handshake = 600s;
  limits.open = 60s;
  Rig rig(limits);
  rig.add("a", limits);
  const auto [there, here] = rig.open_stream();
  std::vector<Fd> fds;
  for (size_t i = 0; i < kIdle; ++i) {
    fds.push_back(connect_to(rig.server->port()));
    ASSERT_TRUE(fds.back()) << i;
    if (i % 100 == 0) rig.turn();
  }
  rig.add("b", limits);
  const auto begun = Clock::now();
  rig.open_stream(1);
  EXPECT_LE(Clock::now() - begun, 30s);
  ASSERT_EQ(rig.client_seen[1].opened.size(), 1u);
  ASSERT_TRUE(rig.until([&] { return rig.server->counters().accepted >= kIdle + 2; }));
  EXPECT_LE(rig.server->counters().connections, limits.connections);
  EXPECT_GE(rig.server->counters().evicted, kIdle + 2 - limits.connections);
  EXPECT_TRUE(rig.clients[0]->send(there, "still here"));
  EXPECT_TRUE(rig.clients[1]->send(rig.client_seen[1].opened.back().id, "me too"));
  ASSERT_TRUE(rig.until([&] { return rig.seen.received.size() == 2; }));
  EXPECT_EQ(rig.seen.end(here), nullptr);
}

TEST(Hostile, AMessageThatIsTooLongEndsItsStreamAlone) {
  Limits limits;
  limits.message = 10'000;
  Rig rig(limits);
  rig.add();
  const auto [there, here] = rig.open_stream();
  const auto [other_there, other_here] = rig.open_stream();
  rig.clients[0]->send(other_there, std::string(10'000, 'x'));
  ASSERT_TRUE(rig.until([&] { return rig.seen.received.size() == 1; }));
  rig.clients[0]->send(there, std::string(10'001, 'x'));
  ASSERT_TRUE(rig.until([&, t = there, h = here] { return rig.seen.end(h) && rig.client_seen[0].end(t); }));
  EXPECT_EQ(rig.client_seen[0].end(there)->code, Code::kExhausted);
  EXPECT_EQ(rig.seen.received.size(), 1u);
  rig.clients[0]->send(other_there, "x");
  ASSERT_TRUE(rig.until([&] { return rig.seen.received.size() == 2; }));
  (void)other_here;
}

// gRPC would take 256 MiB of memory and then see that 4 MiB are the most.
TEST(Hostile, AMessageThatIsFarTooLongIsNotHeld) {
  Rig rig;
  rig.add();
  const auto [there, here] = rig.open_stream();
  rig.clients[0]->send(there, std::string(size_t{256} << 20, 'x'));
  const size_t before = memory();  // with the sender's copy
  size_t most = before;
  ASSERT_TRUE(rig.until([&, t = there, h = here] {
    most = std::max(most, memory());
    return rig.seen.end(h) && rig.client_seen[0].end(t);
  }));
  EXPECT_EQ(rig.server->counters().flooded, 1u);
  EXPECT_LE(most - before, size_t{60} << 10);  // 16 MiB, and what comes until that is noticed
}

TEST(Hostile, AnAnswerThatIsFarTooLongIsNotHeld) {
  Rig rig;
  rig.add();
  const auto [there, here] = rig.open_stream();
  rig.server->send(here, std::string(size_t{256} << 20, 'x'));
  const size_t before = memory();
  size_t most = before;
  ASSERT_TRUE(rig.until([&, t = there, h = here] {
    most = std::max(most, memory());
    return rig.seen.end(h) && rig.client_seen[0].end(t);
  }));
  EXPECT_LE(most - before, size_t{60} << 10);
}

// Ten times what may lie unfinished, in small messages and in large ones, both ways.
TEST(Hostile, WhoSendsMuchThatIsWholeIsNotCut) {
  Limits limits;
  limits.message = 32'768;
  limits.unfinished = 65'536;
  Rig rig(limits);
  rig.add("a", limits);
  const auto [there, here] = rig.open_stream();
  size_t up = 0, down = 0;
  const auto send_up = [&, t = there] { rig.clients[0]->send(t, std::string(++up % 20 == 0 ? 32'768 : 10, 'u')); };
  const auto send_down = [&, h = here] { rig.server->send(h, std::string(++down % 20 == 0 ? 32'768 : 10, 'd')); };
  rig.on_client = [&](size_t, const RawEvent& e) {
    if (std::holds_alternative<WriteDone>(e) && up < 2000) send_up();
  };
  rig.on_server = [&](const RawEvent& e) {
    if (std::holds_alternative<WriteDone>(e) && down < 2000) send_down();
  };
  send_up();
  send_down();
  ASSERT_TRUE(rig.until([&] { return rig.seen.received.size() + rig.client_seen[0].received.size() == 4000; }))
      << rig.server->counters().flooded << " cut, " << rig.seen.received.size() << " up, "
      << rig.client_seen[0].received.size() << " down";
  rig.run(500ms);
  EXPECT_EQ(rig.server->counters().flooded, 0u);
  EXPECT_EQ(rig.seen.end(here), nullptr);
}

struct Links : testing::Test {
  static Limits quick() {
    Limits limits;
    limits.keepalive = 500ms;
    limits.keepalive_answer = 500ms;
    return limits;
  }
  Links() : rig(quick()), proxy(rig.server->port()) {
    rig.add(client_config(proxy.port(), "a", quick()));
    std::tie(there, here) = rig.open_stream();
  }
  Rig rig;
  Proxy proxy;
  StreamId there = 0, here = 0;
};

TEST_F(Links, ADeadOneIsNoticedAtBothEnds) {
  rig.run(2s);
  EXPECT_EQ(rig.seen.end(here), nullptr);  // silence is none
  proxy.freeze(true);
  const auto begun = Clock::now();
  ASSERT_TRUE(rig.until([&] { return rig.seen.end(here) && rig.client_seen[0].end(there); }));
  EXPECT_LE(Clock::now() - begun, 10s);
  EXPECT_EQ(rig.client_seen[0].end(there)->code, Code::kUnavailable);
  EXPECT_EQ(rig.seen.end(here)->code, Code::kCancelled);
}

// While bytes are under way, too.
TEST_F(Links, ADeadOneIsNoticedInTheMiddleOfAMessage) {
  const std::string message(1 << 20, 'm');
  rig.on_server = [&](const RawEvent& e) {
    if (std::holds_alternative<WriteDone>(e)) rig.server->send(here, message);
  };
  rig.server->send(here, message);
  ASSERT_TRUE(rig.until([&] { return rig.client_seen[0].received.size() > 3; }));
  proxy.freeze(true);
  const auto begun = Clock::now();
  ASSERT_TRUE(rig.until([&] { return rig.seen.end(here) && rig.client_seen[0].end(there); }));
  EXPECT_LE(Clock::now() - begun, 10s);
}

TEST_F(Links, OneThatWakesInTimeLosesNothing) {
  Limits patient;
  Rig slow(patient);
  Proxy wire(slow.server->port());
  slow.add(client_config(wire.port()));
  const auto [t, h] = slow.open_stream();
  wire.freeze(true);
  slow.clients[0]->send(t, "x");
  slow.run(1s);
  EXPECT_TRUE(slow.seen.received.empty());
  wire.freeze(false);
  ASSERT_TRUE(slow.until([&] { return slow.seen.received.size() == 1; }));
  EXPECT_EQ(slow.seen.end(h), nullptr);
}

}  // namespace
}  // namespace margay::rpc
