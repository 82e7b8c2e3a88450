// SPDX-License-Identifier: Apache-2.0
#pragma once

// Real ports over software rings (net_ring), for tests of the DPDK shell: what a test puts into a port's RX ring is
// what the port receives, what the port sends lies in its TX ring. EAL runs once a process, without huge pages,
// PCI or root. One thread.

#include <memory>
#include <string>
#include <vector>

#include <rte_ring.h>

#include "dataplane/dpdk/buffer_plan.h"
#include "dataplane/dpdk/port_io.h"
#include "dataplane/dpdk/ports.h"
#include "dataplane/dpdk/wiring.h"
#include "tests/support/packet_builder.h"

namespace margay::dp {

class Rig {
 public:
  // Ports net0, net1, ... of this many queues each (of RX and TX), for this many workers.
  Rig(SiteConfig config, uint16_t queues, unsigned ring_size = 4096);
  ~Rig();

  const SiteConfig& config() const { return config_; }
  Ports& ports() { return *ports_; }
  rte_mempool* pool() { return ports_->wiring().pools.front().second.get(); }
  // Packet buffers that nobody holds.
  unsigned free_buffers() { return rte_mempool_avail_count(pool()); }

  rte_mbuf* make(const test::Bytes& frame);
  void arrive(PortIndex port, uint16_t queue, rte_mbuf* packet);
  void arrive(PortIndex port, uint16_t queue, const test::Bytes& frame) { arrive(port, queue, make(frame)); }
  // Takes what the port has sent by this queue.
  std::vector<test::Bytes> sent(PortIndex port, uint16_t queue);

 private:
  struct Rings {
    std::vector<rte_ring*> rx, tx;
  };
  SiteConfig config_;
  std::vector<Rings> rings_;  // by port
  std::unique_ptr<Ports> ports_;
};

// A site of two ports, one forwarder that may be anybody and one `nat` SCI: 192.0.2.10:80/tcp, one instance.
SiteConfig two_port_site(uint16_t workers);

}  // namespace margay::dp
