// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dpdk/port_io.h"

#include <array>
#include <cstring>
#include <ctime>

#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#include "common/check.h"
#include "dataplane/dpdk/clock.h"
#include "dataplane/dpdk/wiring.h"

namespace margay::dp {
namespace {

constexpr uint16_t kBurst = kBurstMax;

struct List {
  std::array<rte_mbuf*, kBurstMax> packets;
  uint16_t count = 0;
};

// One device as one worker uses it.
struct LinkQueue {
  uint16_t device = 0;
  uint16_t queue = 0;  // of RX and of TX, where `receives` and `sends`
  bool receives = false;
  bool sends = false;
  const std::atomic<bool>* dead = nullptr;
  rte_ring* ring = nullptr;  // to the worker that sends for us; or to us, from those that we send for
  List out;
};

LinkQueue queue_of(Link& link, WorkerIndex self) {
  LinkQueue q;
  q.device = link.device.id();
  q.queue = self;
  q.receives = self < link.device.rx_queues();
  q.sends = self < link.device.tx_queues();
  if (!link.transmit_rings.empty()) q.ring = link.transmit_rings[self % link.device.tx_queues()].get();
  return q;
}

uint16_t receive_burst(const LinkQueue& q, rte_mbuf** packets) {
  return q.receives ? rte_eth_rx_burst(q.device, q.queue, packets, kBurst) : uint16_t{0};
}

void free_rest(List& list, unsigned done, DropReason why, WorkerCounters& counters) {
  if (done < list.count) {
    counters.drop(why, list.count - done);
    rte_pktmbuf_free_bulk(&list.packets[done], list.count - done);
  }
  list.count = 0;
}

void enqueue(rte_ring* ring, List& list, DropReason when_full, Counter* count, WorkerCounters& counters) {
  const unsigned done =
      rte_ring_enqueue_burst(ring, reinterpret_cast<void**>(list.packets.data()), list.count, nullptr);
  if (count != nullptr) count->add(done);
  free_rest(list, done, when_full, counters);
}

void transmit(const LinkQueue& q, List& list, DropReason when_full, Counter& sent, WorkerCounters& counters) {
  if (q.dead != nullptr && q.dead->load(std::memory_order_relaxed)) [[unlikely]] {
    return free_rest(list, 0, DropReason::kLinkDown, counters);
  }
  const uint16_t done = rte_eth_tx_burst(q.device, q.queue, list.packets.data(), list.count);
  sent.add(done);
  free_rest(list, done, when_full, counters);
}

// Sends what lies in the list; a worker without a TX queue leaves it to one that has one, which counts it.
void flush(LinkQueue& q, DropReason when_full, Counter& sent, WorkerCounters& counters) {
  if (q.out.count == 0) return;
  if (q.sends) {
    transmit(q, q.out, when_full, sent, counters);
  } else {
    enqueue(q.ring, q.out, when_full, nullptr, counters);
  }
}

// What workers without a TX queue have left for us.
void send_for_others(LinkQueue& q, DropReason when_full, Counter& sent, WorkerCounters& counters) {
  if (q.ring == nullptr || !q.sends) return;
  List list;
  list.count = static_cast<uint16_t>(
      rte_ring_dequeue_burst(q.ring, reinterpret_cast<void**>(list.packets.data()), kBurst, nullptr));
  if (list.count > 0) transmit(q, list, when_full, sent, counters);
}

// A tag that the device took off goes back into the frame: the parser reads frames as they came.
bool restore_vlan(rte_mbuf*& m) {
  if ((m->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED) == 0) [[likely]]
    return true;
  m->ol_flags &= ~(RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED);
  return rte_vlan_insert(&m) == 0;
}

void add_to_burst(Burst& burst, rte_mbuf* m, PortIndex port) {
  Packet& packet = burst.packets[burst.count++];
  packet.data = rte_pktmbuf_mtod(m, uint8_t*);
  packet.handle = m;
  packet.length = m->data_len;
  packet.headroom = m->data_off;
  packet.tailroom = rte_pktmbuf_tailroom(m);
  packet.port = port;
}

void fill_burst(Burst& burst, rte_mbuf** packets, unsigned count, PortIndex port, WorkerCounters& counters) {
  burst.count = 0;
  for (unsigned i = 0; i < count; ++i) {
    rte_mbuf* m = packets[i];
    if (m->nb_segs > 1) [[unlikely]] {
      counters.packets.add();
      counters.drop(DropReason::kMultiSegment);
      rte_pktmbuf_free(m);
    } else if (!restore_vlan(m)) [[unlikely]] {
      counters.packets.add();
      counters.drop(DropReason::kNoHeadroom);
      rte_pktmbuf_free(m);
    } else {
      add_to_burst(burst, m, port);
    }
  }
}

// The packet's bounds, as the fast path left them, go back into the mbuf.
rte_mbuf* take_back(const Packet& packet) {
  auto* m = static_cast<rte_mbuf*>(packet.handle);
  m->data_off = static_cast<uint16_t>(packet.data - static_cast<uint8_t*>(m->buf_addr));
  m->data_len = packet.length;
  m->pkt_len = packet.length;
  m->port = packet.port;
  return m;
}

}  // namespace

struct PortIo::Queues {
  std::vector<LinkQueue> ports;
  std::vector<std::optional<LinkQueue>> kernels;  // by port
  std::vector<rte_ring*> workers;                 // by the worker that takes
  std::vector<List> to_workers;
  rte_ring* handed_over = nullptr;  // ours to take from
  rte_mempool* pool = nullptr;
  List freed;

