// SPDX-License-Identifier: Apache-2.0
#pragma once

// A server of one method whose messages go both ways (CSMA-25, 91), or one each way (CSMA-30), over mutual TLS
// (CSMA-93, 190). Beside it stand gRPC's health service and reflection, for authenticated peers too.
//
// What nobody can do to it: connect without a certificate that control/security takes; hold more connections, streams
// or memory than `Limits` says; have a message inflated (compressed ones are refused unseen); make a thread wait. It
// reads on from a stream when the loop has taken the stream's last message.
//
// Threads: the loop's, which calls everything here; gRPC's own, 2 to 16 by the machine's size and 2 for reflection;
// one that accepts.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "common/net.h"
#include "common/result.h"
#include "control/rpc/stream.h"
#include "control/security/credentials.h"

namespace margay::rpc {

struct ServerConfig {
  std::string method;   // "/margay.v1.Collection/Push"
  bool single = false;  // one message, one answer: what gRPC calls unary
  AddressPort listen;   // port 0: one that is free
  std::shared_ptr<security::Credentials> credentials;
  security::Expected peers;  // who may come
  Limits limits = {};
  // Whether a message goes before those that came before it, one in turn with them. Any thread. None: no message does.
  std::function<bool(std::string_view message)> urgent = {};
};

class Server {
 public:
  static Result<std::unique_ptr<Server>> open(ServerConfig config);
  ~Server();  // ends all streams; waits for gRPC's threads, a moment
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  uint16_t port() const;
  int fd() const;  // can be read: call next() until there is nothing
  std::optional<RawEvent> next();
  // False: the stream is ending. REQUIRES: WriteDone came for the message before
  bool send(StreamId id, std::string message);
  // `why` goes to the peer. After Limits::close the stream is cancelled. Nothing, where it ends already.
  void close(StreamId id, Code code, const std::string& why);
  void malformed(StreamId id, const std::string& why);  // closes it, and counts
  void set_serving(bool serving);                       // what the health service says
  Counters counters() const;

 private:
  struct State;
  explicit Server(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace margay::rpc
