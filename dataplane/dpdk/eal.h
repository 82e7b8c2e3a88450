// SPDX-License-Identifier: Apache-2.0
#pragma once

// DPDK's environment for the life of the process: started once, ended by the destructor, after everything that
// lives in its memory is gone. Its messages (warnings and worse) go through our log. EAL cannot be started twice
// in one process. Control thread only.

#include <functional>
#include <memory>

#include "common/result.h"
#include "dataplane/core/units.h"
#include "dataplane/dpdk/eal_plan.h"

namespace margay::dp {

class Eal {
 public:
  static Result<std::unique_ptr<Eal>> start(const EalPlan& plan);
  ~Eal();
  Eal(const Eal&) = delete;
  Eal& operator=(const Eal&) = delete;

  // lcores that can run workers.
  size_t worker_cores() const;
  // NUMA node and (first) CPU of a worker's lcore. REQUIRES: w < worker_cores()
  int socket_of(WorkerIndex w) const;
  int cpu_of(WorkerIndex w) const;

  // Runs `body` on the worker's lcore.
  Result<void> launch(WorkerIndex w, std::function<void()> body);
  // Waits until every body has returned.
  void join();

 private:
  Eal() = default;
  std::vector<unsigned> lcores_;  // by worker
  std::vector<std::unique_ptr<std::function<void()>>> bodies_;
};

}  // namespace margay::dp
