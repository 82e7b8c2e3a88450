// SPDX-License-Identifier: Apache-2.0
#include "common/cli/client.h"

#include <sys/socket.h>

#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>

#include <fmt/format.h>

#include "common/unix_socket.h"

namespace margay {
namespace {

// Text on its way from the socket to the sink.
class Spool {
 public:
  void put(std::string text) {
    const std::lock_guard lock(mutex_);
    texts_.push_back(std::move(text));
    news_.notify_one();
  }
  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    news_.notify_one();
  }
  // Nothing once it is closed and empty.
  std::optional<std::string> take() {
    std::unique_lock lock(mutex_);
    news_.wait(lock, [&] { return closed_ || !texts_.empty(); });
    if (texts_.empty()) return std::nullopt;
    std::string text = std::move(texts_.front());
    texts_.pop_front();
    return text;
  }

 private:
  std::mutex mutex_;
  std::condition_variable news_;
  std::deque<std::string> texts_;
  bool closed_ = false;
};

Answer lost(const Error& error) { return {error, false, true}; }

std::vector<std::string> strings_of(const nlohmann::json& message, const char* key) {
  std::vector<std::string> out;
  const auto list = message.find(key);
  if (list == message.end() || !list->is_array()) return out;
  for (const nlohmann::json& item : *list) {
    if (item.is_string()) out.push_back(item.get<std::string>());
  }
  return out;
}

// The answer that a last message gives.
Answer answer_of(const nlohmann::json& message) {
  const auto error = message.find("error");
  if (error == message.end()) {
    const auto quit = message.find("quit");
    return {{}, quit != message.end() && quit->is_boolean() && quit->get<bool>()};
  }
  const auto position = message.find("position");
  const bool placed = position != message.end() && position->is_number_unsigned();
  return {CommandError{placed ? position->get<size_t>() : 1,
                       error->is_string() ? error->get<std::string>() : "the daemon gave no reason"}};
}

}  // namespace

Result<std::unique_ptr<Client>> Client::connect(const std::string& path) {
  auto fd = connect_unix(path, SOCK_STREAM);
  if (!fd) return fd.error();
  return std::unique_ptr<Client>(new Client(std::move(*fd), path));
}

Result<void> Client::send(const std::string& request) {
  if (request.size() > kRequestMax) return Error{fmt::format("expected at most {} bytes a line", kRequestMax)};
  size_t sent = 0;
  while (sent < request.size()) {
    const ssize_t n = ::send(fd_.get(), request.data() + sent, request.size() - sent, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    // A daemon that refuses us says why before it closes: that is read by whoever waits for the answer.
    if (n < 0) return {};
    sent += static_cast<size_t>(n);
  }
  return {};
}

Result<std::string> Client::receive_line() {
  size_t from = read_;
  for (;;) {
    const size_t end = in_.find('\n', from);
    if (end != std::string::npos) {
      std::string line = in_.substr(read_, end - read_);
      read_ = end + 1;
      return line;
    }
    if (in_.size() - read_ > kAnswerMax) return Error{fmt::format("{}: the answer's line is too long", path_)};
    in_.erase(0, read_);
    read_ = 0;
    from = in_.size();
    char bytes[65536];
    const ssize_t n = ::recv(fd_.get(), bytes, sizeof(bytes), 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return Error{fmt::format("{}: the daemon closed the connection", path_)};
    in_.append(bytes, static_cast<size_t>(n));
  }
}

Result<nlohmann::json> Client::receive() {
  Result<std::string> line = receive_line();
  if (!line) return line.error();
  Result<nlohmann::json> message = read_message(*line);
  if (!message) return in(path_ + ": answer", message.error());
  return message;
}

Answer Client::receive_answer(const std::function<void(std::string)>& put) {
  for (;;) {
    const Result<nlohmann::json> message = receive();
    if (!message) return lost(message.error());
    const auto out = message->find("out");
    if (out == message->end()) return answer_of(*message);
    if (out->is_string()) put(out->get<std::string>());
  }
}

Answer Client::run(std::string_view line, bool json, const Reply::Sink& sink) {
  if (Result<void> r = send(write_message({{"line", line}, {"json", json}})); !r) return {r.error()};
  Spool spool;
  Answer answer;
  std::thread reader([&] {
    answer = receive_answer([&](std::string text) { spool.put(std::move(text)); });
    spool.close();
  });
  while (const std::optional<std::string> text = spool.take()) {
    if (sink(*text)) continue;
    ::shutdown(fd_.get(), SHUT_RDWR);  // nobody wants the rest
    break;
  }
  reader.join();
  return answer;
}

Completion Client::complete(std::string_view line) {
  if (!send(write_message({{"complete", line}}))) return {};
  const Result<nlohmann::json> message = receive();
  if (!message) return {};
  return {strings_of(*message, "words"), strings_of(*message, "hints")};
}

}  // namespace margay
