// SPDX-License-Identifier: Apache-2.0
#pragma once

// SCIs of this process that let themselves be asked for their reports (`control.pulled_by`; SCI-27, CSMA-29, 30): by
// gRPC here, by HTTPS through ask(). Each question gets the SCI's next full report, which is made for it: as a rule at
// once, with trigger PULLED; at most kPatience later where the SCI's routine reports have used up their tokens (a
// report that was due anyway then answers too). One thread, the loop's or whoever holds its turn; nothing here waits.

#include <algorithm>
#include <functional>
#include <list>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "common/log_limit.h"
#include "common/result.h"
#include "common/time_point.h"
#include "control/c_sma_spec.h"
#include "control/rpc/typed.h"
#include "control/sci/report.h"
#include "control/security/config.h"
#include "margay/v1/collection.pb.h"

namespace margay::control {

class PullPort {
 public:
  static constexpr size_t kEventsMax = 1000;   // a turn
  static constexpr size_t kWaitingMax = 1024;  // questions
  static constexpr Nanoseconds kPatience = 4 * kSecond;

  struct Answer {
    const Report* report = nullptr;  // none: `code` and `why` say what is wrong
    rpc::Code code{};
    std::string why = {};
  };
  using Respond = std::function<void(const Answer&)>;
  // An SCI is to make a full report now. False: it is none of ours, or has not begun.
  using Want = std::function<bool(const std::string& csci_id)>;
  struct Counters {
    uint64_t answered = 0, refused = 0;
  };

  // `by.grpc` absent: only who calls ask() asks. `epoll` is told of the descriptor. Errors: the address, the
  // certificates.
  static Result<std::unique_ptr<PullPort>> open(const PulledBy& by, const security::SecurityConfig& security, int epoll,
                                                Want want);
  ~PullPort() { stop(); }
  PullPort(const PullPort&) = delete;
  PullPort& operator=(const PullPort&) = delete;

  void turn(Time now);
  Nanoseconds next_due() const { return waiting_.empty() ? watch_at_ : std::min(watch_at_, waiting_.front().until); }
  // `respond` is called once, now or later.
  void ask(const std::string& csci_id, Respond respond, Time now);
  // Of an SCI of this process. True: it was asked for.
  bool report(const Report& report);
  // Whoever waits is told, and whoever comes.
  void stop();

  const std::shared_ptr<security::Credentials>& credentials() const { return credentials_; }
  // Somebody's certificate was refused; told in the log.
  void refused(const std::string& reason, const std::string& detail, Nanoseconds now);
  uint16_t port() const { return server_->core().port(); }
  const Counters& counters() const { return counters_; }

 private:
  using Server = rpc::StreamServer<v1::PullRequest, v1::Report>;
  struct Waiting {
    std::string csci_id;
    Respond respond;
    Nanoseconds until = 0;
  };

  PullPort(std::shared_ptr<security::Credentials> credentials, Want want)
      : credentials_(std::move(credentials)), want_(std::move(want)) {}
  void on(const rpc::Opened&, Time) {}
  void on(const rpc::Received<v1::PullRequest>& e, Time now);
  void on(const rpc::WriteDone&, Time) {}
  void on(const rpc::Closed& e, Time) { asked_.erase(e.id); }
  void on(const rpc::Refused& e, Time now) { refused(e.reason, e.detail, now.monotonic); }
  void answer(rpc::StreamId stream, const Answer& answer);
  void respond(const Respond& respond, const Answer& answer);

  std::shared_ptr<security::Credentials> credentials_;
  Want want_;
  std::unique_ptr<Server> server_;
  std::set<rpc::StreamId> asked_;  // that have had their one question
  std::list<Waiting> waiting_;     // in the order of their time
  Nanoseconds watch_at_ = 0;
  bool stopped_ = false;
  Counters counters_;
  LogLimit log_;
};

}  // namespace margay::control
