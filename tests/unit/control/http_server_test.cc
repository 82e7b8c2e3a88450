// SPDX-License-Identifier: Apache-2.0
// The HTTP server against clients that behave, and against those that do not.
#include "control/http/server.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <vector>

#include "common/fd.h"

namespace margay::control {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr HttpServer::Limits kLimits{.connections = 4, .request = milliseconds(400), .answer = milliseconds(400)};
const std::string kBig(8 << 20, 'x');

HttpServer::Answer page(const std::string& path) {
  if (path == "/metrics") return {.body = "up 1\n"};
  if (path == "/big") return {.body = kBig};
  return {.status = 404, .body = "no " + path + "\n"};
}

class Http : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = HttpServer::open({*IpAddress::parse("127.0.0.1"), 0}, page, kLimits);
    ASSERT_TRUE(opened) << opened.error().message;
    server = std::move(*opened);
  }
  Fd dial(int receive_buffer = 0) const {
    Fd fd(::socket(AF_INET, SOCK_STREAM, 0));
    if (receive_buffer > 0) ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(server->port());
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
    return fd;
  }
  static void say(const Fd& fd, const std::string& text) {
    (void)!::send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL);
  }
  // Until the other end closes.
  static std::string hear(const Fd& fd) {
    std::string all;
    char buffer[4096];
    for (ssize_t n = 1; n > 0;) {
      n = ::recv(fd.get(), buffer, sizeof buffer, 0);
      if (n > 0) all.append(buffer, static_cast<size_t>(n));
    }
    return all;
  }
  std::string ask(const std::string& text) const {
    const Fd fd = dial();
    say(fd, text);
    return hear(fd);
  }
  std::unique_ptr<HttpServer> server;
};

constexpr const char* kGet = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";

TEST_F(Http, AnswersAndCloses) {
  EXPECT_EQ(ask(kGet),
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n"
            "Content-Length: 5\r\n\r\nup 1\n");
  const std::string head = ask("HEAD /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_NE(head.find("Content-Length: 5\r\n"), std::string::npos) << head;
  EXPECT_TRUE(head.ends_with("\r\n\r\n")) << head;
  EXPECT_EQ(ask("GET /x?y=z HTTP/1.1\r\nHost: x\r\n\r\n").substr(0, 22), "HTTP/1.1 404 Not Found");
  EXPECT_TRUE(ask("GET /x?y=z HTTP/1.1\r\nHost: x\r\n\r\n").ends_with("no /x\n"));
  EXPECT_EQ(ask("DELETE /metrics HTTP/1.1\r\nHost: x\r\n\r\n").substr(0, 12), "HTTP/1.1 405");
}

TEST_F(Http, WhatIsTooLargeOrNoHttpIsRefused) {
  const std::string large = "GET /metrics HTTP/1.1\r\nX: " + std::string(HttpServer::kHeaderMax, 'x') + "\r\n\r\n";
  EXPECT_NE(ask(large).find("HTTP/1.1 200"), 0u);
  EXPECT_EQ(ask("POST /metrics HTTP/1.1\r\nContent-Length: 100000\r\n\r\nxxxxxxxx").substr(0, 12), "HTTP/1.1 413");
  EXPECT_EQ(ask(std::string("\x16\x03\x01\x02\x00", 5) + std::string(100, '\xff') + "\r\n\r\n"), "");
  EXPECT_NE(ask(kGet).find("up 1"), std::string::npos);
}

TEST_F(Http, ASlowClientHoldsUpNobodyAndIsDropped) {
  const Clock::time_point begin = Clock::now();
  const Fd silent = dial(), slow = dial();
  say(slow, "GET /met");
  EXPECT_NE(ask(kGet).find("up 1"), std::string::npos);
  // A byte now and then does not prolong its time.
  for (int i = 0; i < 10; ++i) {
    say(slow, "r");
    ::usleep(100'000);
  }
  EXPECT_EQ(hear(slow), "");
  EXPECT_EQ(hear(silent), "");
  EXPECT_GE(Clock::now() - begin, kLimits.request);
}

TEST_F(Http, ASlowReaderIsDropped) {
  const Fd slow = dial(4096);
  say(slow, "GET /big HTTP/1.1\r\nHost: x\r\n\r\n");
  ::usleep(100'000);
  EXPECT_NE(ask(kGet).find("up 1"), std::string::npos);
  ::usleep(1'000'000);
  EXPECT_LT(hear(slow).size(), kBig.size());
}

TEST_F(Http, NoMoreConnectionsThanItsBound) {
  std::vector<Fd> held;
  for (size_t i = 0; i < kLimits.connections; ++i) held.push_back(dial());
  ::usleep(100'000);
  EXPECT_EQ(ask(kGet), "");
  held.clear();
  ::usleep(100'000);
  EXPECT_NE(ask(kGet).find("up 1"), std::string::npos);
}

TEST_F(Http, APortInUseIsAnError) {
  const auto second = HttpServer::open({*IpAddress::parse("127.0.0.1"), server->port()}, page);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().message,
            "cannot listen on 127.0.0.1:" + std::to_string(server->port()) + ": Address already in use");
}

TEST_F(Http, EndsWithConnectionsOpen) {
  const Fd open = dial();
  say(open, "GET");
  server.reset();
  EXPECT_EQ(hear(open), "");
}

}  // namespace
}  // namespace margay::control
