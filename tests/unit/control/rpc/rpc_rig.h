// SPDX-License-Identifier: Apache-2.0
#pragma once

// A server and clients in one process, over loopback and real TLS; the test is the loop of all of them.

#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "control/rpc/client.h"
#include "control/rpc/server.h"
#include "tests/unit/control/security/pki_rig.h"

namespace margay::rpc {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr const char* kMethod = "/margay.v1.Collection/Push";
// A machine that does much else at once is slow, not wrong.
constexpr auto kPatience = 60s;

struct Pkis {
  Pkis() {
    ours.pki("c-sma site-1");
    ours.pki("c-sma site-2");
    ours.pki("sci a ARS=1");
    ours.pki("sci b ARS=2", "--key ed25519");
    ours.pki("sci old ARS=3", "--from -10 --days 5");
    ours.pki("c-ps ps-1");
    theirs.pki("c-sma site-1");
    theirs.pki("sci a ARS=1");
  }
  security::Pki ours, theirs;
};
inline Pkis& pkis() {
  static Pkis made;
  return made;
}

inline ServerConfig server_config(Limits limits = {}) {
  return {.method = kMethod,
          .listen = {.address = *IpAddress::parse("127.0.0.1"), .port = 0},
          .credentials = pkis().ours.credentials("site-1"),
          .peers = {.kind = security::Kind::kSci},
          .limits = limits};
}
inline ClientConfig client_config(uint16_t port, const std::string& name = "a", Limits limits = {}) {
  return {.method = kMethod,
          .server = "127.0.0.1:" + std::to_string(port),
          .credentials = pkis().ours.credentials(name),
          .peer = {.kind = security::Kind::kCSma, .identity = "site-1"},
          .limits = limits};
}

// What came out of one side's queue.
struct Seen {
  std::vector<Opened> opened;
  std::vector<std::pair<StreamId, std::string>> received;
  std::map<StreamId, size_t> written;
  std::map<StreamId, Closed> closed;
  std::vector<Refused> refused;

  const Closed* end(StreamId id) const {
    const auto found = closed.find(id);
    return found == closed.end() ? nullptr : &found->second;
  }
  bool was_refused(const std::string& reason) const {
    return std::ranges::any_of(refused, [&](const Refused& r) { return r.reason == reason; });
  }
};

template <class Side>
bool drain(Side& side, Seen& seen, const std::function<void(const RawEvent&)>& react = {}) {
  bool any = false;
  while (auto event = side.next()) {
    any = true;
    if (react) react(*event);
    if (auto* const opened = std::get_if<Opened>(&*event)) seen.opened.push_back(*opened);
    if (auto* const got = std::get_if<Received<std::string>>(&*event))
      seen.received.emplace_back(got->id, got->message);
    if (auto* const written = std::get_if<WriteDone>(&*event)) ++seen.written[written->id];
    if (auto* const closed = std::get_if<Closed>(&*event)) seen.closed.emplace(closed->id, *closed);
    if (auto* const refused = std::get_if<Refused>(&*event)) seen.refused.push_back(*refused);
  }
  return any;
}

#if defined(__SANITIZE_ADDRESS__)
#define MARGAY_MEMORY_IS_OURS 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MARGAY_MEMORY_IS_OURS 0
#endif
#endif
#ifndef MARGAY_MEMORY_IS_OURS
#define MARGAY_MEMORY_IS_OURS 1
#endif

// Kilobytes. Always 0 where a sanitizer keeps what was freed.
inline size_t memory(const std::string& key = "VmRSS:") {
  if (!MARGAY_MEMORY_IS_OURS) return 0;
  std::ifstream status("/proc/self/status");
  std::string word;
  size_t value = 0;
  while (status >> word) {
    if (word == key) status >> value;
  }
  return value;
}

struct Rig {
  explicit Rig(const Limits& limits = {}) : Rig(server_config(limits)) {}
  explicit Rig(ServerConfig config) {
    auto opened = Server::open(std::move(config));
    EXPECT_TRUE(opened) << opened.error().message;
    server = std::move(*opened);
  }
  size_t add(ClientConfig config) {
    auto opened = Client::open(std::move(config));
    EXPECT_TRUE(opened) << opened.error().message;
    clients.push_back(std::move(*opened));
    client_seen.emplace_back();
    return clients.size() - 1;
  }
  size_t add(const std::string& name = "a", Limits limits = {}) {
    return add(client_config(server->port(), name, limits));
  }

  // Serves all queues until it holds. False: it did not within `patience`.
  bool until(const std::function<bool()>& holds, Clock::duration patience = kPatience) {
    const auto end = Clock::now() + patience;
    for (;;) {
      turn();
      if (holds()) return true;
      if (Clock::now() > end) return false;
    }
  }
  void run(Clock::duration time) {
    (void)until([] { return false; }, time);
  }
  // A thousand clients are asked one by one: that costs less than the kernel's looking at all of their descriptors.
  void turn() {
    std::vector<pollfd> fds;
    if (server) fds.push_back({.fd = server->fd(), .events = POLLIN, .revents = 0});
    for (size_t i = 0; i < std::min<size_t>(clients.size(), 8); ++i) {
      fds.push_back({.fd = clients[i]->fd(), .events = POLLIN, .revents = 0});
    }
    poll(fds.data(), fds.size(), 5);
    if (server)
      drain(*server, seen, [this](const RawEvent& e) {
        if (on_server) on_server(e);
      });
    for (size_t i = 0; i < clients.size(); ++i) {
      drain(*clients[i], client_seen[i], [this, i](const RawEvent& e) {
        if (on_client) on_client(i, e);
      });
    }
  }
  // A stream of a client that is open at both ends: its id there and here.
  std::pair<StreamId, StreamId> open_stream(size_t client = 0) {
    const size_t before = seen.opened.size(), there = client_seen[client].opened.size();
    const StreamId id = clients[client]->open();
    EXPECT_TRUE(until([&] { return seen.opened.size() > before && client_seen[client].opened.size() > there; }));
    return {id, seen.opened.empty() ? 0 : seen.opened.back().id};
  }

  std::unique_ptr<Server> server;
  std::vector<std::unique_ptr<Client>> clients;
  Seen seen;
  std::vector<Seen> client_seen;
  std::function<void(const RawEvent&)> on_server;
  std::function<void(size_t, const RawEvent&)> on_client;
};

}  // namespace margay::rpc
