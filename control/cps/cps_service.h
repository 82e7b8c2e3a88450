// SPDX-License-Identifier: Apache-2.0
#pragma once

// margay-cps as its commands and its loop see it: sessions of C-SMAs over gRPC, what is verified of them, the Computing
// Service Table. Whoever touches it holds the turn (Commands::control); nothing here waits.

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "common/log_limit.h"
#include "common/result.h"
#include "control/agent/state_writer.h"
#include "control/cps/config.h"
#include "control/cps/core/receiver_session.h"
#include "control/cps/core/saved_state.h"
#include "control/northbound/wire/envelope.h"
#include "control/rpc/typed.h"
#include "margay/v1/envelope.pb.h"

namespace margay::cps {

class CpsService {
 public:
  static constexpr Nanoseconds kWatchInterval = kSecond;  // of the certificates' files

  struct CSma {  // one that may advertise
    TrustedCSma trusted;
    std::map<std::string, northbound::Key> keys = {};
    northbound::Peer peer = {};
    uint64_t sessions = 0, messages = 0;
    std::string why = {};  // the last session ended
  };
  struct Session {
    std::string c_sma, address;
    ReceiverSession core;
    Nanoseconds since = 0;
    bool writing = false, closing = false;
    std::optional<northbound::Fault> ends = {};  // once nothing is left to write
  };

  // `epoll` is told of the server's descriptor. Errors name the key of the site file.
  static Result<std::unique_ptr<CpsService>> make(CpsConfig config, int epoll, Time now);

  void turn(Time now);
  Nanoseconds next_due() const;
  void stop() { stopping_ = true; }
  bool stopping() const { return stopping_; }
  void finish(Time now);
  // An operator wants a snapshot of a C-SMA's rows. False: it has no session.
  bool request_sync(const std::string& c_sma);

  const CpsConfig& config() const { return config_; }
  const ServiceTable& table() const { return table_; }
  const std::map<std::string, CSma>& c_smas() const { return c_smas_; }
  const std::map<rpc::StreamId, Session>& sessions() const { return sessions_; }
  const std::map<std::string, uint64_t>& turned_away() const { return turned_away_; }  // by reason
  uint16_t port() const { return server_->core().port(); }

 private:
  using Server = rpc::StreamServer<v1::Signed, v1::Signed>;
  explicit CpsService(CpsConfig config) : config_(std::move(config)) {}

  Result<void> open(int epoll, Time now);
  void on(const rpc::Opened& e, Time now);
  void on(const rpc::Received<v1::Signed>& e, Time now);
  void on(const rpc::WriteDone& e, Time now);
  void on(const rpc::Closed& e, Time now);
  void on(const rpc::Refused& e, Time now);
  void turn_away(const std::string& who, const std::string& reason, const std::string& detail, Nanoseconds now);
  void fault(rpc::StreamId id, Session& session, northbound::Fault fault, const std::string& detail, Nanoseconds now);
  void write(rpc::StreamId id, Session& session, Time now);
  void close(rpc::StreamId id, Session& session, rpc::Code code, const std::string& why);
  void watch_certificates(Time now);
  void save(Time now);

  CpsConfig config_;
  std::string identity_;
  std::shared_ptr<security::Credentials> credentials_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<control::StateWriter> writer_;  // nullptr: nothing outlives us
  ServiceTable table_{ServiceTable::Limits{.rows_max = config_.max_rows}};
  std::map<std::string, CSma> c_smas_;
  std::map<rpc::StreamId, Session> sessions_;
  std::map<std::string, uint64_t> turned_away_;
  LogLimit log_;
  uint64_t nonce_ = 0;
  Nanoseconds watch_at_ = 0, save_at_ = 0;
  bool stopping_ = false, more_ = false;
};

}  // namespace margay::cps
