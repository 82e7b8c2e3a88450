// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dpdk/buffer_plan.h"

#include "dataplane/core/neighbours.h"
#include "dataplane/core/packet.h"

namespace margay::dp {
namespace {

constexpr size_t kHeadroom = 128;        // RTE_PKTMBUF_HEADROOM, checked in ports.cc
constexpr size_t kBufferOverhead = 256;  // struct rte_mbuf and the pool's own header and alignment
constexpr uint32_t kSpare = 2048;

}  // namespace

size_t BufferPlan::bytes() const { return size_t{count} * (room + kBufferOverhead); }

BufferPlan plan_buffers(const SiteConfig& config) {
  const uint32_t workers = config.workers;
  // A pool's cache may hold half as much again before it gives back.
  const uint32_t cached = kCachedPackets * 3 / 2;
  BufferPlan plan;
  plan.count = kSpare + cached;
  plan.count += workers * static_cast<uint32_t>(cached + kRingPackets + Neighbours::kWaitingMax + 2 * kBurstMax +
                                                Outbox::kFramesMax);
  for (const PortConfig& port : config.ports) {
    plan.count += workers * (kRxDescriptors + kTxDescriptors);
    if (!port.kernel.empty()) plan.count += workers * 2 * kKernelDescriptors;
  }
  plan.room = static_cast<uint16_t>(kHeadroom + buffer_bytes(config));
  return plan;
}

}  // namespace margay::dp
