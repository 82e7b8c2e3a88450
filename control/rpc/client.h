// SPDX-License-Identifier: Apache-2.0
#pragma once

// The other end of server.h: streams towards one server, over mutual TLS. The server's certificate must have the
// CATS name that is expected of it; its host name means nothing. No proxy, whatever the environment says.
//
// Each open() after the last stream ended makes a new connection: when to try again, and how often, is the loop's to
// say. Streams that are opened while others live share their connection.
//
// Threads: as in server.h, without one that accepts.

#include <memory>
#include <optional>
#include <string>

#include "common/result.h"
#include "control/rpc/stream.h"
#include "control/security/credentials.h"

namespace margay::rpc {

struct ClientConfig {
  std::string method;   // "/margay.v1.Collection/Push"
  bool single = false;  // one message, one answer: what gRPC calls unary
  std::string server;   // "HOST:PORT", "192.0.2.1:PORT" or "[2001:db8::1]:PORT"
  std::shared_ptr<security::Credentials> credentials;
  security::Expected peer;                // who the server must be
  std::chrono::milliseconds deadline{0};  // of a stream's whole life; 0: none
  Limits limits = {};
};

class Client {
 public:
  static Result<std::unique_ptr<Client>> open(ClientConfig config);
  ~Client();  // ends all streams; waits for gRPC's threads, a moment
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  StreamId open();  // Opened or Closed follows
  // The same with its one message, which goes out as soon as there is a connection: who answers one question may open
  // its side with the answer. REQUIRES: single
  StreamId ask(std::string message);
  int fd() const;  // can be read: call next() until there is nothing
  std::optional<RawEvent> next();
  // False: the stream is not open, or ending. REQUIRES: WriteDone came for the message before
  bool send(StreamId id, std::string message);
  // Nothing more goes out, and the server is waited for, for at most Limits::close. `code` and `why` come back in
  // Closed.
  void close(StreamId id, Code code, const std::string& why);
  void malformed(StreamId id, const std::string& why);  // closes it, and counts
  Counters counters() const;

 private:
  struct State;
  explicit Client(std::unique_ptr<State> state);
  StreamId begin(std::optional<std::string> message);
  std::unique_ptr<State> state_;
};

}  // namespace margay::rpc
