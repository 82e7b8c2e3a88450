// SPDX-License-Identifier: Apache-2.0
#pragma once

// The thread that serves the control plane: takes its snapshots into the data plane, and acks each generation once
// every worker uses it or a later one. It never waits for a worker: generations that are published meanwhile are acked
// together, and a worker that holds up an ack is named to the other side, once a stall.

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "common/shared_table/heartbeat_watch.h"
#include "dataplane/data_plane.h"
#include "dataplane/table_link.h"

namespace margay::dp {

class TableThread {
 public:
  // REQUIRES: data plane and counters outlive it.
  static Result<std::unique_ptr<TableThread>> start(const std::string& path, DataPlane& data_plane,
                                                    const shared_table::MemoryFile& counters);
  ~TableThread();

  TableStatus status() const;  // any thread

 private:
  TableThread(std::unique_ptr<TableLink> link, DataPlane& data_plane)
      : link_(std::move(link)), data_plane_(data_plane), watch_(data_plane.shared.worker_counters, data_plane.now()) {}

  void run();
  void ack();
  void name_stalled();

  std::unique_ptr<TableLink> link_;
  DataPlane& data_plane_;
  shared_table::HeartbeatWatch watch_;
  std::deque<Published> waiting_;  // published, and not yet passed by every worker
  uint64_t seen_ = 0;              // generation
  std::set<uint32_t> stalled_;
  std::set<uint32_t> untold_;  // of those: the other side does not know yet
  mutable std::mutex mutex_;   // of status_
  TableStatus status_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace margay::dp
