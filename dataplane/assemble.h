// SPDX-License-Identifier: Apache-2.0
#pragma once

// Puts the running data plane together, in the only order that works, and takes it apart again: EAL, ports,
// memory, shared state, fast paths, the control plane's socket, workers. Everything that can fail has failed before the
// first worker starts.
// Control thread only; EAL allows one a process.

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/result.h"
#include "common/shared_table/memory_file.h"
#include "dataplane/bindings_file.h"
#include "dataplane/core/fast_path.h"
#include "dataplane/core/site_config.h"
#include "dataplane/data_plane.h"
#include "dataplane/dpdk/eal.h"
#include "dataplane/dpdk/memory.h"
#include "dataplane/dpdk/ports.h"
#include "dataplane/mailbox.h"
#include "dataplane/table_thread.h"

namespace margay::dp {

class Assembly {
 public:
  // Ports are configured and down, nothing runs.
  static Result<std::unique_ptr<Assembly>> build(SiteConfig config, std::span<const std::string> eal_args);
  // The control plane parted with, workers stopped and joined, ports closed, what RCU still holds freed, EAL ended.
  ~Assembly();
  Assembly(const Assembly&) = delete;
  Assembly& operator=(const Assembly&) = delete;

  // Ports up, the control plane served, workers on their lcores.
  Result<void> start();
  void stop_workers();

  DataPlane& data_plane() { return *data_plane_; }

 private:
  struct WorkerParts;

  explicit Assembly(shared_table::MemoryFile counters);
  Result<void> reserve_shared(SharedState::Counters counters, size_t bytes);
  Result<void> make_workers(size_t bytes_per_worker);
  Result<void> open_bindings(const SiteConfig& config, shared_table::CountersShape room);
  std::unique_ptr<SiteTable> first_table(const SiteConfig& config, shared_table::CountersShape room) const;
  Result<void> take_over_bindings();

  // In the order of construction: each needs those above it.
  shared_table::MemoryFile counters_;
  HashSecret secret_;
  std::unique_ptr<BindingsFile> bindings_;
  std::unique_ptr<Eal> eal_;
  std::unique_ptr<Ports> ports_;
  std::optional<MemoryBlock> shared_memory_;
  std::optional<SharedState> shared_;
  std::vector<Mailbox> mailboxes_;
  std::optional<DataPlane> data_plane_;
  std::unique_ptr<TableThread> table_thread_;
  std::vector<std::unique_ptr<WorkerParts>> workers_;
  std::atomic<bool> stop_workers_{false};
};

}  // namespace margay::dp
