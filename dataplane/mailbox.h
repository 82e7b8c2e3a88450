// SPDX-License-Identifier: Apache-2.0
#pragma once

// How the control thread looks into a worker's private memory without stopping it: it posts a job, the worker
// runs it between two polls. A job does bounded work and neither waits nor allocates; long lists are read by many
// jobs, each going on where the last one ended. One control thread posts; one worker serves.

#include <atomic>

#include "dataplane/core/fast_path.h"
#include "dataplane/core/site_table.h"

namespace margay::dp {

class WorkerJob {
 public:
  virtual ~WorkerJob() = default;
  virtual void run(FastPath& fast_path, const SiteTable& table) = 0;
};

class Mailbox {
 public:
  // Control thread: runs the job in the worker and waits for its end, at most `patience`. False when the worker
  // has not taken it by then (it stalls, or is stopped); the job is then withdrawn and was not run.
  [[nodiscard]] bool run(WorkerJob& job, Nanoseconds patience);

  // Worker: runs a waiting job, if any. One relaxed load when there is none.
  void serve(FastPath& fast_path, const SiteTable& table) {
    if (waiting_.load(std::memory_order_relaxed) != nullptr) [[unlikely]]
      serve_waiting(fast_path, table);
  }

 private:
  void serve_waiting(FastPath& fast_path, const SiteTable& table);

  std::atomic<WorkerJob*> waiting_{nullptr};
  std::atomic<bool> done_{false};
};

}  // namespace margay::dp
