// SPDX-License-Identifier: Apache-2.0
#pragma once

// What ports and workers are joined by: devices, packet pools, rings. Built by Ports, used by each worker's
// PortIo, fixed between the two. Internal to dataplane/dpdk.
//
// Worker w polls and sends through queue w of each device that has as many. A device with fewer TX queues gets a
// ring for each of them: workers without their own put packets there, the queue's worker sends them.

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include <rte_mbuf.h>
#include <rte_ring.h>

#include "dataplane/dpdk/device.h"

namespace margay::dp {

// Freed with the packets that still lie in it.
struct FreeRing {
  void operator()(rte_ring* ring) const {
    void* packet;
    while (rte_ring_dequeue(ring, &packet) == 0) rte_pktmbuf_free(static_cast<rte_mbuf*>(packet));
    rte_ring_free(ring);
  }
};
using RingPointer = std::unique_ptr<rte_ring, FreeRing>;

struct FreePool {
  void operator()(rte_mempool* pool) const { rte_mempool_free(pool); }
};
using PoolPointer = std::unique_ptr<rte_mempool, FreePool>;

struct Link {
  Device device;
  std::vector<RingPointer> transmit_rings;  // by TX queue; empty when every worker has its own queue
};

struct Wiring {
  std::vector<std::pair<int, PoolPointer>> pools;  // by NUMA node; the first is for our own frames
  std::vector<Link> ports;                         // as in the site file
  std::vector<std::optional<Link>> kernels;        // by port
  std::vector<std::atomic<bool>> dead;             // by port: takes packets and loses them
  std::vector<RingPointer> hand_over;              // by the worker that takes
};

}  // namespace margay::dp
