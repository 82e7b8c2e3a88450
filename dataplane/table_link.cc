// SPDX-License-Identifier: Apache-2.0
#include "dataplane/table_link.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "common/monotonic.h"

namespace margay::dp {

using shared_table::kBuffers;
using shared_table::kSnapshotBytesMax;
using shared_table::MemoryFile;
using shared_table::Message;
using shared_table::MessageKind;
using shared_table::Received;
using shared_table::SendResult;
using shared_table::Snapshot;

namespace {

constexpr int kBacklog = 4;
constexpr int kMessagesPerPoll = 64;
constexpr int kConnectionsPerPoll = 16;

Message message_of(MessageKind kind, uint32_t buffer, uint64_t generation, std::string_view text = {}) {
  Message m;
  m.kind = kind;
  m.buffer = buffer;
  m.generation = generation;
  m.say(text);
  return m;
}

std::optional<ucred> credentials(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return {};
  return peer;
}

std::span<std::byte> buffer_of(MemoryFile& file, uint32_t index) {
  return file.bytes().subspan(index * kSnapshotBytesMax, kSnapshotBytesMax);
}

}  // namespace

Result<std::unique_ptr<TableLink>> TableLink::open(const std::string& path, SnapshotTarget& target,
                                                   const MemoryFile& counters) {
  auto listener = UnixListener::open(path, SOCK_SEQPACKET, kBacklog);
  if (!listener) return listener.error();
  return std::unique_ptr<TableLink>(new TableLink(std::move(*listener), target, counters));
}

void TableLink::poll(std::chrono::milliseconds timeout) {
  std::array<pollfd, 2> polled{pollfd{listener_.fd(), POLLIN, 0}, pollfd{peer_ ? peer_->socket.get() : -1, POLLIN, 0}};
  if (::poll(polled.data(), polled.size(), static_cast<int>(timeout.count())) <= 0) return;
  if (polled[1].revents != 0) serve();
  if (polled[0].revents != 0) accept_all();
}

void TableLink::accept_all() {
  for (int n = 0; n < kConnectionsPerPoll; ++n) {
    Fd socket = listener_.accept();
    if (!socket) return;
    const auto who = credentials(socket.get());
    const pid_t pid = who ? who->pid : 0;
    if (peer_) {
      const auto busy = fmt::format("process {} is connected as control plane", status_.control);
      (void)shared_table::send(socket.get(), message_of(MessageKind::kBusy, 0, 0, busy));
      refuse_connection(pid, busy);
    } else if (auto done = welcome(std::move(socket)); !done) {
      refuse_connection(pid, done.error().message);
    }
  }
}

void TableLink::refuse_connection(pid_t pid, const std::string& why) {
  status_.last_refusal = why;
  if (!connections_logged_.allows(monotonic_now())) return;
  spdlog::warn("msg=\"control plane turned away\" pid={} why={:?} left_out={}", pid, why,
               connections_logged_.left_out());
}

// Hands over fresh buffers, the first of which holds the running snapshot, and the counters.
Result<void> TableLink::welcome(Fd socket) {
  const auto who = credentials(socket.get());
  if (!who || (who->uid != 0 && who->uid != ::geteuid())) return Error{"a stranger's control plane was turned away"};
  auto buffers = MemoryFile::create("margay-snapshots", kBuffers * kSnapshotBytesMax, MemoryFile::Writers::kBoth);
  if (!buffers) return buffers.error();
  Message hello = message_of(MessageKind::kHello, 0, target_.generation());
  if (hello.generation > 0) {
    const std::vector<std::byte> running = shared_table::encode(target_.complete());
    std::copy(running.begin(), running.end(), buffers->bytes().begin());
    hello.length = running.size();
    hello.checksum = shared_table::checksum(running);
  }
  const std::array<int, 2> descriptors{buffers->fd(), counters_.fd()};
  if (shared_table::send(socket.get(), hello, descriptors) != SendResult::kSent) return Error{"took no welcome"};
  status_.control = who->pid;
  status_.since = monotonic_now();
  ++status_.connections;
  if (connections_logged_.allows(status_.since)) {
    spdlog::info("msg=\"control plane connected\" pid={} generation={} left_out={}", who->pid, hello.generation,
                 connections_logged_.left_out());
  }
  peer_.emplace(Peer{std::move(socket), std::move(*buffers)});
  return {};
}

void TableLink::serve() {
  for (int n = 0; n < kMessagesPerPoll && peer_; ++n) {
    const Received received = shared_table::receive(peer_->socket.get());
    switch (received.state) {
      case Received::State::kNothing:
        return;
      case Received::State::kClosed:
        return part({});
      case Received::State::kWrong:
        return part("sent " + received.wrong);
      case Received::State::kMessage:
        if (received.message.kind != MessageKind::kCommit)
          return part("sent a message that is the data plane's to send");
        commit(received.message);
    }
  }
}

void TableLink::commit(const Message& message) {
  auto snapshot = read(message);
  Result<void> done = snapshot ? target_.apply(*snapshot) : Result<void>(snapshot.error());
  if (done) {
    ++status_.taken;
    return say(message_of(MessageKind::kTaken, message.buffer, message.generation));
  }
  ++status_.refused;
  status_.last_refusal = done.error().message;
  if (refusals_logged_.allows(monotonic_now())) {
    spdlog::warn("msg=\"snapshot refused\" pid={} generation={} why={:?} left_out={}", status_.control,
                 message.generation, status_.last_refusal, refusals_logged_.left_out());
  }
  say(message_of(MessageKind::kRefused, message.buffer, message.generation, status_.last_refusal));
}

// Copies first: whatever the other side writes from here on changes nothing.
Result<Snapshot> TableLink::read(const Message& message) {
  if (message.buffer >= kBuffers) {
    return Error{fmt::format("buffer {}, expected 0 to {}", message.buffer, kBuffers - 1)};
  }
  if (message.length > kSnapshotBytesMax) {
    return Error{fmt::format("length {}, expected at most {}", message.length, kSnapshotBytesMax)};
  }
  const std::span<const std::byte> shared = buffer_of(peer_->buffers, message.buffer).first(message.length);
  const std::vector<std::byte> copy(shared.begin(), shared.end());
  if (shared_table::checksum(copy) != message.checksum) {
    return Error{fmt::format("checksum of buffer {} is not the one that the commit names", message.buffer)};
  }
  auto snapshot = shared_table::decode(copy);
  if (snapshot && snapshot->generation != message.generation) {
    return Error{
        fmt::format("generation {} in the snapshot, {} in the commit", snapshot->generation, message.generation)};
  }
  return snapshot;
}

void TableLink::acked(uint64_t generation) {
  status_.acked = std::max(status_.acked, generation);
  if (peer_) say(message_of(MessageKind::kAck, 0, status_.acked));
}

void TableLink::stalled(uint32_t worker) {
  if (peer_) say(message_of(MessageKind::kStalled, worker, target_.generation()));
}

void TableLink::say(const Message& message) {
  switch (shared_table::send(peer_->socket.get(), message)) {
    case SendResult::kSent:
      return;
    case SendResult::kFull:
      return part("reads no answers");
    case SendResult::kGone:
      return part({});
  }
}

void TableLink::part(const std::string& why) {
  if (!why.empty()) status_.last_refusal = why;
  status_.since = monotonic_now();
  if (connections_logged_.allows(status_.since)) {
    spdlog::warn("msg=\"control plane gone, forwarding on\" pid={} generation={} why={:?} left_out={}", status_.control,
                 target_.generation(), why.empty() ? "it closed the connection" : why, connections_logged_.left_out());
  }
  peer_.reset();
  status_.control = 0;
}

}  // namespace margay::dp
