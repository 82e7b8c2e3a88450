// SPDX-License-Identifier: Apache-2.0
// HTTPS among peers, both ends at once: the server of reports, and the Prober that asks it (CSMA-30, CSMA-33).
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

#include "common/fd.h"
#include "control/collection/http/prober.h"
#include "control/http/server.h"
#include "tests/unit/control/security/pki_rig.h"

namespace margay::control {
namespace {

using namespace std::chrono_literals;
using security::Kind;
using security::Pki;
using security::Side;

struct Pkis {
  Pkis() {
    for (const char* what :
         {"c-sma site-1", "c-sma site-2", "sci a ARS=1", "sci b ARS=2", "sci gone ARS=3", "c-ps ps-1"})
      ours.pki(what);
    ours.pki("revoke gone");
    theirs.pki("c-sma site-1");
    theirs.pki("sci a ARS=1");
  }
  Pki ours, theirs;
};
const Pkis& pkis() {
  static const Pkis made;
  return made;
}

constexpr HttpServer::Limits kTlsLimits{.connections = 8, .request = 1000ms, .answer = 1000ms};

class Https : public testing::Test {
 protected:
  void serve(std::shared_ptr<security::Credentials> credentials = pkis().ours.credentials("a")) {
    HttpServer::Tls tls{.credentials = std::move(credentials),
                        .peers = {.kind = Kind::kCSma, .identity = "site-1"},
                        .refused = [this](security::Refusal why, const std::string& detail) {
                          const std::lock_guard lock(mutex);
                          refused.push_back(why);
                          EXPECT_NE(detail, "");
                        }};
    auto opened = HttpServer::open(
        {*IpAddress::parse("127.0.0.1"), 0},
        [this](const std::string& path, HttpServer::Respond respond) { page(path, std::move(respond)); },
        std::move(tls), kTlsLimits);
    ASSERT_TRUE(opened) << opened.error().message;
    server = std::move(*opened);
  }
  void TearDown() override {
    if (late.joinable()) late.join();
  }
  void page(const std::string& path, HttpServer::Respond respond) {
    ++asked;
    if (path == "/late") {
      late = std::thread([respond = std::move(respond)] {
        std::this_thread::sleep_for(300ms);
        respond({.body = "late"});
      });
    } else if (path == "/large") {
      respond({.body = std::string(Prober::kBodyMax + 1, 'x')});
    } else if (path == "/hangs") {
      hanging = std::move(respond);
    } else if (path == "/busy") {
      respond({.status = 503, .body = "asked too often\nand more\n"});
    } else {
      respond({.body = "report " + path});
    }
  }

  struct Got {
    Prober::Answer answer;
    std::shared_ptr<security::Handshake> handshake;
  };
  Got ask(const std::string& path, const std::shared_ptr<const security::Trust>& trust = pkis().ours.trust("site-1"),
          const security::Expected& expected = {.kind = Kind::kSci}, Nanoseconds timeout = 5 * kSecond) const {
    Prober prober;
    Got got{.answer = {}, .handshake = std::make_shared<security::Handshake>(trust, Side::kServer, expected)};
    prober.ask({.ticket = 7,
                .url = "https://127.0.0.1:" + std::to_string(server->port()) + path,
                .timeout = timeout,
                .handshake = got.handshake});
    for (int i = 0; i < 200; ++i) {
      auto answers = prober.poll(100ms);
      if (answers.empty()) continue;
      got.answer = std::move(answers.front());
      return got;
    }
    ADD_FAILURE() << "no answer";
    return got;
  }
  std::vector<security::Refusal> seen() {
    const std::lock_guard lock(mutex);
    return refused;
  }
  void await_refusals(size_t count) {
    for (int i = 0; i < 200 && seen().size() < count; ++i) std::this_thread::sleep_for(10ms);
  }

