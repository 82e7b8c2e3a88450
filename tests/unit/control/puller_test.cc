// SPDX-License-Identifier: Apache-2.0
// The C-SMA's questions: over real gRPC to an SCI that is a server of the test's, and over a Prober that is the test.
#include "control/agent/puller.h"

#include "control/record/wire.h"
#include "tests/unit/control/rpc/rpc_rig.h"

namespace margay::control {
namespace {

using rpc::pkis;

class Pulls : public testing::Test {
 protected:
  void SetUp() override {
    puller = std::make_unique<Puller>(pkis().ours.credentials("site-1"), -1, 1,
                                      [this](const Prober::Question& q) { questions.push_back(q); });
  }
  void pull(const PullTarget& target) {
    puller->configure({target}, now.monotonic);
    now.monotonic += kSecond;
    turn();
  }
  void turn() {
    puller->turn(now, [this](const c_sma::Event& e) { tell(e); });
  }
  void tell(const c_sma::Event& event) {
    if (const auto* r = std::get_if<c_sma::ReportReceived>(&event)) reports.push_back(*r);
    if (const auto* u = std::get_if<c_sma::ReportUnreadable>(&event)) unreadable.push_back(u->why);
    if (const auto* f = std::get_if<c_sma::PullFailed>(&event)) failures.push_back(f->why);
    if (const auto* r = std::get_if<c_sma::Revoked>(&event)) revoked.push_back(r->identity);
  }
  static v1::Report report_of(const std::string& csci_id, uint64_t sequence = 1) {
    Report report;
    report.csci_id = csci_id;
    report.cs_id = "ARS";
    report.sequence = sequence;
    report.epoch = 5;
    v1::Report message;
    to_wire(report, message);
    return message;
  }
  const PullPlan::Pull& status() const { return puller->plan().pulls().at("1"); }

  Time now{.monotonic = 100 * kSecond, .unix_ms = 1'800'000'000'000};
  std::vector<Prober::Question> questions;
  std::vector<c_sma::ReportReceived> reports;
  std::vector<std::string> unreadable, failures, revoked;
  std::unique_ptr<Puller> puller;
};

// ---- HTTPS

class PullsByHttp : public Pulls {
 protected:
  void SetUp() override {
    Pulls::SetUp();
    pull({.csci_id = "1", .url = "https://h:1/v1/report/1", .every = 5 * kSecond, .timeout = 2 * kSecond});
  }
  // As the Prober would, of whoever has this certificate.
  void answer(const std::string& body, const std::string& certificate = "a") {
    ASSERT_FALSE(questions.empty());
    const Prober::Question q = questions.back();
    questions.clear();
    if (!certificate.empty()) q.handshake->judge(pkis().ours.text(certificate + ".pem"), "");
    Prober::Answer a{.ticket = q.ticket, .verdict = Prober::Verdict::kOk, .body = body};
    EXPECT_TRUE(puller->answer(a, now, [this](const c_sma::Event& e) { tell(e); }));
  }
  void again() {
    now.monotonic += 10 * kSecond;
    turn();
  }
};

TEST_F(PullsByHttp, AnAnswerIsAReportOfItsAuthenticatedSender_CSMA30_CSMA33) {
  ASSERT_EQ(questions.size(), 1u);
  EXPECT_EQ(questions[0].url, "https://h:1/v1/report/1");
  EXPECT_EQ(questions[0].timeout, 2 * kSecond);
  EXPECT_NE(questions[0].ticket & Puller::kTickets, 0u);
  answer(report_of("1").SerializeAsString());
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].report.csci_id, "1");
  EXPECT_EQ(reports[0].stream, 0u);
  EXPECT_FALSE(reports[0].pulled);
  EXPECT_EQ(reports[0].peer->names, (std::set<c_sma::SciName>{{"1", "ARS"}}));
  EXPECT_FALSE(reports[0].peer->co_located);
  EXPECT_EQ(reports[0].peer->identity, "CN=a");
  EXPECT_EQ(status().answered, 1u);
  EXPECT_EQ(puller->next_due(), status().asked_at + 5 * kSecond);
}

// That its certificate does not name the SCI is for the Validator to say: then it is audited as any such report.
TEST_F(PullsByHttp, TheNamesAreThoseOfTheCertificate_D16) {
  answer(report_of("1").SerializeAsString(), "b");
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].peer->names, (std::set<c_sma::SciName>{{"2", "ARS"}}));
}

