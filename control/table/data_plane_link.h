// SPDX-License-Identifier: Apache-2.0
#pragma once

// The connection to the data plane: comes about again and again, commits what the plan has pending, and reads counters
// and heartbeats. What the data plane says is judged before it is used; what is wrong ends the connection with its
// reason, and the next try follows a moment later. The log tells each change once.
//
// A data plane is lost when its socket closes, when we end the connection, when there is none for kPatience, and, for
// then it forwards nothing, when its operator stopped it or no worker at all made progress for kPatience. A single
// worker that stands still is told in the log: the others go on, and its sessions are still counted.
//
// One thread; nothing here waits.

#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/fd.h"
#include "common/shared_table/heartbeat_watch.h"
#include "common/shared_table/writer.h"
#include "control/sci/events.h"
#include "control/table/ledger_reader.h"
#include "control/table/table_plan.h"

namespace margay::control {

class DataPlaneLink {
 public:
  static constexpr Nanoseconds kPatience = kSecond;
  static constexpr Nanoseconds kLedgerInterval = 100 * kMillisecond;
  static constexpr Nanoseconds kBackoffMin = 100 * kMillisecond, kBackoffMax = kSecond;
  static constexpr Nanoseconds kAnswerPatience = 10 * kSecond;  // for a commit, while workers run
  static constexpr Nanoseconds kRetryRefused = 10 * kSecond;    // what is held back

  struct Turn {
    bool connected = false;                                    // running() tells what it ran
    std::optional<std::string> lost;                           // why
    bool back = false;                                         // after it was lost
    std::vector<std::pair<std::string, LedgerSample>> ledger;  // by CSCI-ID
  };
  struct Status {
    bool connected = false, alive = false;
    std::string why;  // not connected, or not alive
    uint32_t workers = 0;
    uint64_t acked = 0;  // generation
    uint64_t connections = 0, taken = 0, refused = 0;
    std::string last_refusal;
  };

  // An empty path: there is none, and nobody is called. `epoll`: told of every socket that is to be read, -1: nobody.
  // REQUIRES: the plan outlives the link.
  DataPlaneLink(std::string path, TablePlan& plan, int epoll, Nanoseconds now);

  // What happened since.
  Turn poll(Nanoseconds now);
  // Commits what the plan has pending, if it may go.
  void flush(Nanoseconds now);
  // When both are wanted, unless a socket can be read before.
  Nanoseconds next_due() const;

  // What the data plane ran when we connected last.
  const std::optional<shared_table::Snapshot>& running() const { return running_; }
  const Status& status() const { return status_; }
  // Of the workers of the data plane that is connected; empty without one.
  std::span<const WorkerCounters> workers() const {
    return there_ ? there_->workers : std::span<const WorkerCounters>();
  }

 private:
  struct There {
    std::unique_ptr<shared_table::Writer> writer;
    LedgerReader ledger;
    std::span<const WorkerCounters> workers;
    const Counter* stopped;
    shared_table::HeartbeatWatch watch;
    std::vector<uint64_t> heartbeats;      // when it was last not alive
    std::vector<uint64_t> seen;            // heartbeats, at the last look
    std::set<uint32_t> standing, stalled;  // workers: no progress; hold up an ack
    Nanoseconds since = 0;
  };

  void call(Nanoseconds now);
  void welcome(Nanoseconds now);
  Result<void> meet(std::unique_ptr<shared_table::Writer> writer, Nanoseconds now);
  void hear(Nanoseconds now);
  std::string heed(const shared_table::Writer::News& news, Nanoseconds now);
  void refused(const shared_table::Writer::News::Refused& refusal, Nanoseconds now);
  void look(Nanoseconds now);
  void watch_workers(Nanoseconds now);
  bool forwards() const;
  void read_ledger();
  void away(const std::string& why, Nanoseconds now);
  void lose(const std::string& why);
  void part(const std::string& why, Nanoseconds now);
  void back_off(Nanoseconds now);

  std::string path_;
  TablePlan& plan_;
  int epoll_;
  Fd calling_;
  std::unique_ptr<There> there_;
  std::optional<shared_table::Snapshot> running_;
  Status status_;
  Turn turn_;
  bool told_lost_ = false;
  std::string told_away_, told_refusal_;
  Nanoseconds started_;
  Nanoseconds retry_at_, backoff_ = kBackoffMin;
  Nanoseconds give_up_at_ = kNever;  // on the welcome, or on an answer
  Nanoseconds commit_at_ = 0, hold_until_ = 0, look_at_ = 0;
};

}  // namespace margay::control
