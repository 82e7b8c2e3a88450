// SPDX-License-Identifier: Apache-2.0
// SCIs that let themselves be asked (SCI-27, CSMA-29, CSMA-30).
#include "control/collection/pull_port.h"

#include <optional>

#include "tests/unit/control/rpc/rpc_rig.h"

namespace margay::control {
namespace {

using rpc::pkis;

struct Told {
  std::optional<uint64_t> sequence;
  rpc::Code code{};
  std::string why;
  int times = 0;
};

class Ports : public testing::Test {
 protected:
  void open(bool grpc = false, const std::string& certificate = "a") {
    const security::Files files = pkis().ours.files(certificate);
    PulledBy by{.identity = "site-1"};
    if (grpc) by.grpc = AddressPort{*IpAddress::parse("127.0.0.1"), 0};
    auto opened =
        PullPort::open(by, {.ca = files.ca, .certificate = files.certificate, .key = files.key, .crl = files.crl}, -1,
                       [this](const std::string& csci_id) { return want(csci_id); });
    ASSERT_TRUE(opened) << opened.error().message;
    port = std::move(*opened);
  }
  // An SCI named 1 that has a token for a report, or not.
  bool want(const std::string& csci_id) {
    if (csci_id != "1") return false;
    ++wanted;
    if (token) report();
    return true;
  }
  bool report(bool full = true, const std::string& csci_id = "1") {
    Report made;
    made.csci_id = csci_id;
    made.sequence = ++sequence;
    made.full = full;
    made.trigger = Trigger::kPulled;
    return port->report(made);
  }
  void ask(const std::string& csci_id, Told& told) {
    port->ask(
        csci_id,
        [&told](const PullPort::Answer& a) {
          ++told.times;
          told.code = a.code;
          told.why = a.why;
          if (a.report != nullptr) told.sequence = a.report->sequence;
        },
        now);
  }

