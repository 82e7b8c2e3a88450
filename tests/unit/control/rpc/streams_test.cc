// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <iterator>
#include <set>
#include <string>

#include "tests/unit/control/rpc/rpc_rig.h"

namespace margay::rpc {
namespace {

Limits quick() {
  Limits limits;
  limits.close = 300ms;
  limits.keepalive = 500ms;
  limits.keepalive_answer = 500ms;
  return limits;
}

TEST(Signals, UrgentMessagesAreTakenInTurnWithTheRest) {  // CSMA-152
  const auto signals = *Signals::open();
  for (StreamId id = 1; id <= 6; ++id) {
    signals->put({.kind = Signal::Kind::kRead, .id = id, .urgent = id > 3, .text = {}, .reason = {}});
  }
  std::vector<StreamId> taken;
  while (const auto signal = signals->take()) taken.push_back(signal->id);
  EXPECT_EQ(taken, (std::vector<StreamId>{4, 1, 5, 2, 6, 3}));
}

TEST(Streams, AnUrgentMessageDoesNotWait) {  // CSMA-152
  ServerConfig config = server_config();
  config.urgent = [](std::string_view message) { return message == "urgent"; };
  Rig rig(std::move(config));
  rig.add();
  std::vector<StreamId> streams;
  for (int n = 0; n < 10; ++n) streams.push_back(rig.open_stream().first);
  for (const StreamId id : streams) EXPECT_TRUE(rig.clients[0]->send(id, id == streams.back() ? "urgent" : "routine"));
  std::this_thread::sleep_for(300ms);  // all wait at the server, whose queue nobody serves
  ASSERT_TRUE(rig.until([&] { return rig.seen.received.size() == streams.size(); }));
  EXPECT_EQ(rig.seen.received.front().second, "urgent");
}

TEST(Streams, MessagesGoBothWaysAndThePeerIsKnown) {
  Rig rig;
  rig.add();
  const auto [there, here] = rig.open_stream();
  const Opened& opened = rig.seen.opened.back();
  EXPECT_TRUE(opened.peer->may_report("1", "ARS"));
  EXPECT_FALSE(opened.peer->may_report("2", "ARS"));
  EXPECT_TRUE(opened.address.starts_with("127.0.0.1:"));
  EXPECT_EQ(rig.client_seen[0].opened.back().peer->subject, "CN=site-1");

  EXPECT_TRUE(rig.clients[0]->send(there, "up"));
  EXPECT_TRUE(rig.server->send(here, std::string(300'000, 'd')));
  ASSERT_TRUE(rig.until([&] { return !rig.seen.received.empty() && !rig.client_seen[0].received.empty(); }));
  EXPECT_EQ(rig.seen.received[0].second, "up");
  EXPECT_EQ(rig.client_seen[0].received[0].second, std::string(300'000, 'd'));
  ASSERT_TRUE(
      rig.until([&, t = there, h = here] { return rig.seen.written[h] == 1 && rig.client_seen[0].written[t] == 1; }));
}

TEST(Streams, TheEmptyMessageIsOne) {
  Rig rig;
  rig.add();
  rig.clients[0]->send(rig.open_stream().first, "");
  ASSERT_TRUE(rig.until([&] { return !rig.seen.received.empty(); }));
  EXPECT_EQ(rig.seen.received[0].second, "");
}

TEST(Streams, AClientThatCloses) {
  Rig rig;
  rig.add();
  const auto [there, here] = rig.open_stream();
  rig.clients[0]->close(there, Code::kOk, "done");
  ASSERT_TRUE(rig.until([&, t = there, h = here] { return rig.seen.end(h) && rig.client_seen[0].end(t); }));
  EXPECT_FALSE(rig.seen.end(here)->by_us);
  EXPECT_EQ(rig.seen.end(here)->code, Code::kOk);
  EXPECT_TRUE(rig.client_seen[0].end(there)->by_us);
  EXPECT_EQ(rig.client_seen[0].end(there)->why, "done");
  EXPECT_EQ(rig.server->counters().streams, 0u);
  EXPECT_FALSE(rig.server->send(here, "x"));
  EXPECT_FALSE(rig.clients[0]->send(there, "x"));
}

TEST(Streams, AServerThatClosesSaysWhy) {
  Rig rig;
  rig.add();
  const auto [there, here] = rig.open_stream();
  rig.server->close(here, Code::kDenied, "not your CSCI-ID");
  ASSERT_TRUE(rig.until([&, t = there, h = here] { return rig.seen.end(h) && rig.client_seen[0].end(t); }));
  EXPECT_TRUE(rig.seen.end(here)->by_us);
  EXPECT_FALSE(rig.client_seen[0].end(there)->by_us);
  EXPECT_EQ(rig.client_seen[0].end(there)->code, Code::kDenied);
  EXPECT_EQ(rig.client_seen[0].end(there)->why, "not your CSCI-ID");
}

TEST(Streams, EachMessageComesOnceAndInOrder) {
  Rig rig;
  rig.add();
  const auto [there, here] = rig.open_stream();
  constexpr size_t kCount = 2000;
  size_t sent = 0;
  const auto send = [&, t = there] { rig.clients[0]->send(t, std::to_string(sent++)); };
  rig.on_client = [&](size_t, const RawEvent& e) {
    if (std::holds_alternative<WriteDone>(e) && sent < kCount) send();
  };
  send();
  ASSERT_TRUE(rig.until([&] { return rig.seen.received.size() == kCount; }));
  for (size_t i = 0; i < kCount; ++i) EXPECT_EQ(rig.seen.received[i].second, std::to_string(i));
}

// CSMA-30: one message, one answer.
TEST(Streams, Single) {
  ServerConfig config = server_config();
  config.method = "/margay.v1.Source/Pull";
  config.single = true;
  Rig rig(std::move(config));
  ClientConfig client = client_config(rig.server->port());
  client.method = "/margay.v1.Source/Pull";
  client.single = true;
  rig.add(std::move(client));
  const auto [there, here] = rig.open_stream();
  rig.clients[0]->send(there, "?");
  ASSERT_TRUE(rig.until([&] { return !rig.seen.received.empty(); }));
  rig.run(100ms);  // its other half is closed by now, and the answer still goes out
  rig.server->send(here, "!");
  ASSERT_TRUE(rig.until([&, t = there, h = here] { return rig.seen.end(h) && rig.client_seen[0].end(t); }));
  ASSERT_EQ(rig.client_seen[0].received.size(), 1u);
  EXPECT_EQ(rig.client_seen[0].received[0].second, "!");
  EXPECT_EQ(rig.client_seen[0].end(there)->code, Code::kOk);
}

TEST(Streams, ADeadline) {
  Rig rig;
  ClientConfig config = client_config(rig.server->port());
  config.deadline = 500ms;
  rig.add(std::move(config));
  const auto [there, here] = rig.open_stream();
  ASSERT_TRUE(rig.until([&, t = there, h = here] { return rig.seen.end(h) && rig.client_seen[0].end(t); }));
  EXPECT_EQ(rig.client_seen[0].end(there)->code, Code::kDeadline);
}

TEST(Streams, NobodyListens) {
  Rig rig;
  const uint16_t port = rig.server->port();
  rig.server.reset();
  rig.add(client_config(port));
  const StreamId id = rig.clients[0]->open();
  ASSERT_TRUE(rig.until([&] { return rig.client_seen[0].end(id) != nullptr; }));
  EXPECT_EQ(rig.client_seen[0].end(id)->code, Code::kUnavailable);
  EXPECT_FALSE(rig.client_seen[0].end(id)->why.empty());
}

TEST(Streams, NoProxyOfTheEnvironmentIsUsed) {
  for (const char* name : {"grpc_proxy", "https_proxy", "http_proxy"}) setenv(name, "http://127.0.0.1:1", 1);
  Rig rig;
  rig.add();
  const StreamId id = rig.clients[0]->open();
  EXPECT_TRUE(rig.until([&] { return !rig.client_seen[0].opened.empty() || rig.client_seen[0].end(id) != nullptr; }));
  EXPECT_EQ(rig.client_seen[0].opened.size(), 1u);
  for (const char* name : {"grpc_proxy", "https_proxy", "http_proxy"}) unsetenv(name);
}

// The far end's loop stands still: neither it nor we hold more than a message or two, and what was sent arrives.
TEST(Streams, AReaderThatReadsNothingCostsAMessage) {
  Rig rig(quick());
  ClientConfig config = client_config(rig.server->port());
  rig.add(std::move(config));
  const auto [there, here] = rig.open_stream();
  auto reader = std::move(rig.clients[0]);  // stands still
  rig.clients.clear();
  const std::string message(1 << 20, 'm');
  size_t sent = 0;
  const auto send = [&, h = here] { sent += rig.server->send(h, message); };
  rig.on_server = [&](const RawEvent& e) {
    if (std::holds_alternative<WriteDone>(e)) send();
  };
  const size_t before = memory();
  send();
  rig.run(3s);
  EXPECT_LE(sent, 4u);
  EXPECT_LE(memory() - before, 20u << 10);
  EXPECT_EQ(rig.seen.end(here), nullptr);  // it answers keepalives, and is no reason to end anything

  // It is slow, not gone.
  const size_t last = sent;
  rig.on_server = {};
  rig.clients.push_back(std::move(reader));
  ASSERT_TRUE(rig.until([&] { return rig.client_seen[0].received.size() == last; }));
  (void)there;
}

TEST(Streams, AStreamThatIsClosedIsCancelledAfterItsTime) {
  Rig rig(quick());
  rig.add();
  const auto [there, here] = rig.open_stream();
  auto reader = std::move(rig.clients[0]);
  rig.clients.clear();
  const std::string message(1 << 20, 'm');
  rig.on_server = [&, h = here](const RawEvent& e) {
    if (std::holds_alternative<WriteDone>(e)) rig.server->send(h, message);
  };
  rig.server->send(here, message);
  rig.run(1s);
  rig.server->close(here, Code::kExhausted, "too slow");
  const auto begun = Clock::now();
  ASSERT_TRUE(rig.until([&, h = here] { return rig.seen.end(h) != nullptr; }));
  EXPECT_GE(Clock::now() - begun, 250ms);
  EXPECT_LE(Clock::now() - begun, 5s);
  EXPECT_EQ(rig.server->counters().cancelled, 1u);
  EXPECT_EQ(rig.seen.end(here)->why, "too slow");
  (void)there;
}

TEST(Streams, AnEndOfTheServerIsSeenAndTheNextOneFound) {
  Rig rig;
  rig.add();
  const auto [there, here] = rig.open_stream();
  ServerConfig again = server_config();
  again.listen.port = rig.server->port();
  rig.server.reset();
  ASSERT_TRUE(rig.until([&, t = there] { return rig.client_seen[0].end(t) != nullptr; }));
  EXPECT_FALSE(rig.client_seen[0].end(there)->by_us);
  auto opened = Server::open(std::move(again));
  ASSERT_TRUE(opened) << opened.error().message;
  rig.server = std::move(*opened);
  const auto begun = Clock::now();
  rig.open_stream();
  EXPECT_LE(Clock::now() - begun, 5s);
  (void)here;
}

// D-16, CSMA-32: many SCIs on one connection, and many connections.
void pass_messages(Rig& rig, size_t clients, size_t streams) {
  std::map<std::pair<size_t, StreamId>, std::string> want, got;
  rig.on_client = [&](size_t i, const RawEvent& e) {
    if (const auto* const opened = std::get_if<Opened>(&e)) {
      const std::string text = std::to_string(i) + "/" + std::to_string(opened->id);
      want[{i, opened->id}] = text + " back";
      rig.clients[i]->send(opened->id, text);
    }
    if (const auto* const received = std::get_if<Received<std::string>>(&e)) got[{i, received->id}] = received->message;
  };
  rig.on_server = [&](const RawEvent& e) {
    if (const auto* const received = std::get_if<Received<std::string>>(&e)) {
      rig.server->send(received->id, received->message + " back");
    }
  };
  for (size_t i = 0; i < clients; ++i) {
    for (size_t n = 0; n < streams; ++n) rig.clients[i]->open();
    if (i % 50 != 49) continue;
    ASSERT_TRUE(rig.until([&] { return want.size() == (i + 1) * streams; }));
  }
  ASSERT_TRUE(rig.until([&] { return got.size() == clients * streams; }, 2 * kPatience));
  EXPECT_EQ(got, want);
}

TEST(Streams, AThousandOnOneConnection) {
  Rig rig;
  rig.add();
  pass_messages(rig, 1, 1000);
  EXPECT_EQ(rig.server->counters().connections, 1u);
  EXPECT_EQ(rig.server->counters().streams, 1000u);
  std::set<const security::Peer*> peers;
  for (const Opened& opened : rig.seen.opened) peers.insert(opened.peer.get());
  EXPECT_EQ(peers.size(), 1u);
}

TEST(Streams, AThousandConnections) {
  Limits patient;
  patient.handshake = patient.open = patient.keepalive_answer = 120s;
  Rig rig(patient);
  const auto credentials = pkis().ours.credentials("a");
  for (size_t i = 0; i < 1000; ++i) {
    ClientConfig config{.method = kMethod,
                        .server = "127.0.0.1:" + std::to_string(rig.server->port()),
                        .credentials = credentials,
                        .peer = {.kind = security::Kind::kCSma, .identity = "site-1"},
                        .limits = patient};
    rig.add(std::move(config));
  }
  pass_messages(rig, 1000, 1);
  EXPECT_EQ(rig.server->counters().connections, 1000u);
  const std::filesystem::directory_iterator threads("/proc/self/task");
  EXPECT_LE(std::distance(begin(threads), end(threads)), 40);
  rig.clients.clear();
  rig.client_seen.clear();
  ASSERT_TRUE(rig.until([&] { return rig.server->counters().connections + rig.server->counters().streams == 0; }));
}

TEST(Streams, OverTheirLimitAreRefused) {
  Limits limits;
  limits.streams = 3;
  Rig rig(limits);
  rig.add();
  for (int i = 0; i < 5; ++i) rig.clients[0]->open();
  ASSERT_TRUE(
      rig.until([&] { return rig.client_seen[0].opened.size() == 3 && rig.client_seen[0].closed.size() == 2; }));
  EXPECT_EQ(rig.client_seen[0].closed.begin()->second.code, Code::kExhausted);
  EXPECT_EQ(rig.server->counters().too_many_streams, 2u);
  ASSERT_TRUE(rig.until([&] { return rig.seen.refused.size() == 2; }));
  EXPECT_TRUE(rig.seen.was_refused("too_many_streams"));
}

}  // namespace
}  // namespace margay::rpc
