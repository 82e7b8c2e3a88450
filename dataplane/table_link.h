// SPDX-License-Identifier: Apache-2.0
#pragma once

// The data plane's end of the shared table: the socket that a control plane connects to, the buffers that it writes
// snapshots into, and what is said back (common/shared_table/messages.h). Trusts nothing that comes over it: a commit
// is copied to private memory, its checksum and every value looked at, and only the copy used; what is wrong is
// refused whole, with a reason, and the running table stays. One control plane at a time; each connection has buffers
// of its own, so that one that was connected before can reach into nothing.
//
// One thread at a time, the table thread's; it never waits for the other side.

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/log_limit.h"
#include "common/shared_table/memory_file.h"
#include "common/shared_table/messages.h"
#include "common/shared_table/snapshot.h"
#include "common/unix_socket.h"

namespace margay::dp {

// What snapshots are applied to.
class SnapshotTarget {
 public:
  virtual ~SnapshotTarget() = default;
  virtual uint64_t generation() const = 0;  // of the last snapshot applied, 0 before the first
  virtual shared_table::Snapshot complete() const = 0;
  // All of it or nothing; the error says what is wrong with it.
  virtual Result<void> apply(const shared_table::Snapshot& snapshot) = 0;
};

class TableLink {
 public:
  struct Status {
    pid_t control = 0;      // process that is connected, 0: none
    Nanoseconds since = 0;  // monotonic: when it connected, or the last one went; 0: there was none yet
    uint64_t connections = 0, taken = 0, refused = 0;
    uint64_t acked = 0;        // generation
    std::string last_refusal;  // and why the last connection ended, if it was ended by us
  };

  // REQUIRES: target and counters outlive the link.
  static Result<std::unique_ptr<TableLink>> open(const std::string& path, SnapshotTarget& target,
                                                 const shared_table::MemoryFile& counters);

  // Serves whoever is there; waits for at most `timeout` when nobody is.
  void poll(std::chrono::milliseconds timeout);

  // Every worker has passed a quiescent state since this generation was published.
  void acked(uint64_t generation);
  // A worker holds up the ack of the generation that was published last.
  void stalled(uint32_t worker);

  const Status& status() const { return status_; }

 private:
  struct Peer {
    Fd socket;
    shared_table::MemoryFile buffers;
  };

  TableLink(UnixListener listener, SnapshotTarget& target, const shared_table::MemoryFile& counters)
      : listener_(std::move(listener)), target_(target), counters_(counters) {}

  void accept_all();
  Result<void> welcome(Fd socket);
  void serve();
  void commit(const shared_table::Message& message);
  Result<shared_table::Snapshot> read(const shared_table::Message& message);
  void say(const shared_table::Message& message);
  void refuse_connection(pid_t pid, const std::string& why);
  void part(const std::string& why);

  UnixListener listener_;
  SnapshotTarget& target_;
  const shared_table::MemoryFile& counters_;
  std::optional<Peer> peer_;
  Status status_;
  LogLimit connections_logged_, refusals_logged_;
};

// What the thread behind the link knows more.
struct TableStatus : TableLink::Status {
  std::vector<uint32_t> stalled;  // workers that make no progress
};

}  // namespace margay::dp
