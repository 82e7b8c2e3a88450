// SPDX-License-Identifier: Apache-2.0
#pragma once

// A small HTTP/1.1 server for pages that a GET or HEAD asks for: no bodies, one answer a connection. A thread of its
// own that holds up nobody and is held up by nobody: all waiting is Asio's. Bounds: kConnectionsMax connections (one
// more is closed at once), kHeaderMax bytes of request in kRequestPatience, TLS's handshake included, and an answer
// read within kAnswerPatience.
//
// With Tls it is HTTPS among peers: TLS 1.3, a certificate at both ends, the peer's judged by control/security. Who is
// refused there asks nothing (CSMA-33). A renewed certificate or list counts from the next connection on. Where
// there is no room, the oldest connection goes whose peer has not been judged: whoever holds many pushes out his own.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "common/net.h"
#include "common/result.h"
#include "control/security/credentials.h"

namespace margay::control {

class HttpServer {
 public:
  static constexpr size_t kConnectionsMax = 64;
  static constexpr size_t kHeaderMax = 8192;
  static constexpr std::chrono::seconds kRequestPatience{5}, kAnswerPatience{10};

  struct Answer {
    unsigned status = 200;
    std::string type = "text/plain; charset=utf-8";
    std::string body = {};
  };
  // Of a path without its query; in the server's thread. REQUIRES: throws nothing
  using Handler = std::function<Answer(const std::string& path)>;
  // Takes one answer, from any thread, while the server lives. To come within a time of the handler's own.
  using Respond = std::function<void(Answer)>;
  using LateHandler = std::function<void(const std::string& path, Respond respond)>;
  struct Limits {
    size_t connections = kConnectionsMax;
    std::chrono::milliseconds request = kRequestPatience, answer = kAnswerPatience;
  };
  struct Tls {
    std::shared_ptr<security::Credentials> credentials;
    security::Expected peers;
    // Somebody was turned away; in the server's thread.
    std::function<void(security::Refusal why, const std::string& detail)> refused;
  };

  static Result<std::unique_ptr<HttpServer>> open(const AddressPort& listen, Handler handler);
  static Result<std::unique_ptr<HttpServer>> open(const AddressPort& listen, Handler handler, const Limits& limits);
  static Result<std::unique_ptr<HttpServer>> open(const AddressPort& listen, LateHandler handler, Tls tls,
                                                  const Limits& limits);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  uint16_t port() const;  // that it listens on, where 0 was asked for

 private:
  class Acceptor;
  explicit HttpServer(std::unique_ptr<Acceptor> acceptor);
  std::unique_ptr<Acceptor> acceptor_;
};

}  // namespace margay::control
