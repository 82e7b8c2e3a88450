// SPDX-License-Identifier: Apache-2.0
#pragma once

// The C-SMA's line to one C-PS: the session's core over a gRPC stream, and what is wrong told once. One thread, the
// loop's; nothing here waits but for the disk, once in tens of thousands of messages (Sealer).

#include <memory>
#include <optional>
#include <string>

#include "common/log_limit.h"
#include "common/result.h"
#include "control/agent/sealer.h"
#include "control/c_sma_spec.h"
#include "control/northbound/core/sender_session.h"
#include "control/rpc/typed.h"
#include "margay/v1/envelope.pb.h"

namespace margay::control {

class CpsLink {
 public:
  struct Status {
    bool open = false;
    uint64_t connections = 0, sent = 0, received = 0;
    std::string why;  // not open
  };

  // `epoll` is told of its descriptor. REQUIRES: the sealer outlives it.
  static Result<std::unique_ptr<CpsLink>> open(const CpsTarget& target, northbound::SenderConfig config,
                                               std::shared_ptr<security::Credentials> credentials, Sealer& sealer,
                                               uint64_t seed, int epoll, Nanoseconds now);

  void turn(const northbound::RowStore& store, Time now);
  void committed(const std::string& cs_id, Nanoseconds now) { session_.committed(cs_id, now); }
  Nanoseconds next_due(const northbound::RowStore& store) const;
  // An operator wants a try at once.
  void call_now() { session_.call_now(); }

  const CpsTarget& target() const { return target_; }
  const northbound::SenderSession& session() const { return session_; }
  const Status& status() const { return status_; }

 private:
  using Client = rpc::StreamClient<v1::Signed, v1::Signed>;
  CpsLink(CpsTarget target, northbound::SenderConfig config, std::unique_ptr<Client> client, Sealer& sealer,
          uint64_t seed, Nanoseconds now)
      : target_(std::move(target)),
        session_(std::move(config), seed, now),
        client_(std::move(client)),
        sealer_(sealer) {}

  void on(const rpc::Opened& e, const northbound::RowStore& store, Time now);
  void on(const rpc::Received<v1::Signed>& e, const northbound::RowStore& store, Time now);
  void on(const rpc::WriteDone& e, const northbound::RowStore& store, Time now);
  void on(const rpc::Closed& e, const northbound::RowStore& store, Time now);
  void on(const rpc::Refused&, const northbound::RowStore&, Time) {}
  void fault(northbound::Fault fault, const std::string& detail, Nanoseconds now);
  void write(const northbound::RowStore& store, Time now);

  CpsTarget target_;
  northbound::SenderSession session_;
  std::unique_ptr<Client> client_;
  Sealer& sealer_;
  rpc::StreamId stream_ = 0;
  bool open_ = false, writing_ = false, closing_ = false;
  Status status_;
  std::string told_;
  LogLimit log_;
};

}  // namespace margay::control
