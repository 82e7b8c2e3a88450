// SPDX-License-Identifier: Apache-2.0
// Any bytes to the HTTP server of /metrics, on a connection of their own. Nothing may crash or hold it up; what comes
// back is nothing, or one answer of HTTP, and a page only where its path was asked for.
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/check.h"
#include "common/fd.h"
#include "control/http/server.h"
#include "tests/fuzz/target.h"

namespace {

using margay::control::HttpServer;

constexpr std::string_view kPage = "the page";

HttpServer& server() {
  static const auto opened =
      HttpServer::open({*margay::IpAddress::parse("127.0.0.1"), 0}, [](const std::string& path) -> HttpServer::Answer {
        MARGAY_CHECK(path.find('?') == std::string::npos);
        if (path == "/page") return {.body = std::string(kPage)};
        return {.status = 404, .body = "nothing here"};
      });
  MARGAY_CHECK(opened);
  return **opened;
}

std::string ask(std::string_view bytes) {
  const margay::Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval patience{.tv_sec = 20, .tv_usec = 0};  // more than any of the server's
  MARGAY_CHECK(::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(server().port());
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  MARGAY_CHECK(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0);
  (void)::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);  // it may close before it has all
  ::shutdown(fd.get(), SHUT_WR);
  std::string answer;
  char piece[4096];
  for (;;) {
    const ssize_t got = ::recv(fd.get(), piece, sizeof piece, 0);
    MARGAY_CHECK(got >= 0 || errno == ECONNRESET);
    if (got <= 0) return answer;
    answer.append(piece, static_cast<size_t>(got));
  }
}

}  // namespace

FUZZ_TARGET(http) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::string answer = ask(bytes);
  MARGAY_CHECK(answer.empty() || answer.starts_with("HTTP/1."));
  if (answer.find(kPage) != std::string::npos) MARGAY_CHECK(bytes.find("/page") != std::string_view::npos);
  return 0;
}