TEST_F(PullsByHttp, WhatTheCoreWantsIsToldAsPulled_CSMA69) {
  answer(report_of("1").SerializeAsString());
  ASSERT_TRUE(puller->want("1"));
  turn();
  answer(report_of("1", 2).SerializeAsString());
  ASSERT_EQ(reports.size(), 2u);
  EXPECT_TRUE(reports[1].pulled);
}

TEST_F(PullsByHttp, WhatIsNoReportOfThatSciIsAFailureByName) {
  answer(report_of("2").SerializeAsString());
  EXPECT_EQ(status().fault, "the answer is of another SCI, 2");
  again();
  answer("\xff\xff");
  EXPECT_EQ(status().fault, "the answer is no margay.v1.Report");
  EXPECT_EQ(unreadable, std::vector<std::string>{"no message of this protocol"});
  again();
  answer(report_of("1").SerializeAsString(), "site-2");
  EXPECT_EQ(status().fault, "wrong_name");
  again();
  answer(report_of("1").SerializeAsString(), "");
  EXPECT_EQ(status().fault, "no_certificate");
  EXPECT_TRUE(reports.empty());
  EXPECT_TRUE(failures.empty());  // nobody asked for these in particular
  EXPECT_EQ(status().failed, 4u);
}

TEST_F(PullsByHttp, AFailureIsToldToTheCoreThatWantedIt_CSMA69) {
  ASSERT_TRUE(puller->want("1"));
  const Prober::Answer failed{
      .ticket = questions[0].ticket, .verdict = Prober::Verdict::kFailed, .detail = "status 503"};
  EXPECT_TRUE(puller->answer(failed, now, [this](const c_sma::Event& e) { tell(e); }));
  EXPECT_EQ(failures, std::vector<std::string>{"status 503"});
  EXPECT_TRUE(puller->answer(failed, now, [this](const c_sma::Event& e) { tell(e); }));  // once
  EXPECT_EQ(failures.size(), 1u);
  EXPECT_FALSE(puller->answer({.ticket = 7}, now, [this](const c_sma::Event& e) { tell(e); }));
}

TEST(PullsRevoked, TheSourceGoesWhenItsLastCertificateIsRevoked) {
  security::Pki pki;
  pki.pki("c-sma site-1");
  pki.pki("sci a ARS=1");
  pki.pki("sci older ARS=1");
  pki.pki("revoke older");
  const auto credentials = pki.credentials("site-1");
  Time now{.monotonic = 100 * kSecond};
  std::vector<Prober::Question> questions;
  std::vector<std::string> revoked;
  Puller puller(credentials, -1, 1, [&](const Prober::Question& q) { questions.push_back(q); });
  const auto tell = [&](const c_sma::Event& e) {
    if (const auto* r = std::get_if<c_sma::Revoked>(&e)) revoked.push_back(r->identity);
  };
  const auto answer = [&](const std::string& certificate) {
    now.monotonic += 5 * kSecond;
    puller.turn(now, tell);
    ASSERT_FALSE(questions.empty());
    const bool good = questions.back().handshake->judge(pki.text(certificate + ".pem"), "");
    Report report;
    report.csci_id = "1";
    report.cs_id = "ARS";
    v1::Report message;
    to_wire(report, message);
    using Verdict = Prober::Verdict;
    puller.answer({.ticket = questions.back().ticket,
                   .verdict = good ? Verdict::kOk : Verdict::kFailed,
                   .detail = good ? "" : "certificate_revoked",
                   .body = message.SerializeAsString()},
                  now, tell);
  };
  puller.configure({{.csci_id = "1", .url = "https://h:1/", .every = kSecond}}, now.monotonic);
  answer("a");
  answer("older");  // somebody with a certificate that was the SCI's once
  EXPECT_TRUE(revoked.empty());
  pki.pki("revoke a");
  ASSERT_TRUE(credentials->poll());
  answer("a");
  EXPECT_EQ(revoked, std::vector<std::string>{"CN=a"});
  answer("a");
  EXPECT_EQ(revoked.size(), 1u);
}

// ---- gRPC

