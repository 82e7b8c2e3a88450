// SPDX-License-Identifier: Apache-2.0
#pragma once

// What becomes of a packet. The fast path gives every packet of a burst exactly one Outcome; the shell
// (dataplane/dpdk or replay) carries it out. Every drop has a name here and a counter per worker.

#include <cstdint>

#include "common/reasons.h"
#include "dataplane/core/units.h"

namespace margay::dp {

enum class Verdict : uint8_t {
  kTransmit,  // out of port `target`
  kKernel,    // to the kernel interface of port `target`
  kHandOver,  // to worker `target`, which owns the flow
  kHeld,      // the fast path keeps it (next hop unresolved); it comes back through release()
  kConsumed,  // ARP, ND and the like: read, answered through the outbox if at all
  kDrop,      // for `reason`
};

struct [[nodiscard]] Outcome {
  Verdict verdict = Verdict::kDrop;
  uint8_t target = 0;  // a PortIndex or a WorkerIndex
  DropReason reason = DropReason::kNone;

  static Outcome transmit(PortIndex port) { return {Verdict::kTransmit, port, DropReason::kNone}; }
  static Outcome kernel(PortIndex port) { return {Verdict::kKernel, port, DropReason::kNone}; }
  static Outcome hand_over(WorkerIndex to) { return {Verdict::kHandOver, to, DropReason::kNone}; }
  static Outcome held() { return {Verdict::kHeld, 0, DropReason::kNone}; }
  static Outcome consumed() { return {Verdict::kConsumed, 0, DropReason::kNone}; }
  static Outcome drop(DropReason why) { return {Verdict::kDrop, 0, why}; }
};

}  // namespace margay::dp
