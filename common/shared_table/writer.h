// SPDX-License-Identifier: Apache-2.0
#pragma once

// The control plane's end of the shared table: connects to the data plane, learns what runs there, and commits
// snapshots through the buffers it was given. Trusts nothing that comes over the socket: sizes and seals of the shared
// memory, every message, and the running snapshot are looked at before use.
//
// A message that the protocol has no place for ends the connection: a buffer given back that was not lent, an answer or
// ack for a generation that was never committed, an ack that goes back, more messages at once than there is reason for.
//
// One thread at a time; only connect() may block, for at most its patience.

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/shared_table/counters.h"
#include "common/shared_table/memory_file.h"
#include "common/shared_table/messages.h"
#include "common/shared_table/snapshot.h"

namespace margay::shared_table {

class Writer {
 public:
  static constexpr size_t kMessagesMax = 2 * kWorkersMax;  // at once

  struct News {
    std::optional<uint64_t> taken;  // the last one
    std::optional<uint64_t> acked;  // every worker uses this generation or a later one
    struct Refused {
      uint64_t generation = 0;
      std::string why;
    };
    std::vector<Refused> refused;
    std::vector<uint32_t> stalled;  // workers that hold up an ack
    bool gone = false;              // the data plane is no longer there; `why` when it misbehaved
    std::string why;
  };

  // Our end of the socket; the data plane's welcome is still to come. Never waits.
  static Result<Fd> call(const std::string& path);
  // The welcome is there to be read. Never waits. `path` is what errors name.
  static Result<std::unique_ptr<Writer>> welcomed(const std::string& path, Fd socket);
  // Both.
  static Result<std::unique_ptr<Writer>> connect(const std::string& path, std::chrono::milliseconds patience);

  // What ran when we connected, empty when the data plane had no snapshot.
  const std::optional<Snapshot>& running() const { return running_; }
  const MemoryFile& counters() const { return counters_; }

  // Writes and commits. False when every buffer is still the data plane's: try again after the next news.
  // REQUIRES: the encoded snapshot fits a buffer.
  [[nodiscard]] bool commit(const Snapshot& snapshot);
  // What the data plane said since the last call. Never waits.
  News news();

 private:
  Writer(Fd socket, MemoryFile buffers, MemoryFile counters)
      : socket_(std::move(socket)), buffers_(std::move(buffers)), counters_(std::move(counters)) {}
  void take(const Message& message, News& news);
  void take_answer(const Message& message, News& news);
  void take_ack(uint64_t generation, News& news);

  Fd socket_;
  MemoryFile buffers_, counters_;
  std::optional<Snapshot> running_;
  std::array<uint64_t, kBuffers> lent_{};  // generation that lies there, 0: the buffer is ours
  uint64_t last_ = 0, acked_ = 0;          // generations: committed, or found running
};

}  // namespace margay::shared_table