  std::mutex mutex;
  std::vector<security::Refusal> refused;
  std::atomic<int> asked{0};
  HttpServer::Respond hanging;
  std::thread late;
  std::unique_ptr<HttpServer> server;
};

TEST_F(Https, BothEndsKnowEachOther_CSMA30_CSMA33) {
  serve();
  const Got got = ask("/v1/report/1");
  EXPECT_EQ(got.answer.verdict, Prober::Verdict::kOk) << got.answer.detail;
  EXPECT_EQ(got.answer.body, "report /v1/report/1");
  ASSERT_FALSE(got.handshake->peer().refusal);
  EXPECT_TRUE(got.handshake->peer().peer.may_report("1", "ARS"));
  EXPECT_TRUE(seen().empty());
}

TEST_F(Https, WhoMayNotAskIsRefusedByNameAndAsksNothing) {
  serve();
  EXPECT_NE(ask("/", pkis().ours.trust("ps-1")).answer.verdict, Prober::Verdict::kOk);
  EXPECT_NE(ask("/", pkis().ours.trust("site-2")).answer.verdict, Prober::Verdict::kOk);
  EXPECT_NE(ask("/", pkis().ours.trust("b")).answer.verdict, Prober::Verdict::kOk);
  // One of another CA that takes our server.
  const Pkis& p = pkis();
  p.theirs.write("mixed.pem", p.theirs.text("ca.pem") + p.ours.text("ca.pem"));
  const auto stranger = security::Trust::load({.ca = p.theirs.file("mixed.pem"),
                                               .certificate = p.theirs.file("site-1.pem"),
                                               .key = p.theirs.file("site-1.key")});
  EXPECT_NE(ask("/", *stranger).answer.verdict, Prober::Verdict::kOk);
  await_refusals(4);
  using security::Refusal;
  EXPECT_EQ(seen(),
            (std::vector<Refusal>{Refusal::kWrongName, Refusal::kWrongName, Refusal::kWrongName, Refusal::kUnknownCa}));
  EXPECT_EQ(asked, 0);
}

// TLS lets it through, we do not.
TEST_F(Https, WhoShowsNoCertificateIsRefusedToo) {
  serve();
  const std::string out = pkis().ours.file("answer");
  const std::string ask =
      "printf 'GET / HTTP/1.1\\r\\n\\r\\n' | timeout 20 openssl s_client -quiet -connect 127.0.0.1:" +
      std::to_string(server->port()) + " >" + out + " 2>/dev/null";
  (void)!std::system(ask.c_str());
  await_refusals(1);
  EXPECT_EQ(seen(), std::vector<security::Refusal>{security::Refusal::kNoCertificate});
  EXPECT_EQ(pkis().ours.text("answer"), "");
  EXPECT_EQ(asked, 0);
}

TEST_F(Https, AnAnswerOfSomebodyElseIsNotRead) {
  serve();
  const Got other = ask("/", pkis().ours.trust("site-1"), {.kind = Kind::kSci, .identity = "2"});
  EXPECT_EQ(other.answer.detail.substr(0, 11), "wrong_name:");
  EXPECT_EQ(other.answer.body, "");
  EXPECT_EQ(asked, 0);
  serve(pkis().theirs.credentials("a"));
  EXPECT_EQ(ask("/").answer.detail.substr(0, 11), "unknown_ca:");
  serve(pkis().ours.credentials("gone"));
  EXPECT_EQ(ask("/").answer.detail.substr(0, 20), "certificate_revoked:");
  serve(pkis().ours.credentials("ps-1"));
  EXPECT_EQ(ask("/").answer.detail.substr(0, 11), "wrong_name:");
}

TEST_F(Https, AnAnswerMayComeLaterAndFromAnotherThread) {
  serve();
  EXPECT_EQ(ask("/late").answer.body, "late");
}

TEST_F(Https, WhatIsLargeOrSlowIsCut_CSMA30) {
  serve();
  EXPECT_EQ(ask("/large").answer.detail, "body above 4194304 bytes");
  const auto begin = std::chrono::steady_clock::now();
  const Got slow = ask("/hangs", pkis().ours.trust("site-1"), {.kind = Kind::kSci}, kSecond / 2);
  EXPECT_TRUE(slow.answer.silent) << slow.answer.detail;
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 3s);
  EXPECT_EQ(ask("/busy").answer.detail, "status 503: asked too often");
  hanging({.body = "nobody is there any more"});
}

TEST_F(Https, ARenewedListCountsFromTheNextConnectionOn) {
  Pki pki;
  pki.pki("sci a ARS=1");
  pki.pki("c-sma site-1");
  const auto credentials = pki.credentials("a");
  serve(credentials);
  const auto asker = pki.trust("site-1");
  EXPECT_EQ(ask("/", asker).answer.verdict, Prober::Verdict::kOk);
  pki.pki("revoke site-1");
  ASSERT_TRUE(credentials->poll());
  EXPECT_NE(ask("/", asker).answer.verdict, Prober::Verdict::kOk);
  await_refusals(1);
  EXPECT_EQ(seen(), std::vector<security::Refusal>{security::Refusal::kRevoked});
}

TEST_F(Https, IdleConnectionsKeepNobodyOut) {
  serve();
  std::vector<Fd> idle;
  for (size_t i = 0; i < 3 * kTlsLimits.connections; ++i) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(server->port());
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    idle.emplace_back(::socket(AF_INET, SOCK_STREAM, 0));
    ASSERT_EQ(::connect(idle.back().get(), reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
  }
  EXPECT_EQ(ask("/").answer.verdict, Prober::Verdict::kOk);
}

}  // namespace
}  // namespace margay::control
