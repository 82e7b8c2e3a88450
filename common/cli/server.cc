// SPDX-License-Identifier: Apache-2.0
#include "common/cli/server.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include <fmt/format.h>

#include "common/cli/protocol.h"

namespace margay {
namespace {

constexpr size_t kPieceBytes = 16384;  // of text in one answer line

// The first piece of a text that goes into one answer: never half a character of UTF-8, which JSON cannot carry.
std::string_view first_piece(std::string_view text) {
  size_t end = std::min(text.size(), kPieceBytes);
  const auto continues = [&] { return end < text.size() && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80; };
  for (int back = 0; back < 3 && continues(); ++back) --end;
  return text.substr(0, end);
}

}  // namespace

Result<std::unique_ptr<CliServer>> CliServer::open(const std::string& path, Executor& executor,
                                                   std::chrono::milliseconds patience) {
  auto listener = UnixListener::open(path, SOCK_STREAM, static_cast<int>(kClientsMax));
  if (!listener) return listener.error();
  return std::unique_ptr<CliServer>(new CliServer(std::move(*listener), executor, patience));
}

void CliServer::poll(std::chrono::milliseconds timeout) {
  waited_ = {};
  std::vector<pollfd> polled{{listener_.fd(), POLLIN, 0}};
  for (const Client& client : clients_) {
    const short wanted = client.out.empty() ? POLLIN : POLLOUT;  // no new request before the last answer is read
    polled.push_back({client.fd.get(), wanted, 0});
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
  clients_.erase(idlest);
}

void CliServer::accept_all() {
  for (size_t n = 0; n < kClientsMax; ++n) {
    Fd fd = listener_.accept();
    if (!fd) return;
    if (clients_.size() == kClientsMax) drop_longest_idle();
    if (clients_.size() < kClientsMax) {
      clients_.push_back({std::move(fd), {}, {}, Clock::now()});
      continue;
    }
    const std::string refusal = write_message({{"error", "too many clients are connected"}, {"position", 1}});
    (void)!::send(fd.get(), refusal.data(), refusal.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }
}

void CliServer::receive(Client& client) {
  char bytes[kRequestMax];
  const ssize_t n = ::recv(client.fd.get(), bytes, sizeof(bytes), MSG_DONTWAIT);
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
  if (message && message->contains("complete") && (*message)["complete"].is_string()) {
    const Completion c = executor_.complete((*message)["complete"].get<std::string>());
    queue(client, write_message({{"ok", true}, {"words", c.words}, {"hints", c.hints}}));
    return;
  }
  const std::string what = message ? "expected the key line or complete, a string" : message.error().message;
  queue(client, write_message({{"error", what}, {"position", 1}}));
}

void CliServer::run(Client& client, const std::string& line, bool json) {
  const auto sink = [&](std::string_view text) {
    while (!text.empty()) {
      const std::string_view piece = first_piece(text);
      text.remove_prefix(piece.size());
      if (!queue(client, write_message({{"out", piece}}))) return false;
    }
    return true;
  };
  const Answer a = executor_.run(line, json, sink);
  nlohmann::json last{{"ok", true}};
  if (a.quit) last["quit"] = true;
  if (!a.result) last = {{"error", a.result.error().message}, {"position", a.result.error().position}};
  queue(client, write_message(last));
}

// Appends to the client's answers; waits for it to read when there are too many. False once it is given up.
bool CliServer::queue(Client& client, std::string_view text) {
  if (client.gone) return false;
  if (client.out.empty()) client.progress = Clock::now();
  client.out += text;
  send_some(client);
  while (!client.gone && client.out.size() > kQueueMax) {
    const Clock::time_point before = Clock::now();
    pollfd writable{client.fd.get(), POLLOUT, 0};
    const auto rest = std::chrono::ceil<std::chrono::milliseconds>(patience_ - waited_);
    if (rest.count() <= 0 || ::poll(&writable, 1, static_cast<int>(rest.count())) == 0) client.gone = true;
    waited_ += Clock::now() - before;
    if (!client.gone) send_some(client);
  }
  return !client.gone;
}

void CliServer::send_some(Client& client) {
  while (!client.out.empty()) {
    const ssize_t n = ::send(client.fd.get(), client.out.data(), client.out.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0) {
      if (errno != EAGAIN && errno != EINTR) client.gone = true;
      return;
    }
    client.out.erase(0, static_cast<size_t>(n));
    client.progress = Clock::now();
  }
}

}  // namespace margay
