// SPDX-License-Identifier: Apache-2.0
#pragma once

// The running data plane as its control thread sees it: what commands read and change. A change makes a new site
// table and publishes it; workers are never stopped and never waited for. Control thread only.

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/rcu.h"
#include "dataplane/core/fast_path.h"
#include "dataplane/core/site_config.h"
#include "dataplane/core/site_table.h"
#include "dataplane/mailbox.h"

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

class DataPlane {
 public:
  using TablePointer = UrcuQsbr::Pointer<const SiteTable>;

  DataPlane(SiteConfig site, std::unique_ptr<SiteTable> first, SharedState& shared_state,
            std::vector<Mailbox>& worker_mailboxes, PortInspector& inspector)
      : config(std::move(site)),
        shared(shared_state),
        mailboxes(worker_mailboxes),
        ports(inspector),
        table_(std::move(first)),
        pointer_(table_.get()) {}

  const SiteTable& table() const { return *table_; }
  const TablePointer& table_pointer() const { return pointer_; }  // for workers

  // Makes `next` the table of all workers; the old one is freed when no worker can see it any more.
  void publish(std::unique_ptr<SiteTable> next) {
    next->version = table_->version + 1;
    pointer_.publish(next.get());
    UrcuQsbr::retire(std::exchange(table_, std::move(next)));
  }

  // Packets of SCIs are forwarded, or dropped as stopped; false when that is so already.
  bool set_forwarding(bool on) {
    if (table_->forwarding == on) return false;
    std::unique_ptr<SiteTable> next = table_->clone();
    next->forwarding = on;
    publish(std::move(next));
    return true;
  }

  const SiteConfig config;
  SharedState& shared;
  std::vector<Mailbox>& mailboxes;  // by worker
  PortInspector& ports;
  std::atomic<bool> stop{false};   // `shutdown`, SIGTERM
  Nanoseconds (*now)() = nullptr;  // the workers' clock

 private:
  std::unique_ptr<SiteTable> table_;
  TablePointer pointer_;
};

}  // namespace margay::dp
