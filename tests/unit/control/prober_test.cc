// SPDX-License-Identifier: Apache-2.0
// The prober against real sockets on loopback: what counts as the instance's failure, and that nobody waits for
// another.
#include "control/collection/http/prober.h"

#include <arpa/inet.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <atomic>
#include <functional>
#include <map>
#include <thread>

#include <gtest/gtest.h>

#include "common/fd.h"

namespace margay::control {
namespace {

using namespace std::chrono_literals;
using Verdict = Prober::Verdict;

// Accepts on loopback and gives each connection to `serve`; without one, connections wait for ever.
class Server {
 public:
  explicit Server(std::function<void(int)> serve = {}) : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    EXPECT_EQ(::listen(listener_.get(), 1024), 0);
    port = ntohs(address.sin_port);
    if (!serve) return;
    thread_ = std::thread([this, serve = std::move(serve)] {
      for (;;) {
        const Fd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
        if (!client) return;
        serve(client.get());
      }
    });
  }
  ~Server() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    if (thread_.joinable()) thread_.join();
  }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port) + "/health"; }

  uint16_t port = 0;

 private:
  Fd listener_;
  std::thread thread_;
};

std::function<void(int)> answering(const std::string& text) {
  return [text](int client) {
    char request[4096];
    (void)!::recv(client, request, sizeof request, 0);
    (void)!::send(client, text.data(), text.size(), MSG_NOSIGNAL);
  };
}

Prober::Answer ask(Prober& prober, const Prober::Question& question) {
  prober.ask(question);
  for (int i = 0; i < 100; ++i) {
    auto answers = prober.poll(100ms);
    if (!answers.empty()) return std::move(answers.front());
  }
  ADD_FAILURE() << "no answer";
  return {};
}

TEST(Prober, A2xxIsAPass) {
  Server server(answering("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"));
  Prober prober;
  const auto answer = ask(prober, {7, server.url(), "", 0, kSecond});
  EXPECT_EQ(answer.ticket, 7u);
  EXPECT_EQ(answer.verdict, Verdict::kOk) << answer.detail;
  EXPECT_EQ(prober.asking(), 0u);
}

TEST(Prober, TheBodyComesWithTheAnswer) {
  Server server(answering("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nup 1\n\n"));
  Prober prober;
  EXPECT_EQ(ask(prober, {1, server.url(), "", 0, kSecond}).body, "up 1\n\n");
}

// SCI-46, SCI-47: a wrong status, a refusal, a reset and silence are failures of the instance.
TEST(Prober, WhatTheInstanceDoesWrongIsItsFailure) {
  Prober prober;
  Server unavailable(answering("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"));
  auto answer = ask(prober, {1, unavailable.url(), "", 0, kSecond});
  EXPECT_EQ(answer.verdict, Verdict::kFailed);
  EXPECT_EQ(answer.detail, "status 503");

  Server moved(answering("HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"));
  EXPECT_EQ(ask(prober, {1, moved.url(), "", 0, kSecond}).detail, "status 302") << "no redirection is followed";

  Server closing([](int) {});
  EXPECT_EQ(ask(prober, {1, closing.url(), "", 0, kSecond}).verdict, Verdict::kFailed);

  Server no_http(answering("SSH-2.0-something\r\n"));
  EXPECT_EQ(ask(prober, {1, no_http.url(), "", 0, kSecond}).verdict, Verdict::kFailed);

  uint16_t dead_port = 0;
  { dead_port = Server().port; }
  answer = ask(prober, {1, "http://127.0.0.1:" + std::to_string(dead_port) + "/", "", 0, kSecond});
  EXPECT_EQ(answer.verdict, Verdict::kFailed);
  EXPECT_NE(answer.detail.find("Connection refused"), std::string::npos) << answer.detail;
}

