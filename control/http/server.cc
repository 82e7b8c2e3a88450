// SPDX-License-Identifier: Apache-2.0
#include "control/http/server.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <exception>
#include <list>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>

#include <spdlog/spdlog.h>

#include "control/security/handshake.h"

namespace margay::control {
namespace {

namespace beast = boost::beast;
namespace http = beast::http;
namespace ssl = boost::asio::ssl;
using boost::asio::ip::tcp;

constexpr std::chrono::milliseconds kAcceptAgain{100};  // after an error of accept: no descriptor, for example

class Stranger {  // a connection whose peer has not been judged
 public:
  virtual void cut() = 0;

 protected:
  ~Stranger() = default;
};

struct Common {  // of all connections
  HttpServer::LateHandler handler;
  HttpServer::Limits limits;
  std::optional<HttpServer::Tls> tls;
  size_t count = 0;
  std::list<Stranger*> strangers = {};  // oldest first; with TLS
};

// A connection's TLS has a context of its own, so that what is renewed counts at once.
struct Secured {
  Secured(tcp::socket socket, const HttpServer::Tls& tls)
      : handshake(tls.credentials->current(), security::Side::kClient, tls.peers),
        ready(handshake.set_up(context.native_handle())),
        stream(std::move(socket), context) {}

  security::Handshake handshake;
  ssl::context context{ssl::context::tls_server};
  Result<void> ready;
  ssl::stream<beast::tcp_stream> stream;
};
struct Plain {
  explicit Plain(tcp::socket socket) : stream(std::move(socket)) {}
  beast::tcp_stream stream;
};

template <class Transport>
class Connection final : public std::enable_shared_from_this<Connection<Transport>>, public Stranger {
 public:
  template <class... Args>
  explicit Connection(Common& common, Args&&... args) : transport_(std::forward<Args>(args)...), common_(common) {
    ++common_.count;
    if (kSecured) common_.strangers.push_back(this);
    parser_.header_limit(HttpServer::kHeaderMax);
    parser_.body_limit(0);
  }
  ~Connection() {
    --common_.count;
    common_.strangers.remove(this);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void run() {
    socket().expires_after(common_.limits.request);
    if constexpr (kSecured) {
      if (!transport_.ready) return spdlog::error("msg=\"HTTPS\" why={:?}", transport_.ready.error().message);
      stream().async_handshake(ssl::stream_base::server,
                               [self = this->shared_from_this()](beast::error_code error) { self->shaken(error); });
    } else {
      read();
    }
  }

  void cut() override { socket().close(); }

 private:
  static constexpr bool kSecured = std::is_same_v<Transport, Secured>;
  auto& stream() { return transport_.stream; }
  beast::tcp_stream& socket() { return beast::get_lowest_layer(transport_.stream); }

  // An error before the peer showed a certificate is that of a peer that went away, or that speaks no TLS.
  void shaken(beast::error_code error) {
    const auto& peer = transport_.handshake.peer();
    const bool judged = peer.refusal != security::Refusal::kNoCertificate;
    if (peer.refusal && (judged || !error)) common_.tls->refused(*peer.refusal, peer.detail);
    if (peer.refusal || error) return;
    common_.strangers.remove(this);
    read();
  }

  void read() {
    http::async_read(stream(), buffer_, parser_, [self = this->shared_from_this()](beast::error_code error, size_t) {
      if (!error) return self->answer();
      const bool ours = error == http::error::header_limit || error == http::error::body_limit;
      if (ours) self->send({.status = 413, .body = "the request is too large\n"});
    });
  }

  void answer() {
    const auto& request = parser_.get();
    head_ = request.method() == http::verb::head;
    if (!head_ && request.method() != http::verb::get) return send({.status = 405, .body = "GET or HEAD\n"});
    const std::string target(request.target());
    socket().expires_after(common_.limits.answer);
    common_.handler(target.substr(0, target.find('?')),
                    [self = this->shared_from_this()](HttpServer::Answer answer) mutable {
                      if (!self) return;
                      const auto executor = self->socket().get_executor();
                      // The last one to hold it lets it go in its own thread.
                      boost::asio::post(executor, [self = std::move(self), answer = std::move(answer)]() mutable {
                        self->send(std::move(answer));
                      });
                    });
  }

  void send(HttpServer::Answer answer) {
    response_.result(answer.status);
    response_.set(http::field::content_type, answer.type);
    response_.set(http::field::connection, "close");
    const size_t size = answer.body.size();
    if (!head_) response_.body() = std::move(answer.body);
    response_.content_length(size);
    serializer_.emplace(response_);
    serializer_->split(head_);
    socket().expires_after(common_.limits.answer);
    const auto done = [self = this->shared_from_this()](beast::error_code error, size_t) {
      if (!error) self->shut();
    };
    if (head_) {
      http::async_write_header(stream(), *serializer_, done);
    } else {
      http::async_write(stream(), *serializer_, done);
    }
  }

  void shut() {
    if constexpr (kSecured) {
      stream().async_shutdown([self = this->shared_from_this()](beast::error_code) {});
    } else {
      beast::error_code ignored;
      socket().socket().shutdown(tcp::socket::shutdown_send, ignored);
    }
  }

  Transport transport_;
  Common& common_;
  beast::flat_buffer buffer_{HttpServer::kHeaderMax};
  http::request_parser<http::empty_body> parser_;
  http::response<http::string_body> response_;
  std::optional<http::response_serializer<http::string_body>> serializer_;
  bool head_ = false;
};

}  // namespace

class HttpServer::Acceptor {
 public:
  static Result<std::unique_ptr<Acceptor>> open(const AddressPort& listen, Common common) {
    std::unique_ptr<Acceptor> acceptor(new Acceptor(std::move(common)));
    if (const auto opened = acceptor->open(listen); !opened) return opened.error();
    return acceptor;
  }
  ~Acceptor() {
    context_.stop();
    if (thread_.joinable()) thread_.join();
  }
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  uint16_t port() const { return port_; }

 private:
  explicit Acceptor(Common common) : common_(std::move(common)) {}
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
      const bool full = common_.count >= common_.limits.connections;
      if (full && !common_.strangers.empty()) {
        common_.strangers.front()->cut();  // and is gone in a moment
        common_.strangers.pop_front();
      } else if (full) {
        socket.close();
      }
      if (!socket.is_open()) {
        // there was no room
      } else if (common_.tls) {
        std::make_shared<Connection<Secured>>(common_, std::move(socket), *common_.tls)->run();
      } else {
        std::make_shared<Connection<Plain>>(common_, std::move(socket))->run();
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

  Common common_;
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
  const auto at_once = [handler = std::move(handler)](const std::string& path, const Respond& respond) {
    respond(handler(path));
  };
  auto acceptor = Acceptor::open(listen, {.handler = at_once, .limits = limits, .tls = {}});
  if (!acceptor) return acceptor.error();
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(*acceptor)));
}

Result<std::unique_ptr<HttpServer>> HttpServer::open(const AddressPort& listen, LateHandler handler, Tls tls,
                                                     const Limits& limits) {
  auto acceptor = Acceptor::open(listen, {.handler = std::move(handler), .limits = limits, .tls = std::move(tls)});
  if (!acceptor) return acceptor.error();
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(*acceptor)));
}

uint16_t HttpServer::port() const { return acceptor_->port(); }

}  // namespace margay::control
