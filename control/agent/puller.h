// SPDX-License-Identifier: Apache-2.0
#pragma once

// The C-SMA's questions to SCIs that cannot call it, or that have fallen silent (CSMA-29..31, 69): gRPC unary, or HTTPS
// through the loop's Prober. Who answers is judged as one that calls is: by certificate and CATS names; what it says
// goes to the core as any report does. An answer is bounded in size and time, never inflated, never redirected; it must
// be of the SCI that was asked. One thread, the loop's; nothing here waits.

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "common/log_limit.h"
#include "common/time_point.h"
#include "control/agent/pull_plan.h"
#include "control/c_sma/events.h"
#include "control/collection/http/prober.h"
#include "control/rpc/typed.h"
#include "control/security/credentials.h"
#include "margay/v1/collection.pb.h"

namespace margay::control {

class Puller {
 public:
  static constexpr uint64_t kTickets = uint64_t{1} << 63;  // ours have it, nobody else's

  using Tell = std::function<void(const c_sma::Event&)>;
  using Ask = std::function<void(const Prober::Question&)>;

  // `epoll` is told of descriptors. `ask`: to the Prober, whose answers come to answer().
  Puller(std::shared_ptr<security::Credentials> credentials, int epoll, uint64_t seed, Ask ask)
      : credentials_(std::move(credentials)), epoll_(epoll), ask_(std::move(ask)), plan_(seed) {}

  // Answers that are on their way still count, where the entry is the same.
  void configure(const std::vector<PullTarget>& targets, Nanoseconds now) { plan_.configure(targets, now); }
  // False: the SCI is not asked this way. Else ReportReceived or PullFailed follows.
  bool want(const std::string& csci_id) { return plan_.want(csci_id); }
  void turn(Time now, const Tell& tell);
  // False: the ticket is somebody else's.
  bool answer(const Prober::Answer& answer, Time now, const Tell& tell);
  Nanoseconds next_due() const { return plan_.next_due(); }
  const PullPlan& plan() const { return plan_; }

 private:
  using Client = rpc::StreamClient<v1::Report, v1::PullRequest>;
  using PeerPtr = std::shared_ptr<const security::Peer>;
  struct Question {
    std::string csci_id;
    PeerPtr peer = {};
    bool answered = false;
  };
  struct Line {  // one address and time limit; a connection while somebody is asked
    std::unique_ptr<Client> client;
    std::map<rpc::StreamId, Question> streams = {};
  };
  struct HttpQuestion {
    std::string csci_id;
    std::shared_ptr<security::Handshake> handshake;
  };

  void begin(const std::string& csci_id, Time now, const Tell& tell);
  void ask_by_http(const PullTarget& target);
  Result<Line*> line_for(const PullTarget& target);
  void poll(Line& line, Time now, const Tell& tell);
  void on(const rpc::Opened& e, Line& line, Time now, const Tell& tell);
  void on(const rpc::Received<v1::Report>& e, Line& line, Time now, const Tell& tell);
  void on(const rpc::Closed& e, Line& line, Time now, const Tell& tell);
  void on(const rpc::WriteDone&, Line&, Time, const Tell&) {}
  void on(const rpc::Refused&, Line&, Time, const Tell&) {}  // Closed says it too
  void take(const std::string& csci_id, const v1::Report& message, const PeerPtr& peer, Time now, const Tell& tell);
  void fail(const std::string& csci_id, const std::string& why, Time now, const Tell& tell);

  std::shared_ptr<security::Credentials> credentials_;
  const int epoll_;
  const Ask ask_;
  PullPlan plan_;
  std::map<std::string, Line> lines_;
  std::map<uint64_t, HttpQuestion> questions_;  // by ticket
  std::map<std::string, PeerPtr> answered_;     // who answered last, by CSCI-ID
  uint64_t tickets_ = 0;
  LogLimit log_;
};

}  // namespace margay::control
