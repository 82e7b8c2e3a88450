// SPDX-License-Identifier: Apache-2.0
#pragma once

// A small HTTP/1.1 server for /metrics and /health: GET and HEAD, no bodies, one answer a connection. A thread of its
// own that holds up nobody and is held up by nobody: all waiting is Asio's. Bounds: kConnectionsMax connections (one
// more is closed at once), kHeaderMax bytes of request in kRequestPatience, an answer read within kAnswerPatience.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "common/net.h"
#include "common/result.h"

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
  struct Limits {
    size_t connections = kConnectionsMax;
    std::chrono::milliseconds request = kRequestPatience, answer = kAnswerPatience;
  };

  static Result<std::unique_ptr<HttpServer>> open(const AddressPort& listen, Handler handler);
  static Result<std::unique_ptr<HttpServer>> open(const AddressPort& listen, Handler handler, const Limits& limits);
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
