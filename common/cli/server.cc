// SPDX-License-Identifier: Apache-2.0
#include "common/cli/server.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include <fmt/format.h>

#include "common/cli/protocol.h"

namespace margay {
namespace {

constexpr size_t kPieceBytes = 16384;  // of text in one answer line

Error system_error(std::string_view what, const std::string& path) {
  return Error{fmt::format("{}: {}: {}", path, what, std::strerror(errno))};
}

Result<sockaddr_un> address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path)) {
    return Error{fmt::format("{}: expected a socket path of 1 to {} bytes", path, sizeof(address.sun_path) - 1)};
  }
  path.copy(address.sun_path, path.size());
  return address;
}

// Takes away what a dead daemon left at `path`.
Result<void> clear_stale(const std::string& path, const sockaddr_un& address) {
  struct stat found {};
  if (::lstat(path.c_str(), &found) != 0) return {};
  if (!S_ISSOCK(found.st_mode)) return Error{fmt::format("{}: is in the way and no socket", path)};
  const int probe = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (probe < 0) return system_error("cannot make a socket", path);
  const bool connected = ::connect(probe, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  const bool nobody = !connected && (errno == ECONNREFUSED || errno == ENOENT);
  ::close(probe);
  if (!nobody) return Error{fmt::format("{}: another process listens there", path)};
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return system_error("cannot remove a stale socket", path);
  return {};
}

// The first piece of a text that goes into one answer: never half a character of UTF-8, which JSON cannot carry.
std::string_view first_piece(std::string_view text) {
  size_t end = std::min(text.size(), kPieceBytes);
  const auto continues = [&] { return end < text.size() && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80; };
  for (int back = 0; back < 3 && continues(); ++back) --end;
  return text.substr(0, end);
}

void make_parent(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash != std::string::npos && slash > 0) ::mkdir(path.substr(0, slash).c_str(), 0755);
}

}  // namespace

Result<std::unique_ptr<CliServer>> CliServer::open(const std::string& path, Executor& executor,
                                                   std::chrono::milliseconds patience) {
  std::unique_ptr<CliServer> server(new CliServer(path, executor, patience));
  if (Result<void> r = server->listen(); !r) return r.error();
  return server;
}

Result<void> CliServer::listen() {
  const Result<sockaddr_un> address = address_of(path_);
  if (!address) return address.error();
  make_parent(path_);
  if (Result<void> r = clear_stale(path_, *address); !r) return r;
  listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (listener_ < 0) return system_error("cannot make a socket", path_);
  if (::bind(listener_, reinterpret_cast<const sockaddr*>(&*address), sizeof(*address)) != 0) {
    return system_error("cannot bind", path_);
  }
  struct stat made {};
  if (::stat(path_.c_str(), &made) == 0) {
    device_ = made.st_dev;
    inode_ = made.st_ino;
  }
  // Nobody can connect before listen(): the mode holds for the first client too.
  if (::chmod(path_.c_str(), 0600) != 0) return system_error("cannot set its mode", path_);
  if (::listen(listener_, static_cast<int>(kClientsMax)) != 0) return system_error("cannot listen", path_);
  return {};
}

CliServer::~CliServer() {
  for (const Client& client : clients_) ::close(client.fd);
  if (listener_ < 0) return;
  ::close(listener_);
  struct stat now {};
  const bool ours = inode_ != 0 && ::lstat(path_.c_str(), &now) == 0 && now.st_ino == inode_ && now.st_dev == device_;
  if (ours) ::unlink(path_.c_str());
}

void CliServer::poll(std::chrono::milliseconds timeout) {
  std::vector<pollfd> polled{{listener_, POLLIN, 0}};
  for (const Client& client : clients_) {
    const short wanted = client.out.empty() ? POLLIN : POLLOUT;  // no new request before the last answer is read
    polled.push_back({client.fd, wanted, 0});
  }
  if (::poll(polled.data(), polled.size(), static_cast<int>(timeout.count())) < 0) return;
  size_t i = 1;
  for (Client& client : clients_) {
    const short happened = polled[i++].revents;
    if ((happened & POLLOUT) != 0) {
      send_some(client);
      serve_requests(client);  // those that came together with the last one
    } else if (happened != 0) {
      receive(client);
      serve_requests(client);
    }
    if (!client.out.empty() && Clock::now() - client.progress > kIdleReader) client.gone = true;
  }
  drop_gone();
  if (polled[0].revents != 0) accept_all();
}

void CliServer::drop_gone() {
  for (auto client = clients_.begin(); client != clients_.end();) {
    if (client->gone || (client->closing && client->out.empty())) {
      ::close(client->fd);
      client = clients_.erase(client);
    } else {
      ++client;
    }
  }
}

