// SPDX-License-Identifier: Apache-2.0
#pragma once

// A wire between a client and a server that a test can freeze, as a dead link is: bytes are neither passed nor refused.
// One connection at a time; a thread of its own.

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <thread>

#include "common/fd.h"

namespace margay::rpc {

inline sockaddr_in loopback(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

inline Fd connect_to(uint16_t port) {
  Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in address = loopback(port);
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return Fd();
  return fd;
}

class Proxy {
 public:
  explicit Proxy(uint16_t server) : server_(server), listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = loopback(0);
    socklen_t size = sizeof address;
    EXPECT_EQ(bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(listen(listener_.get(), 16), 0);
    EXPECT_EQ(getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { run(); });
  }
  ~Proxy() {
    stop_ = true;
    thread_.join();
  }
  uint16_t port() const { return port_; }
  void freeze(bool on) { frozen_ = on; }

 private:
  void run() {
    while (!stop_) {
      pollfd in{.fd = listener_.get(), .events = POLLIN, .revents = 0};
      if (poll(&in, 1, 10) <= 0) continue;
      Fd client(accept(listener_.get(), nullptr, nullptr));
      Fd server = connect_to(server_);
      if (client && server) pass(client.get(), server.get());
    }
  }
  void pass(int client, int server) {
    while (!stop_) {
      std::array<pollfd, 2> ends{pollfd{.fd = client, .events = POLLIN, .revents = 0},
                                 pollfd{.fd = server, .events = POLLIN, .revents = 0}};
      poll(ends.data(), 2, frozen_ ? 0 : 10);
      if (frozen_) {
        usleep(10'000);
        continue;
      }
      if ((ends[0].revents != 0 && !copy(client, server)) || (ends[1].revents != 0 && !copy(server, client))) return;
    }
  }
  static bool copy(int from, int to) {
    std::array<char, 65536> chunk;
    const ssize_t got = read(from, chunk.data(), chunk.size());
    return got > 0 && send(to, chunk.data(), static_cast<size_t>(got), MSG_NOSIGNAL) == got;
  }

  const uint16_t server_;
  Fd listener_;
  uint16_t port_ = 0;
  std::atomic<bool> stop_{false}, frozen_{false};
  std::thread thread_;
};

}  // namespace margay::rpc