class PullsByGrpc : public Pulls {
 protected:
  using Server = rpc::StreamServer<v1::PullRequest, v1::Report>;
  void serve(const std::string& certificate = "a", bool single = true) {
    auto opened = Server::open({.method = rpc::kSourcePull,
                                .single = single,
                                .listen = {.address = *IpAddress::parse("127.0.0.1"), .port = 0},
                                .credentials = pkis().ours.credentials(certificate),
                                .peers = {.kind = security::Kind::kCSma}});
    ASSERT_TRUE(opened) << opened.error().message;
    server = std::move(*opened);
  }
  std::string address() const { return "127.0.0.1:" + std::to_string(server->core().port()); }
  bool until(const std::function<bool()>& holds) {
    const auto end = rpc::Clock::now() + rpc::kPatience;
    for (; rpc::Clock::now() < end; ::usleep(2000)) {
      while (auto event = server->next()) {
        if (auto* got = std::get_if<rpc::Received<v1::PullRequest>>(&*event)) {
          asked.push_back(got->message.csci_id());
          if (reply) reply(got->id);
        }
        if (auto* written = std::get_if<rpc::WriteDone>(&*event); written != nullptr && after) after(written->id);
      }
      turn();
      if (holds()) return true;
    }
    return false;
  }

  std::vector<std::string> asked;
  std::function<void(rpc::StreamId)> reply, after;
  std::unique_ptr<Server> server;
};

TEST_F(PullsByGrpc, AnAnswerIsAReport_CSMA30) {
  serve();
  reply = [this](rpc::StreamId id) { server->send(id, report_of("1")); };
  pull({.csci_id = "1", .grpc = address()});
  ASSERT_TRUE(until([&] { return !reports.empty(); }));
  EXPECT_EQ(asked, std::vector<std::string>{"1"});
  EXPECT_EQ(reports[0].peer->names, (std::set<c_sma::SciName>{{"1", "ARS"}}));
  EXPECT_EQ(status().fault, "");
  ASSERT_TRUE(puller->want("1"));
  ASSERT_TRUE(until([&] { return reports.size() == 2; }));
  EXPECT_TRUE(reports[1].pulled);
}

TEST_F(PullsByGrpc, ItsEndAfterTheAnswerIsNoFailureOfTheNext) {
  serve();
  reply = [this](rpc::StreamId id) { server->send(id, report_of("1", asked.size())); };
  pull({.csci_id = "1", .grpc = address()});
  // Wanted again while the stream of the question before still ends.
  for (size_t i = 1; i <= 50; ++i) {
    ASSERT_TRUE(until([&] { return reports.size() >= i || status().failed > 0; }));
    puller->want("1");
  }
  EXPECT_EQ(status().failed, 0u) << status().fault;
}

TEST_F(PullsByGrpc, WhoSaysItTwiceIsHeardOnce) {
  serve("a", false);
  reply = [this](rpc::StreamId id) { server->send(id, report_of("1", 1)); };
  after = [this](rpc::StreamId id) { server->send(id, report_of("1", 2)); };
  pull({.csci_id = "1", .grpc = address(), .timeout = kSecond});
  ASSERT_TRUE(until([&] { return !reports.empty(); }));
  (void)until([until = rpc::Clock::now() + std::chrono::milliseconds(500)] { return rpc::Clock::now() > until; });
  EXPECT_EQ(reports.size(), 1u);
}

TEST_F(PullsByGrpc, FailuresHaveTheirReason) {
  serve();
  pull({.csci_id = "1", .grpc = address(), .timeout = kSecond / 2});
  ASSERT_TRUE(puller->want("1"));
  ASSERT_TRUE(until([&] { return !failures.empty(); }));  // no answer
  EXPECT_EQ(failures[0].substr(0, 8), "DEADLINE") << failures[0];
  reply = [this](rpc::StreamId id) { server->close(id, rpc::Code::kExhausted, "asked too often"); };
  ASSERT_TRUE(puller->want("1"));
  ASSERT_TRUE(until([&] { return failures.size() == 2; }));
  EXPECT_EQ(failures[1], "RESOURCE_EXHAUSTED: asked too often");
  pull({.csci_id = "1", .grpc = address(), .timeout = 60 * kSecond});
  v1::Report large = report_of("1");
  large.set_csci_id(std::string(5 << 20, 'x'));
  reply = [&](rpc::StreamId id) { server->send(id, large); };
  ASSERT_TRUE(puller->want("1"));
  ASSERT_TRUE(until([&] { return failures.size() == 3; }));
  EXPECT_NE(failures[2].find("larger than max"), std::string::npos) << failures[2];
  EXPECT_TRUE(reports.empty());
}

TEST_F(PullsByGrpc, WhoIsNoSciIsNotAsked_CSMA33) {
  serve("site-2");
  pull({.csci_id = "1", .grpc = address()});
  ASSERT_TRUE(puller->want("1"));
  ASSERT_TRUE(until([&] { return !failures.empty(); }));
  EXPECT_EQ(failures[0], "UNAUTHENTICATED: wrong_name");
  EXPECT_TRUE(asked.empty());
}

}  // namespace
}  // namespace margay::control
