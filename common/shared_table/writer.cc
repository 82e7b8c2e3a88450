// SPDX-License-Identifier: Apache-2.0
#include "common/shared_table/writer.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "common/check.h"
#include "common/unix_socket.h"

namespace margay::shared_table {
namespace {

constexpr size_t kCountersBytesMax = size_t{16} << 30;  // more than any site needs

Result<Received> read_hello(const std::string& path, int socket) {
  Received hello = receive(socket, 2);
  if (hello.state == Received::State::kNothing) return Error{path + ": the data plane says nothing"};
  if (hello.state == Received::State::kWrong) return Error{path + ": the data plane sent " + hello.wrong};
  if (hello.state != Received::State::kMessage) return Error{path + ": the data plane closed the connection"};
  if (hello.message.kind == MessageKind::kBusy) return Error{path + ": " + std::string(hello.message.said())};
  if (hello.message.kind != MessageKind::kHello || hello.descriptors.size() != 2) {
    return Error{path + ": expected a welcome with two descriptors"};
  }
  return hello;
}

Result<Snapshot> read_running(const Message& hello, std::span<const std::byte> buffers) {
  if (hello.length > kSnapshotBytesMax) return Error{"the running snapshot is longer than its buffer"};
  const auto shared = buffers.first(hello.length);
  const std::vector<std::byte> copy(shared.begin(), shared.end());
  if (checksum(copy) != hello.checksum) return Error{"the running snapshot has another checksum than was said"};
  auto snapshot = decode(copy);
  if (!snapshot) return in("the running snapshot", snapshot.error());
  if (snapshot->generation != hello.generation || snapshot->base != 0) {
    return Error{"the running snapshot has another generation than was said, or is not complete"};
  }
  return snapshot;
}

}  // namespace

Result<Fd> Writer::call(const std::string& path) { return connect_unix(path, SOCK_SEQPACKET | SOCK_NONBLOCK); }

Result<std::unique_ptr<Writer>> Writer::connect(const std::string& path, std::chrono::milliseconds patience) {
  auto socket = call(path);
  if (!socket) return socket.error();
  pollfd readable{socket->get(), POLLIN, 0};
  ::poll(&readable, 1, static_cast<int>(patience.count()));
  return welcomed(path, std::move(*socket));
}

Result<std::unique_ptr<Writer>> Writer::welcomed(const std::string& path, Fd socket) {
  auto hello = read_hello(path, socket.get());
  if (!hello) return hello.error();
  auto buffers =
      MemoryFile::adopt(std::move(hello->descriptors[0]), kBuffers * kSnapshotBytesMax, MemoryFile::Writers::kBoth);
  if (!buffers) return in(path, buffers.error());
  const size_t bytes = MemoryFile::size_of(hello->descriptors[1].get());
  if (bytes == 0 || bytes > kCountersBytesMax) return Error{path + ": the counters have an impossible size"};
  auto counters = MemoryFile::adopt(std::move(hello->descriptors[1]), bytes, MemoryFile::Writers::kMaker);
  if (!counters) return in(path, counters.error());
  std::unique_ptr<Writer> writer(new Writer(std::move(socket), std::move(*buffers), std::move(*counters)));
  if (hello->message.generation > 0) {
    auto running = read_running(hello->message, writer->buffers_.bytes());
    if (!running) return in(path, running.error());
    writer->running_ = std::move(*running);
    writer->last_ = hello->message.generation;
  }
  return writer;
}

bool Writer::commit(const Snapshot& snapshot) {
  const auto free = std::find(lent_.begin(), lent_.end(), 0);
  if (free == lent_.end()) return false;
  const std::vector<std::byte> bytes = encode(snapshot);
  MARGAY_CHECK(bytes.size() <= kSnapshotBytesMax);
  Message m;
  m.kind = MessageKind::kCommit;
  m.buffer = static_cast<uint32_t>(free - lent_.begin());
  m.generation = snapshot.generation;
  m.length = bytes.size();
  m.checksum = checksum(bytes);
  std::copy(bytes.begin(), bytes.end(), buffers_.bytes().begin() + m.buffer * kSnapshotBytesMax);
  if (send(socket_.get(), m) == SendResult::kFull) return false;
  *free = last_ = snapshot.generation;
  return true;
}

Writer::News Writer::news() {
  News news;
  for (size_t n = 0; !news.gone; ++n) {
    const Received received = receive(socket_.get());
    switch (received.state) {
      case Received::State::kNothing:
        return news;
      case Received::State::kMessage:
        take(received.message, news);
        if (n < kMessagesMax) break;
        news.why = "the data plane sent more than " + std::to_string(kMessagesMax) + " messages at once";
        news.gone = true;
        break;
      case Received::State::kWrong:
        news.why = "the data plane sent " + received.wrong;
        [[fallthrough]];
      case Received::State::kClosed:
        news.gone = true;
    }
  }
  return news;
}

void Writer::take(const Message& message, News& news) {
  switch (message.kind) {
    case MessageKind::kRefused:
    case MessageKind::kTaken:
      return take_answer(message, news);
    case MessageKind::kAck:
      return take_ack(message.generation, news);
    case MessageKind::kStalled:
      news.stalled.push_back(message.buffer);
      return;
    case MessageKind::kHello:
    case MessageKind::kBusy:
    case MessageKind::kCommit:
      news.gone = true;
      news.why = "the data plane sent a message that is not its to send now";
  }
}

void Writer::take_answer(const Message& message, News& news) {
  if (message.buffer >= kBuffers || lent_[message.buffer] == 0) {
    news.gone = true;
    news.why = "the data plane gave back a buffer that it does not have";
    return;
  }
  const uint64_t committed = std::exchange(lent_[message.buffer], 0);
  if (message.generation != committed) {
    news.gone = true;
    news.why = "the data plane answered for generation " + std::to_string(message.generation) + ", committed was " +
               std::to_string(committed);
  } else if (message.kind == MessageKind::kTaken) {
    news.taken = committed;
  } else {
    news.refused.push_back({committed, std::string(message.said())});
  }
}

void Writer::take_ack(uint64_t generation, News& news) {
  if (generation > last_ || generation < acked_) {
    news.gone = true;
    news.why = "the data plane acked generation " + std::to_string(generation) + ", expected " +
               std::to_string(acked_) + " to " + std::to_string(last_);
    return;
  }
  news.acked = acked_ = generation;
}

}  // namespace margay::shared_table