// libcurl has no memory for it, but it is not us who lack any.
TEST(Prober, AHeaderLineWithoutEndIsItsFailure) {
  Server endless(answering("HTTP/1.1 200 OK\r\nX: " + std::string(200'000, 'x') + "\r\nContent-Length: 0\r\n\r\n"));
  Prober prober;
  const auto answer = ask(prober, {1, endless.url(), "", 0, 5 * kSecond});
  EXPECT_EQ(answer.verdict, Verdict::kFailed);
  EXPECT_EQ(answer.detail, "a line of the header is too long");
}

// The answer came in time, but nobody was there to take it: SIGSTOP, a long turn of the loop.
TEST(Prober, TimeOutsWhileWeStoodStillAreOurOwn_D51) {
  Server server([](int client) {
    std::this_thread::sleep_for(100ms);
    answering("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")(client);
  });
  Prober prober;
  prober.ask({1, server.url(), "", 0, 200 * kMillisecond});
  ASSERT_TRUE(prober.poll(0ms).empty());
  std::this_thread::sleep_for(400ms);
  std::vector<Prober::Answer> answers;
  while (answers.empty()) answers = prober.poll(100ms);
  EXPECT_NE(answers.front().verdict, Verdict::kFailed) << answers.front().detail;
}

TEST(Prober, ABodyWithoutEndIsCut) {
  std::atomic<bool> stop{false};
  Server endless([&](int client) {
    answering("HTTP/1.1 200 OK\r\n\r\n")(client);
    const std::string piece(65536, 'x');
    while (!stop && ::send(client, piece.data(), piece.size(), MSG_NOSIGNAL) > 0) {
    }
  });
  Prober prober;
  const auto answer = ask(prober, {1, endless.url(), "", 0, 30 * kSecond});
  stop = true;
  EXPECT_EQ(answer.verdict, Verdict::kFailed);
  EXPECT_EQ(answer.detail, "body above 4194304 bytes");
  EXPECT_LE(answer.body.size(), Prober::kBodyMax);
}

TEST(Prober, AConnectIsEnoughWhereThereIsNoUrl) {
  Server silent;
  Prober prober;
  EXPECT_EQ(ask(prober, {1, "", "127.0.0.1", silent.port, kSecond}).verdict, Verdict::kOk);
  uint16_t dead_port = 0;
  { dead_port = Server().port; }
  EXPECT_EQ(ask(prober, {1, "", "127.0.0.1", dead_port, kSecond}).verdict, Verdict::kFailed);
}

// D-54: what is wrong on our own side says nothing of the instance.
TEST(Prober, OurOwnErrorsAreNoFailures) {
  Prober prober;
  EXPECT_EQ(ask(prober, {1, "http://", "", 0, kSecond}).verdict, Verdict::kOwnError);
  EXPECT_EQ(ask(prober, {1, "gopher://127.0.0.1/", "", 0, kSecond}).verdict, Verdict::kOwnError);
}

// No descriptor left for a socket: nothing is known of the instance.
TEST(Prober, WithoutASocketNothingIsSaid) {
  Server good(answering("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"));
  Prober prober;
  prober.ask({1, good.url(), "", 0, kSecond});
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none = before;
  none.rlim_cur = 3;  // all of these are in use
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  std::vector<Prober::Answer> answers;
  for (int i = 0; i < 100 && answers.empty(); ++i) answers = prober.poll(100ms);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].verdict, Verdict::kOwnError) << answers[0].detail;
}

TEST(Prober, NoTimeLimitIsAShortOne) {
  Server hanging;
  Prober prober;
  EXPECT_EQ(ask(prober, {1, hanging.url(), "", 0, 0}).verdict, Verdict::kFailed);
}

TEST(Prober, HundredsAtOnceAndTheHangingHoldUpNobody) {
  Server good(answering("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"));
  Server hanging;
  Prober prober;
  std::map<uint64_t, Verdict> verdicts;
  for (uint64_t i = 0; i < 300; ++i) {
    prober.ask({i, i % 100 == 0 ? hanging.url() : good.url(), "", 0, 10 * kSecond});
  }
  const auto take = [&] {
    for (const auto& a : prober.poll(100ms)) verdicts[a.ticket] = a.verdict;
  };
  for (int i = 0; i < 500 && verdicts.size() < 297; ++i) take();
  EXPECT_EQ(verdicts.size(), 297u) << "all but those that hang, long before their time limit";
  for (const auto& [ticket, verdict] : verdicts) EXPECT_EQ(verdict, Verdict::kOk) << ticket;
  EXPECT_EQ(prober.asking(), 3u);
}

TEST(Prober, SilenceIsAFailureAfterItsTimeLimit) {
  Server hanging;
  Prober prober;
  const auto answer = ask(prober, {1, hanging.url(), "", 0, 50 * kMillisecond});
  EXPECT_EQ(answer.verdict, Verdict::kFailed);
  EXPECT_GE(answer.took, 50 * kMillisecond);
}

}  // namespace
}  // namespace margay::control
