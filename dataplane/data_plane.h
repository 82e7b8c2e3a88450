// SPDX-License-Identifier: Apache-2.0
#pragma once

// The running data plane as commands and the control plane see it. A change makes a new site table and publishes it;
// workers are never stopped and never waited for.

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/rcu.h"
#include "common/shared_table/counters.h"
#include "dataplane/bindings_file.h"
#include "dataplane/core/fast_path.h"
#include "dataplane/core/live_site.h"
#include "dataplane/core/site_config.h"
#include "dataplane/core/site_table.h"
#include "dataplane/mailbox.h"
#include "dataplane/table_link.h"
#include "dataplane/table_recorder.h"

namespace margay::dp {

struct PortInfo {
  std::string name, device, driver;
  MacAddress mac;
  bool link_up = false;
  uint32_t link_mbps = 0;  // 0: unknown
  uint16_t mtu = 0;
  uint16_t rx_queues = 0, tx_queues = 0;
  int numa_node = -1;
  bool promiscuous = false;
  std::string kernel;  // exception path's interface, empty: none
};

struct PortStats {
  uint64_t rx_packets = 0, rx_bytes = 0, rx_missed = 0, rx_errors = 0, rx_no_buffer = 0;
  uint64_t tx_packets = 0, tx_bytes = 0, tx_errors = 0;
};

struct LinkChange {
  PortIndex port = 0;
  bool up = false;
};

// What commands and the control loop may ask of the ports, without knowing DPDK. Index as in the site file.
class PortInspector {
 public:
  virtual ~PortInspector() = default;
  virtual PortInfo info(PortIndex port) const = 0;
  virtual PortStats stats(PortIndex port) const = 0;
  virtual std::vector<std::pair<std::string, uint64_t>> xstats(PortIndex port) const = 0;
  virtual Result<void> clear_stats(PortIndex port) = 0;
  // Looks at all links: those that are not as they were the last time (at first: up). To be called a few times a
  // second; what is to leave by a link that is seen down may be dropped as link_down.
  virtual std::vector<LinkChange> follow_links() = 0;
};

// A table that workers may use.
struct Published {
  uint64_t generation = 0;  // of the control plane's snapshot
  uint64_t version = 0;     // of the table
};

// Threads: commands take turns as the control thread (common/cli/executor.h); snapshots come by the table thread. Both
// change the site through here, one at a time, and neither waits for a worker.
class DataPlane : public SnapshotTarget, private LiveSite::Owner {
 public:
  using TablePointer = UrcuQsbr::Pointer<const SiteTable>;

  DataPlane(SiteConfig site, std::unique_ptr<SiteTable> first, SharedState& shared_state,
            std::vector<Mailbox>& worker_mailboxes, PortInspector& inspector);

  const TablePointer& table_pointer() const { return pointer_; }  // for workers

  // Commands: takes up what was published since the last turn. Each turn begins with it.
  void begin_turn();
  // Commands: the table of this turn, its own changes included; stays until the next one begins.
  const SiteTable& table() const { return *view_; }
  // Commands: publishes a changed copy, of which no recording is made. The old table is freed when no worker can see it
  // any more.
  void change(const std::function<void(SiteTable&)>& edit);
  // Commands: packets of SCIs are forwarded, or dropped as stopped; false when that is so already.
  bool set_forwarding(bool on);
  // Commands: what the operator sets stands over the site file and the control plane.
  void set(InstanceIndex i, const std::function<void(Override&)>& edit);
  std::optional<Override> override_of(InstanceIndex i) const;
  // Commands: each change from now on goes into this new file, the state of now first; until stop_recording().
  Result<void> start_recording(const std::string& path);
  // Commands: what was recorded, and why it ended by itself, if it did; nothing: no recording was begun.
  std::optional<TableRecorder::Status> stop_recording();
  std::optional<TableRecorder::Status> recording() const;
  // Control thread, in its turn, a few times a second. The error is told once: the recording has ended.
  Result<void> write_recording();

  // Table thread.
  uint64_t generation() const override;
  shared_table::Snapshot complete() const override;
  Result<void> apply(const shared_table::Snapshot& snapshot) override;
  // A time of CLOCK_MONOTONIC that is to come, on a worker's clock.
  static Tick tick_at(Nanoseconds monotonic, Nanoseconds (*now)());
  // Control thread, a few times a second: what a later process needs to take the bindings over. The error is told once.
  Result<void> keep_bindings();
  // Any thread: the newest table, and the version that every worker uses, or a later one.
  Published published() const;
  uint64_t passed() const override { return passed_.load(std::memory_order_acquire); }

  const SiteConfig config;
  SharedState& shared;
  std::vector<Mailbox>& mailboxes;  // by worker
  PortInspector& ports;
  std::atomic<bool> stop{false};              // `shutdown`, SIGTERM
  Nanoseconds (*now)() = nullptr;             // the workers' clock
  std::function<TableStatus()> table_status;  // empty: no control plane is asked for
  BindingsFile* bindings = nullptr;           // none: bindings end with the process

 private:
  struct Retired;

  Tick tick_at(Nanoseconds monotonic) const override { return tick_at(monotonic, now); }
  void publish(const SiteTable& next, std::shared_ptr<const SiteTable> before) override;

  mutable std::mutex mutex_;  // of the site, and of which recorder there is
  LiveSite site_;
  std::unique_ptr<TableRecorder> recorder_;

  std::shared_ptr<const SiteTable> view_;  // of the commands' turn
  TablePointer pointer_;
  std::atomic<uint64_t> passed_;
};

}  // namespace margay::dp