  void put(rte_mbuf* m, Outcome outcome, WorkerCounters& counters);
  void put_link(rte_mbuf* m, LinkQueue& q, DropReason when_full, Counter& sent, WorkerCounters& counters);
  void put_worker(rte_mbuf* m, WorkerIndex to, WorkerCounters& counters);
  void put_freed(rte_mbuf* m);
  void flush_all(WorkerCounters& counters);
};

PortIo::PortIo(Ports& ports, WorkerIndex self) : queues_(std::make_unique<Queues>()) {
  Wiring& wiring = ports.wiring();
  for (size_t p = 0; p < wiring.ports.size(); ++p) {
    queues_->ports.push_back(queue_of(wiring.ports[p], self));
    queues_->ports.back().dead = &wiring.dead[p];
  }
  for (std::optional<Link>& link : wiring.kernels) {
    queues_->kernels.push_back(link ? std::optional(queue_of(*link, self)) : std::nullopt);
  }
  for (const RingPointer& ring : wiring.hand_over) queues_->workers.push_back(ring.get());
  queues_->to_workers.resize(wiring.hand_over.size());
  queues_->handed_over = wiring.hand_over[self].get();
  queues_->pool = wiring.pools.front().second.get();
}

PortIo::~PortIo() = default;

PortIndex PortIo::ports() const { return static_cast<PortIndex>(queues_->ports.size()); }

void PortIo::receive(PortIndex port, Burst& burst, WorkerCounters& counters) {
  LinkQueue& q = queues_->ports[port];
  send_for_others(q, DropReason::kTransmitFull, counters.transmitted, counters);
  std::array<rte_mbuf*, kBurstMax> packets;
  fill_burst(burst, packets.data(), receive_burst(q, packets.data()), port, counters);
}

void PortIo::receive_from_kernel(PortIndex port, Burst& burst, WorkerCounters& counters) {
  burst.count = 0;
  if (!queues_->kernels[port]) return;
  LinkQueue& q = *queues_->kernels[port];
  send_for_others(q, DropReason::kKernelFull, counters.to_kernel, counters);
  std::array<rte_mbuf*, kBurstMax> packets;
  const uint16_t count = receive_burst(q, packets.data());
  if (count == 0) return;
  counters.from_kernel.add(count);
  fill_burst(burst, packets.data(), count, port, counters);
}

void PortIo::receive_handed_over(Burst& burst, WorkerCounters& counters) {
  burst.count = 0;
  std::array<void*, kBurstMax> packets;
  const unsigned count = rte_ring_dequeue_burst(queues_->handed_over, packets.data(), kBurst, nullptr);
  if (count == 0) return;
  counters.taken_over.add(count);
  for (unsigned i = 0; i < count; ++i) {
    auto* m = static_cast<rte_mbuf*>(packets[i]);
    add_to_burst(burst, m, static_cast<PortIndex>(m->port));
  }
}

void PortIo::Queues::put_link(rte_mbuf* m, LinkQueue& q, DropReason when_full, Counter& sent,
                              WorkerCounters& counters) {
  if (q.out.count == kBurst) flush(q, when_full, sent, counters);
  q.out.packets[q.out.count++] = m;
}

void PortIo::Queues::put_worker(rte_mbuf* m, WorkerIndex to, WorkerCounters& counters) {
  List& list = to_workers[to];
  if (list.count == kBurst) {
    enqueue(workers[to], list, DropReason::kHandOverFull, &counters.handed_over, counters);
  }
  list.packets[list.count++] = m;
}

void PortIo::Queues::put_freed(rte_mbuf* m) {
  if (freed.count == kBurst) {
    rte_pktmbuf_free_bulk(freed.packets.data(), freed.count);
    freed.count = 0;
  }
  freed.packets[freed.count++] = m;
}

void PortIo::Queues::put(rte_mbuf* m, Outcome outcome, WorkerCounters& counters) {
  switch (outcome.verdict) {
    case Verdict::kTransmit:
      put_link(m, ports[outcome.target], DropReason::kTransmitFull, counters.transmitted, counters);
      return;
    case Verdict::kKernel:
      MARGAY_DCHECK(kernels[outcome.target].has_value());
      put_link(m, *kernels[outcome.target], DropReason::kKernelFull, counters.to_kernel, counters);
      return;
    case Verdict::kHandOver:
      put_worker(m, outcome.target, counters);
      return;
    case Verdict::kHeld:
      return;
    case Verdict::kConsumed:
    case Verdict::kDrop:
      put_freed(m);
      return;
  }
}

void PortIo::Queues::flush_all(WorkerCounters& counters) {
  for (LinkQueue& q : ports) flush(q, DropReason::kTransmitFull, counters.transmitted, counters);
  for (std::optional<LinkQueue>& q : kernels) {
    if (q) flush(*q, DropReason::kKernelFull, counters.to_kernel, counters);
  }
  for (size_t w = 0; w < workers.size(); ++w) {
    if (to_workers[w].count == 0) continue;
    enqueue(workers[w], to_workers[w], DropReason::kHandOverFull, &counters.handed_over, counters);
  }
  if (freed.count == 0) return;
  rte_pktmbuf_free_bulk(freed.packets.data(), freed.count);
  freed.count = 0;
}

void PortIo::carry_out(Burst& burst, WorkerCounters& counters) {
  for (uint32_t i = 0; i < burst.count; ++i) {
    queues_->put(take_back(burst.packets[i]), burst.outcomes[i], counters);
  }
  queues_->flush_all(counters);
}

void PortIo::send(const Outbox& outbox, const SiteTable&, WorkerCounters& counters) {
  for (const Frame& frame : outbox) {
    rte_mbuf* m = rte_pktmbuf_alloc(queues_->pool);
    if (m == nullptr) {
      counters.drop(DropReason::kNoBuffer);
      continue;
    }
    std::memcpy(rte_pktmbuf_mtod(m, void*), frame.bytes.data(), frame.length);
    m->data_len = frame.length;
    m->pkt_len = frame.length;
    m->port = frame.port;
    if (frame.outcome.verdict != Verdict::kHandOver) counters.own_frames.add();
    queues_->put(m, frame.outcome, counters);
  }
  queues_->flush_all(counters);
}

Nanoseconds PortIo::now() { return tsc_now(); }

void PortIo::sleep(bool shortly) {
  const timespec span{.tv_sec = 0, .tv_nsec = shortly ? 200'000 : 1'000'000};
  nanosleep(&span, nullptr);
}

}  // namespace margay::dp
