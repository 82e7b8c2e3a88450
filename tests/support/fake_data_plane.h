// SPDX-License-Identifier: Apache-2.0
#pragma once

// The data plane's end of the shared table, to behave as a test wants it to: a real socket, real sealed memory, and any
// message at any time. One who has gone is told nothing; what else cannot be done ends the program. One thread.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/check.h"
#include "common/shared_table/counters.h"
#include "common/shared_table/memory_file.h"
#include "common/shared_table/messages.h"
#include "common/shared_table/snapshot.h"
#include "common/unix_socket.h"
#include "tests/support/temp_folder.h"

namespace margay::control {

class FakeDataPlane {
 public:
  // Listens at `path`, or in a folder of its own.
  explicit FakeDataPlane(shared_table::CountersShape shape = {.workers = 2, .instances = 16, .scis = 4},
                         const std::string& path = {})
      : shape_(shape),
        path_(path.empty() ? folder_.path() + "/dataplane.sock" : path),
        counters_(std::move(*shared_table::MemoryFile::create("counters", shared_table::counters_bytes(shape),
                                                              shared_table::MemoryFile::Writers::kMaker))),
        view_(shared_table::make_counters(counters_.bytes(), shape)) {
    listen();
  }

  const std::string& path() const { return path_; }
  const shared_table::CountersView<std::byte>& counters() const { return view_; }
  InstanceCounters& counts(uint32_t worker, uint32_t instance) {
    return view_.instances()[worker * shape_.instances + instance];
  }
  InstanceTimes& times(uint32_t worker, uint32_t instance) {
    return view_.times()[worker * shape_.instances + instance];
  }
  void beat() {
    for (WorkerCounters& w : view_.workers()) w.polls.add();
  }

  void listen() { listener_.emplace(std::move(*UnixListener::open(path_, SOCK_SEQPACKET, 4))); }
  void stop_listening() { listener_.reset(); }
  void close() { socket_.reset(); }
  bool connected() const { return static_cast<bool>(socket_); }
  int socket() const { return socket_.get(); }

  // Takes whoever calls; false when nobody does.
  bool accept() {
    socket_ = listener_->accept();
    return connected();
  }
  void welcome(const std::optional<shared_table::Snapshot>& running = {}) {
    make_buffers();
    shared_table::Message hello;
    hello.kind = shared_table::MessageKind::kHello;
    if (running) {
      const std::vector<std::byte> bytes = encode(*running);
      std::copy(bytes.begin(), bytes.end(), buffers_->bytes().begin());
      hello.generation = running->generation;
      hello.length = bytes.size();
      hello.checksum = shared_table::checksum(bytes);
    }
    welcome_with(hello, buffers_->fd(), counters_.fd());
  }
  void make_buffers() {
    buffers_ = std::move(*shared_table::MemoryFile::create(
        "buffers", shared_table::kBuffers * shared_table::kSnapshotBytesMax, shared_table::MemoryFile::Writers::kBoth));
  }
  shared_table::MemoryFile& buffers() { return *buffers_; }
  int counters_fd() const { return counters_.fd(); }
  void welcome_with(const shared_table::Message& hello, int buffers, int counters) {
    const std::array<int, 2> both{buffers, counters};
    (void)shared_table::send(socket_.get(), hello, both);
  }

  shared_table::SendResult say(shared_table::MessageKind kind, uint32_t buffer, uint64_t generation,
                               std::string_view text = {}) {
    shared_table::Message m;
    m.kind = kind;
    m.buffer = buffer;
    m.generation = generation;
    m.say(text);
    return shared_table::send(socket_.get(), m);
  }
  void say_raw(const void* bytes, size_t size) { (void)!::send(socket_.get(), bytes, size, MSG_NOSIGNAL); }

  // The next commit, decoded; nothing when there is none.
  struct Commit {
    shared_table::Message message;
    shared_table::Snapshot snapshot;
  };
  std::optional<Commit> commit() {
    const shared_table::Received received = shared_table::receive(socket_.get());
    if (received.state != shared_table::Received::State::kMessage) return {};
    const auto bytes = std::as_const(*buffers_).bytes().subspan(
        received.message.buffer * shared_table::kSnapshotBytesMax, received.message.length);
    auto snapshot = shared_table::decode(bytes);
    MARGAY_CHECK(snapshot);
    return Commit{received.message, *snapshot};
  }
  // Takes it, and says that all workers use it.
  std::optional<shared_table::Snapshot> take() {
    auto c = commit();
    if (!c) return {};
    say(shared_table::MessageKind::kTaken, c->message.buffer, c->message.generation);
    say(shared_table::MessageKind::kAck, 0, c->message.generation);
    return c->snapshot;
  }

 private:
  shared_table::CountersShape shape_;
  test::TempFolder folder_;
  std::string path_;
  shared_table::MemoryFile counters_;
  shared_table::CountersView<std::byte> view_;
  std::optional<UnixListener> listener_;
  Fd socket_;
  std::optional<shared_table::MemoryFile> buffers_;
};

}  // namespace margay::control
