// SPDX-License-Identifier: Apache-2.0
// Who may speak to whom (CSMA-131, 132, 135..137, 186), at both ends of real connections.
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "tests/unit/control/rpc/rpc_rig.h"

namespace margay::rpc {
namespace {

using security::Expected;
using security::Kind;

// A client's stream that the server's check must end.
void expect_turned_away(ClientConfig config, const std::string& reason) {
  Rig rig;
  config.server = "127.0.0.1:" + std::to_string(rig.server->port());
  rig.add(std::move(config));
  const StreamId id = rig.clients[0]->open();
  ASSERT_TRUE(rig.until([&] { return rig.client_seen[0].end(id) != nullptr && !rig.seen.refused.empty(); }));
  EXPECT_TRUE(rig.seen.was_refused(reason)) << rig.seen.refused[0].reason;
  EXPECT_EQ(rig.seen.refused.size(), 1u);
  EXPECT_TRUE(rig.seen.opened.empty());
  EXPECT_TRUE(rig.client_seen[0].opened.empty());
  EXPECT_EQ(rig.client_seen[0].end(id)->code, Code::kUnavailable);
}

TEST(Authentication, AClientOfAnotherCa) {
  ClientConfig config = client_config(0);
  auto files = pkis().theirs.files("a");
  files.ca = pkis().ours.file("ca.pem");  // it would take our server
  files.crl.clear();
  config.credentials = *security::Credentials::open(files);
  expect_turned_away(std::move(config), "unknown_ca");
}

TEST(Authentication, AClientWhoseTimeIsOver) { expect_turned_away(client_config(0, "old"), "certificate_expired"); }

TEST(Authentication, AClientOfAnotherKind) { expect_turned_away(client_config(0, "ps-1"), "wrong_name"); }

TEST(Authentication, AClientThatWasRevoked) {
  pkis().ours.pki("sci r ARS=9");
  pkis().ours.pki("revoke r");
  expect_turned_away(client_config(0, "r"), "certificate_revoked");
}

// A client's check must end it.
void expect_server_refused(Rig& rig, ClientConfig config, const std::string& reason) {
  config.server = "127.0.0.1:" + std::to_string(rig.server->port());
  rig.add(std::move(config));
  const StreamId id = rig.clients[0]->open();
  ASSERT_TRUE(rig.until([&] { return rig.client_seen[0].end(id) != nullptr; }));
  EXPECT_EQ(rig.client_seen[0].end(id)->code, Code::kUnauthenticated);
  EXPECT_EQ(rig.client_seen[0].end(id)->why, reason);
  EXPECT_TRUE(rig.client_seen[0].was_refused(reason));
  EXPECT_TRUE(rig.client_seen[0].opened.empty());
  EXPECT_TRUE(rig.seen.received.empty());
}

TEST(Authentication, AServerOfAnotherName) {
  Rig rig;
  ClientConfig config = client_config(0);
  config.peer.identity = "site-2";
  expect_server_refused(rig, std::move(config), "wrong_name");
}

TEST(Authentication, AServerOfAnotherKind) {
  Rig rig;
  ClientConfig config = client_config(0);
  config.peer = {.kind = Kind::kCPs, .identity = {}};
  expect_server_refused(rig, std::move(config), "wrong_name");
}

TEST(Authentication, AServerOfAnotherCa) {
  ServerConfig server = server_config();
  server.credentials = pkis().theirs.credentials("site-1");
  Rig rig(std::move(server));
  expect_server_refused(rig, client_config(0), "unknown_ca");
}

TEST(Authentication, AServerThatWasRevoked) {
  pkis().ours.pki("c-sma gone");
  pkis().ours.pki("revoke gone");
  ServerConfig server = server_config();
  server.credentials = pkis().ours.credentials("gone");
  Rig rig(std::move(server));
  ClientConfig config = client_config(0);
  config.peer.identity = "gone";
  expect_server_refused(rig, std::move(config), "certificate_revoked");
}

struct Live : testing::Test {
  Live() {
    pki.pki("c-sma site-1");
    pki.pki("c-sma next");
    pki.pki("sci a ARS=1");
    pki.pki("sci b ARS=2");
    credentials = pki.credentials("site-1");
    ServerConfig config = server_config();
    config.credentials = credentials;
    rig.emplace(std::move(config));
    add("a");
    add("b");
    a = rig->open_stream(0);
    b = rig->open_stream(1);
  }
  void add(const std::string& name) {
    ClientConfig config = client_config(rig->server->port());
    config.credentials = pki.credentials(name);
    rig->add(std::move(config));
  }
  security::Pki pki;
  std::shared_ptr<security::Credentials> credentials;
  std::optional<Rig> rig;
  std::pair<StreamId, StreamId> a, b;
};

// TLS looks at a certificate once; a stream lives for weeks.
TEST_F(Live, AStreamWhosePeerIsRevokedEndsAndNoOther) {
  pki.pki("revoke a");
  const auto begun = Clock::now();
  ASSERT_TRUE(credentials->reload());
  ASSERT_TRUE(rig->until([&] { return rig->seen.end(a.second) && rig->client_seen[0].end(a.first); }));
  EXPECT_LE(Clock::now() - begun, 5s);
  EXPECT_TRUE(rig->seen.end(a.second)->by_us);
  EXPECT_EQ(rig->seen.end(a.second)->why, "certificate_revoked");
  EXPECT_EQ(rig->client_seen[0].end(a.first)->code, Code::kUnauthenticated);
  EXPECT_EQ(rig->client_seen[0].end(a.first)->why, "certificate_revoked");
  rig->run(1500ms);
  EXPECT_EQ(rig->seen.end(b.second), nullptr);
  EXPECT_TRUE(rig->clients[1]->send(b.first, "still here"));
  ASSERT_TRUE(rig->until([&] { return !rig->seen.received.empty(); }));
}

// The connection was let in before; its next stream is not.
TEST_F(Live, ANewStreamOfARevokedPeersConnectionIsRefused) {
  pki.pki("revoke a");
  ASSERT_TRUE(credentials->reload());
  const StreamId second = rig->clients[0]->open();
  ASSERT_TRUE(rig->until([&] { return rig->client_seen[0].end(second) != nullptr; }));
  EXPECT_EQ(rig->client_seen[0].end(second)->code, Code::kUnauthenticated);
  EXPECT_EQ(rig->seen.opened.size(), 2u);
  EXPECT_TRUE(rig->seen.was_refused("certificate_revoked"));
}

TEST_F(Live, AClientEndsTheStreamOfARevokedServer) {
  auto watched = pki.credentials("a");
  ClientConfig config = client_config(rig->server->port());
  config.credentials = watched;
  const size_t third = rig->add(std::move(config));
  const auto [there, here] = rig->open_stream(third);
  pki.pki("revoke site-1");
  ASSERT_TRUE(watched->reload());
  ASSERT_TRUE(rig->until([&, t = there] { return rig->client_seen[third].end(t) != nullptr; }));
  EXPECT_TRUE(rig->client_seen[third].end(there)->by_us);
  EXPECT_EQ(rig->client_seen[third].end(there)->why, "certificate_revoked");
  (void)here;
}

// A renewed certificate serves the next connections, and those that stand stay.
TEST_F(Live, ARenewedCertificateServesWithoutAnEnd) {
  const auto serial = [&](size_t client) { return rig->client_seen[client].opened.back().peer->serial; };
  const std::string old = serial(0);
  std::filesystem::remove(pki.file("site-1.pem"));
  std::filesystem::remove(pki.file("site-1.key"));
  pki.pki("c-sma site-1");
  const auto polled = credentials->poll();
  ASSERT_TRUE(polled && *polled);
  rig->run(1200ms);  // the server looks once a second
  add("a");
  rig->open_stream(2);
  EXPECT_NE(serial(2), old);
  EXPECT_EQ(rig->seen.end(a.second), nullptr);
  EXPECT_TRUE(rig->clients[0]->send(a.first, "old"));
  EXPECT_TRUE(rig->clients[2]->send(rig->client_seen[2].opened.back().id, "new"));
  ASSERT_TRUE(rig->until([&] { return rig->seen.received.size() == 2; }));
}

TEST_F(Live, AMismatchedPairIsKeptOut) {
  pki.write("site-1.key", pki.text("next.key"));
  EXPECT_FALSE(credentials->poll());
  add("a");
  rig->open_stream(2);
  EXPECT_EQ(rig->client_seen[2].opened.size(), 1u);
}

}  // namespace
}  // namespace margay::rpc
