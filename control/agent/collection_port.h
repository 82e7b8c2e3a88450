// SPDX-License-Identifier: Apache-2.0
#pragma once

// The C-SMA's end of its SCIs' streams (CSMA-25, 32, 33): messages in, the urgent ones first (CSMA-152), events for the
// core out; the core's answers and pulls back. One thread, the loop's; nothing here waits.

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "common/result.h"
#include "control/c_sma/events.h"
#include "control/rpc/server.h"
#include "margay/v1/collection.pb.h"

namespace margay::control {

class CollectionPort {
 public:
  static constexpr size_t kEventsMax = 1000;  // a turn
  static constexpr size_t kRepliesMax = 64;   // that a peer may leave unread

  struct Told {
    std::function<void(const c_sma::Event&)> event;
    std::function<void(const rpc::Refused&)> refused;  // somebody was turned away before there was a stream
  };

  // `epoll` is told of its descriptor. `scis`: so many have room for a stream at the same time. Errors: the address,
  // the certificates.
  static Result<std::unique_ptr<CollectionPort>> open(const std::string& listen, size_t scis,
                                                      std::shared_ptr<security::Credentials> credentials, int epoll);
  static rpc::Limits limits_for(size_t scis);

  // True: there may be more.
  bool poll(const Told& told);
  void answer(const c_sma::Judged& judged);
  // False: there is no such stream.
  bool pull(c_sma::StreamId stream);
  void close(c_sma::StreamId stream, const std::string& why);
  uint16_t port() const { return server_->port(); }
  rpc::Counters counters() const { return server_->counters(); }

  struct Stream {
    std::shared_ptr<const c_sma::Peer> as;  // what the core knows of it
    std::string address;
    std::deque<v1::CollectionReply> replies = {};
    bool writing = false, pull = false;
    bool revoked = false;  // and the core knows
  };
  const std::map<rpc::StreamId, Stream>& streams() const { return streams_; }

 private:
  explicit CollectionPort(std::unique_ptr<rpc::Server> server) : server_(std::move(server)) {}
  void on(const rpc::Opened& e, const Told& told);
  void on(const rpc::Received<std::string>& e, const Told& told);
  void on(const rpc::WriteDone& e, const Told& told);
  void on(const rpc::Closed& e, const Told& told);
  void on(const rpc::Refused& e, const Told& told) { told.refused(e); }
  void write(rpc::StreamId id, Stream& stream);

  std::unique_ptr<rpc::Server> server_;
  std::map<rpc::StreamId, Stream> streams_;
};

// Whether a report says that it comes for more than a change of numbers: for health, for an operator's order, for its
// end (CSMA-152). Any thread.
bool is_urgent(std::string_view report);

// What a certificate lets its owner report for.
std::shared_ptr<const c_sma::Peer> reporter_of(const security::Peer& peer);

}  // namespace margay::control
