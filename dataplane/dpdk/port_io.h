// SPDX-License-Identifier: Apache-2.0
#pragma once

// The Io of dataplane/worker.h over DPDK: one object a worker, used by that worker alone. Every call but now() and
// sleep() moves a burst; none waits and none allocates. A packet that its target does not take is dropped by
// name: hand_over_full, transmit_full, link_down, kernel_full, no_buffer.
//
// It counts transmitted (own frames included), to_kernel, from_kernel, handed_over, taken_over, own_frames, and the
// drops that happen here; a frame that is dropped before the fast path sees it counts as a packet too.

#include <memory>

#include "common/counters.h"
#include "dataplane/core/packet.h"
#include "dataplane/core/site_table.h"
#include "dataplane/core/units.h"
#include "dataplane/dpdk/ports.h"

namespace margay::dp {

class PortIo {
 public:
  // REQUIRES: ports outlive it, and are started before the first call.
  PortIo(Ports& ports, WorkerIndex self);
  ~PortIo();

  PortIndex ports() const;
  void receive(PortIndex port, Burst& burst, WorkerCounters& counters);
  void receive_handed_over(Burst& burst, WorkerCounters& counters);
  void receive_from_kernel(PortIndex port, Burst& burst, WorkerCounters& counters);
  void carry_out(Burst& burst, WorkerCounters& counters);
  void send(const Outbox& outbox, const SiteTable& table, WorkerCounters& counters);
  Nanoseconds now();
  void sleep(bool shortly);

 private:
  struct Queues;
  std::unique_ptr<Queues> queues_;
};

}  // namespace margay::dp
