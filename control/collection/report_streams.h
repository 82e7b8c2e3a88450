// SPDX-License-Identifier: Apache-2.0
#pragma once

// The SCIs of this process that report to a C-SMA elsewhere (`reports_to`): a stream each, on one connection where
// address, identity and certificate are the same (D-16). One thread, the loop's; nothing here waits.

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "common/log_limit.h"
#include "common/result.h"
#include "common/time_point.h"
#include "control/collection/report_push.h"
#include "control/rpc/typed.h"
#include "control/site_reader.h"
#include "margay/v1/collection.pb.h"

namespace margay::control {

class ReportStreams {
 public:
  struct Status {  // of one SCI
    std::string address;
    bool open = false;
    uint64_t connections = 0, sent = 0, answered = 0, not_sent = 0;
    std::string verdict, reason;  // of the last answer
    std::string why;              // not open
  };

  // `epoll` is told of descriptors. Errors name the key of the site file.
  static Result<std::unique_ptr<ReportStreams>> open(const SiteSpec& spec, uint64_t seed, int epoll, Nanoseconds now);

  // Nothing, if the SCI's reports stay here. `answered`: somebody asked for it otherwise, and has it.
  void report(const Report& report, bool answered);
  // `full`: this SCI is to make a full report.
  void turn(Time now, const std::function<void(const std::string& csci_id)>& full);
  Nanoseconds next_due() const;
  bool settled() const;                          // nothing waits, nothing is unanswered
  std::map<std::string, Status> status() const;  // by CSCI-ID

 private:
  using Client = rpc::StreamClient<v1::CollectionReply, v1::Report>;
  struct Line {  // one connection
    std::unique_ptr<Client> client;
    std::shared_ptr<security::Credentials> credentials;
    std::map<rpc::StreamId, std::string> streams = {};  // CSCI-IDs
  };
  struct Sci {
    size_t line = 0;
    ReportPush push;
    rpc::StreamId stream = 0;
    Status status = {};
    std::string told = {};
  };

  explicit ReportStreams(int epoll) : epoll_(epoll) {}
  Result<size_t> line_for(const ReportsTo& to, const security::SecurityConfig& security);
  void poll(Line& line, Time now);
  void on(const rpc::Opened& e, Line& line, Sci& sci, Time now);
  void on(const rpc::Received<v1::CollectionReply>& e, Line& line, Sci& sci, Time now);
  void on(const rpc::WriteDone& e, Line& line, Sci& sci, Time now);
  void on(const rpc::Closed& e, Line& line, Sci& sci, Time now);
  void answered(const v1::ReportAck& ack, const std::string& csci_id, Sci& sci, Time now);

  int epoll_;
  std::vector<Line> lines_;
  std::map<std::string, size_t> lines_by_;  // address, identity, certificate, key
  std::map<std::string, Sci> scis_;
  Nanoseconds watch_at_ = 0;
  LogLimit log_;
};

}  // namespace margay::control
