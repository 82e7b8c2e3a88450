// SPDX-License-Identifier: Apache-2.0
#include "control/http/server.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <exception>
#include <optional>
#include <thread>
#include <utility>

#include <spdlog/spdlog.h>

namespace margay::control {
namespace {

namespace beast = boost::beast;
namespace http = beast::http;
using boost::asio::ip::tcp;

constexpr std::chrono::milliseconds kAcceptAgain{100};  // after an error of accept: no descriptor, for example

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(tcp::socket socket, const HttpServer::Handler& handler, const HttpServer::Limits& limits, size_t& count)
      : stream_(std::move(socket)), handler_(handler), limits_(limits), count_(count) {
    ++count_;
    parser_.header_limit(HttpServer::kHeaderMax);
    parser_.body_limit(0);
  }
  ~Connection() { --count_; }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void run() {
    stream_.expires_after(limits_.request);
    http::async_read(stream_, buffer_, parser_, [self = shared_from_this()](beast::error_code error, size_t) {
      if (!error) return self->answer();
      const bool ours = error == http::error::header_limit || error == http::error::body_limit;
      if (ours) self->send({.status = 413, .body = "the request is too large\n"}, false);
    });
  }

 private:
  void answer() {
    const auto& request = parser_.get();
    const bool head = request.method() == http::verb::head;
    if (!head && request.method() != http::verb::get) return send({.status = 405, .body = "GET or HEAD\n"}, false);
    const std::string target(request.target());
    send(handler_(target.substr(0, target.find('?'))), head);
  }

  void send(HttpServer::Answer answer, bool head) {
    response_.result(answer.status);
    response_.set(http::field::content_type, answer.type);
    response_.set(http::field::connection, "close");
    const size_t size = answer.body.size();
    if (!head) response_.body() = std::move(answer.body);
    response_.content_length(size);
    serializer_.emplace(response_);
    serializer_->split(head);
    stream_.expires_after(limits_.answer);
    const auto done = [self = shared_from_this()](beast::error_code, size_t) {
      beast::error_code ignored;
      self->stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
    };
    if (head) {
      http::async_write_header(stream_, *serializer_, done);
    } else {
      http::async_write(stream_, *serializer_, done);
    }
  }

  beast::tcp_stream stream_;
  beast::flat_buffer buffer_{HttpServer::kHeaderMax};
  http::request_parser<http::empty_body> parser_;
  http::response<http::string_body> response_;
  std::optional<http::response_serializer<http::string_body>> serializer_;
  const HttpServer::Handler& handler_;
  const HttpServer::Limits& limits_;
  size_t& count_;
};

}  // namespace

class HttpServer::Acceptor {
 public:
  Acceptor(Handler handler, const Limits& limits) : handler_(std::move(handler)), limits_(limits) {}
  ~Acceptor() {
    context_.stop();
    if (thread_.joinable()) thread_.join();
  }
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  Result<void> open(const AddressPort& listen) {
    beast::error_code error;
    const tcp::endpoint endpoint(boost::asio::ip::make_address(listen.address.format(), error), listen.port);
    if (!error) acceptor_.open(endpoint.protocol(), error);
    if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(boost::asio::socket_base::max_listen_connections, error);
    if (!error) port_ = acceptor_.local_endpoint(error).port();
    if (error) return Error{"cannot listen on " + listen.format() + ": " + error.message()};
    accept();
    thread_ = std::thread([this] { run(); });
    return {};
  }
  uint16_t port() const { return port_; }

 private:
  // An exception of one connection, for want of memory, is not the end of the others.
  void run() {
    while (!context_.stopped()) {
      try {
        context_.run();
      } catch (const std::exception& e) {
        spdlog::error("msg=\"HTTP server\" why={:?}", e.what());
      }
    }
  }

  void accept() {
    acceptor_.async_accept([this](beast::error_code error, tcp::socket socket) {
      if (error) return accept_later();
      if (count_ < limits_.connections) {
        std::make_shared<Connection>(std::move(socket), handler_, limits_, count_)->run();
      }
      accept();
    });
  }

  void accept_later() {
    later_.expires_after(kAcceptAgain);
    later_.async_wait([this](beast::error_code error) {
      if (!error) accept();
    });
  }

  Handler handler_;
  Limits limits_;
  size_t count_ = 0;
  uint16_t port_ = 0;
  boost::asio::io_context context_{1};
  tcp::acceptor acceptor_{context_};
  boost::asio::steady_timer later_{context_};
  std::thread thread_;
};

HttpServer::HttpServer(std::unique_ptr<Acceptor> acceptor) : acceptor_(std::move(acceptor)) {}
HttpServer::~HttpServer() = default;

Result<std::unique_ptr<HttpServer>> HttpServer::open(const AddressPort& listen, Handler handler) {
  return open(listen, std::move(handler), Limits{});
}

Result<std::unique_ptr<HttpServer>> HttpServer::open(const AddressPort& listen, Handler handler, const Limits& limits) {
  auto acceptor = std::make_unique<Acceptor>(std::move(handler), limits);
  if (const auto opened = acceptor->open(listen); !opened) return opened.error();
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(acceptor)));
}

uint16_t HttpServer::port() const { return acceptor_->port(); }

}  // namespace margay::control