void CliServer::drop_longest_idle() {
  const auto later = [](const Client& a, const Client& b) {
    return std::pair(!a.out.empty(), a.progress) < std::pair(!b.out.empty(), b.progress);
  };
  const auto idlest = std::min_element(clients_.begin(), clients_.end(), later);
  if (!idlest->out.empty() || Clock::now() - idlest->progress < patience_) return;
  ::close(idlest->fd);
  clients_.erase(idlest);
}

void CliServer::accept_all() {
  for (size_t n = 0; n < kClientsMax; ++n) {
    const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) return;
    if (clients_.size() == kClientsMax) drop_longest_idle();
    if (clients_.size() < kClientsMax) {
      clients_.push_back({fd, {}, {}, Clock::now()});
      continue;
    }
    const std::string refusal = write_message({{"error", "too many clients are connected"}, {"position", 1}});
    (void)!::send(fd, refusal.data(), refusal.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    ::close(fd);
  }
}

void CliServer::receive(Client& client) {
  char bytes[kRequestMax];
  const ssize_t n = ::recv(client.fd, bytes, sizeof(bytes), MSG_DONTWAIT);
  if (n > 0) {
    client.progress = Clock::now();
    client.in.append(bytes, static_cast<size_t>(n));
  } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
    client.gone = true;
  }
}

void CliServer::serve_requests(Client& client) {
  while (!client.gone && !client.closing && client.out.empty()) {
    const size_t end = client.in.find('\n');
    if (end >= kRequestMax) {  // no end in sight, or behind the bound
      if (client.in.size() < kRequestMax) return;
      client.out +=
          write_message({{"error", fmt::format("expected at most {} bytes a line", kRequestMax)}, {"position", 1}});
      client.closing = true;
      send_some(client);
      return;
    }
    const std::string request = client.in.substr(0, end);
    client.in.erase(0, end + 1);
    answer(client, request);
  }
}

void CliServer::answer(Client& client, std::string_view request) {
  const Result<nlohmann::json> message = read_message(request);
  if (message && message->contains("line") && (*message)["line"].is_string()) {
    const auto json = message->find("json");
    return run(client, (*message)["line"].get<std::string>(),
               json != message->end() && json->is_boolean() && json->get<bool>());
  }
  Clock::duration waited{};
  if (message && message->contains("complete") && (*message)["complete"].is_string()) {
    const Completion c = executor_.complete((*message)["complete"].get<std::string>());
    queue(client, write_message({{"ok", true}, {"words", c.words}, {"hints", c.hints}}), waited);
    return;
  }
  const std::string what = message ? "expected the key line or complete, a string" : message.error().message;
  queue(client, write_message({{"error", what}, {"position", 1}}), waited);
}

void CliServer::run(Client& client, const std::string& line, bool json) {
  Clock::duration waited{};
  const auto sink = [&](std::string_view text) {
    while (!text.empty()) {
      const std::string_view piece = first_piece(text);
      text.remove_prefix(piece.size());
      if (!queue(client, write_message({{"out", piece}}), waited)) return false;
    }
    return true;
  };
  const Answer a = executor_.run(line, json, sink);
  nlohmann::json last{{"ok", true}};
  if (a.quit) last["quit"] = true;
  if (!a.result) last = {{"error", a.result.error().message}, {"position", a.result.error().position}};
  queue(client, write_message(last), waited);
}

// Appends to the client's answers; waits for it to read when there are too many. False once it is given up.
bool CliServer::queue(Client& client, std::string_view text, Clock::duration& waited) {
  if (client.gone) return false;
  if (client.out.empty()) client.progress = Clock::now();
  client.out += text;
  send_some(client);
  while (!client.gone && client.out.size() > kQueueMax) {
    const Clock::time_point before = Clock::now();
    pollfd writable{client.fd, POLLOUT, 0};
    const auto rest = std::chrono::ceil<std::chrono::milliseconds>(patience_ - waited);
    if (rest.count() <= 0 || ::poll(&writable, 1, static_cast<int>(rest.count())) == 0) client.gone = true;
    waited += Clock::now() - before;
    if (!client.gone) send_some(client);
  }
  return !client.gone;
}

void CliServer::send_some(Client& client) {
  while (!client.out.empty()) {
    const ssize_t n = ::send(client.fd, client.out.data(), client.out.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0) {
      if (errno != EAGAIN && errno != EINTR) client.gone = true;
      return;
    }
    client.out.erase(0, static_cast<size_t>(n));
    client.progress = Clock::now();
  }
}

}  // namespace margay