  Time now{.monotonic = 100 * kSecond};
  uint64_t sequence = 0;
  int wanted = 0;
  bool token = true;
  std::unique_ptr<PullPort> port;
};

TEST_F(Ports, AQuestionGetsAReportThatIsMadeForIt_CSMA30) {
  open();
  Told told;
  ask("1", told);
  EXPECT_EQ(told.sequence, 1u);
  EXPECT_EQ(wanted, 1);
  EXPECT_FALSE(report());  // nobody waits any more
  EXPECT_EQ(told.times, 1);
  EXPECT_EQ(port->counters().answered, 1u);
}

TEST_F(Ports, WithoutATokenItWaitsForTheNextFullReport) {
  open();
  token = false;
  Told first, second;
  ask("1", first);
  ask("1", second);
  EXPECT_FALSE(report(false));
  EXPECT_FALSE(report(true, "2"));
  EXPECT_EQ(first.times, 0);
  EXPECT_TRUE(report());
  EXPECT_EQ(first.sequence, 3u);
  EXPECT_EQ(second.sequence, 3u);
}

TEST_F(Ports, ButNotForEver) {
  open();
  token = false;
  Told told;
  ask("1", told);
  EXPECT_LE(port->next_due(), now.monotonic + PullPort::kPatience);
  now.monotonic += PullPort::kPatience - 1;
  port->turn(now);
  EXPECT_EQ(told.times, 0);
  now.monotonic += 1;
  port->turn(now);
  EXPECT_EQ(told.code, rpc::Code::kExhausted);
  EXPECT_EQ(told.why, "asked too often, expected to be asked again later");
  EXPECT_EQ(port->counters().refused, 1u);
}

TEST_F(Ports, WhatCannotBeAnsweredIsRefusedByName) {
  open();
  Told stranger;
  ask("2", stranger);
  EXPECT_EQ(stranger.code, rpc::Code::kInvalid);
  EXPECT_EQ(stranger.why, "no such SCI reports here now");
  token = false;
  std::vector<Told> many(PullPort::kWaitingMax + 1);
  for (Told& told : many) ask("1", told);
  EXPECT_EQ(many.back().why, "too many questions wait");
  EXPECT_EQ(many.front().times, 0);
  port->stop();
  EXPECT_EQ(many.front().why, "this process ends");
  Told after;
  ask("1", after);
  EXPECT_EQ(after.code, rpc::Code::kUnavailable);
}

class PortsByGrpc : public Ports {
 protected:
  void SetUp() override { open(true); }
  rpc::ClientConfig config(const std::string& certificate, bool single = true) const {
    return {.method = rpc::kSourcePull,
            .single = single,
            .server = "127.0.0.1:" + std::to_string(port->port()),
            .credentials = pkis().ours.credentials(certificate),
            .peer = {.kind = security::Kind::kSci}};
  }
  static std::string question(const std::string& csci_id) {
    v1::PullRequest request;
    request.set_csci_id(csci_id);
    return request.SerializeAsString();
  }
  // Until it holds.
  bool until(rpc::Client& client, rpc::Seen& seen, const std::function<bool()>& holds) {
    const auto end = rpc::Clock::now() + rpc::kPatience;
    for (; rpc::Clock::now() < end; ::usleep(2000)) {
      port->turn(now);
      rpc::drain(client, seen);
      if (holds()) return true;
    }
    return false;
  }
};

TEST_F(PortsByGrpc, IsAsked_CSMA30) {
  auto opened = rpc::Client::open(config("site-1"));
  auto client = std::move(*opened);
  rpc::Seen seen;
  const auto id = client->ask(question("1"));
  ASSERT_TRUE(until(*client, seen, [&] { return seen.end(id) != nullptr; }));
  EXPECT_EQ(seen.end(id)->code, rpc::Code::kOk) << seen.end(id)->why;
  ASSERT_EQ(seen.received.size(), 1u);
  v1::Report report;
  ASSERT_TRUE(report.ParseFromString(seen.received[0].second));
  EXPECT_EQ(report.sequence(), 1u);
  EXPECT_EQ(report.csci_id(), "1");
  const auto other = client->ask(question("2"));
  ASSERT_TRUE(until(*client, seen, [&] { return seen.end(other) != nullptr; }));
  EXPECT_EQ(seen.end(other)->code, rpc::Code::kInvalid);
  EXPECT_EQ(seen.end(other)->why, "no such SCI reports here now");
}

TEST_F(PortsByGrpc, OnlyByTheCSmaThatMay_CSMA33) {
  for (const char* name : {"site-2", "ps-1", "b"}) {
    auto opened = rpc::Client::open(config(name));
    auto client = std::move(*opened);
    rpc::Seen seen;
    const auto id = client->ask(question("1"));
    ASSERT_TRUE(until(*client, seen, [&] { return seen.end(id) != nullptr; }));
    EXPECT_NE(seen.end(id)->code, rpc::Code::kOk) << name;
  }
  EXPECT_EQ(wanted, 0);
}

// What is unary to us may come as a stream with more than one message.
TEST_F(PortsByGrpc, WhoAsksTwiceOnOneStreamIsRefused) {
  token = false;
  auto opened = rpc::Client::open(config("site-1", false));
  auto client = std::move(*opened);
  rpc::Seen seen;
  const auto id = client->open();
  ASSERT_TRUE(until(*client, seen, [&] { return !seen.opened.empty(); }));
  ASSERT_TRUE(client->send(id, question("1")));
  ASSERT_TRUE(until(*client, seen, [&] { return seen.written[id] == 1; }));
  (void)client->send(id, question("1"));
  ASSERT_TRUE(until(*client, seen, [&] { return seen.end(id) != nullptr; }));
  EXPECT_EQ(seen.end(id)->why, "expected one question");
  EXPECT_TRUE(report());
  EXPECT_EQ(wanted, 1);
}

}  // namespace
}  // namespace margay::control
