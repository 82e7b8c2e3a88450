// SPDX-License-Identifier: Apache-2.0
#pragma once

// One binding of a flow to a service instance (SCI-83): everything that a hit reads or writes, in one
// cache line. The layout is fixed: a later process adopts entries from a file (offsets only), so any change
// here is a new layout version.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "common/net.h"
#include "dataplane/core/units.h"

namespace margay::dp {

// State of a binding. TCP states are those of dataplane/core/tcp_state.h.
enum class FlowState : uint8_t {
  kFree = 0,      // entry is not in use
  kUdpUnreplied,  // nothing seen from the instance yet (one-way modes: never leaves by a reply)
  kUdpReplied,
  kSynSent,      // embryonic: client's SYN seen
  kSynReceived,  // embryonic: instance's SYN-ACK seen too
  kEstablished,
  kHalfClosed,  // one FIN seen; one-way modes: the client's
  kClosing,     // both FINs seen, not both acknowledged: two-way modes only
  kTimeWait,    // slot released, tuple held
  kResetGrace,  // in-window RST seen; slot still held for a moment
};
inline constexpr size_t kFlowStates = 10;

// Bits of FlowEntry::flags.
enum FlowFlag : uint8_t {
  kHoldsSlot = 1 << 0,         // charged in the instance's slot ledger; cleared exactly once
  kHoldsProvisional = 1 << 1,  // charged in the instance's provisional ledger too (D-45)
  kClientFin = 1 << 2,
  kInstanceFin = 1 << 3,
  kAdopted = 1 << 4,          // began in mid-flow (unknown_flow: adopt) or in another process
  kTwoKeys = 1 << 5,          // the reply direction is in the table too
  kResetByInstance = 1 << 6,  // kResetGrace: who sent the RST
};

struct alignas(kCacheLine) FlowEntry {
  IpAddress client;      // key
  uint16_t client_port;  // key, wire order
  Protocol protocol;     // key
  FlowState state;
  FrontendIndex frontend;  // key of the direction from the client
  InstanceIndex instance;  // its endpoint is the key of the reply direction
  uint16_t instance_generation;
  uint16_t snat_port;      // full-nat: key of the reply direction, wire order; else 0
  uint32_t client_next;    // TCP: sequence number behind the highest byte that the client sent
  uint32_t instance_next;  // the same of the instance; in kSynReceived its initial number + 1; in kSynSent, where there
                           // is none yet, when the SYN came (microseconds modulo 2^32)
  uint32_t client_acked;   // highest acknowledgement that the client sent
  uint32_t instance_acked;  // highest acknowledgement that the instance sent
  Tick last_seen;
  EntryIndex timer_next;
  uint32_t timer_previous;  // an entry, or a slot of the wheel with the top bit set
  uint8_t flags;            // FlowFlag
  uint8_t snat_address;     // full-nat: which of the SCI's SNAT addresses
  uint16_t adoption;        // written last: 0 while the entry is not whole; see make_whole()
};
static_assert(sizeof(FlowEntry) == kCacheLine);
static_assert(offsetof(FlowEntry, frontend) == 20 && offsetof(FlowEntry, client_next) == 32 &&
              offsetof(FlowEntry, last_seen) == 48 && offsetof(FlowEntry, flags) == 60);
static_assert(std::is_trivially_copyable_v<FlowEntry>);

constexpr bool is_tcp(FlowState s) { return s >= FlowState::kSynSent; }
// Gives way to a newcomer when the table is full: never an established flow (architecture, "Flow table").
constexpr bool is_transient(FlowState s) {
  switch (s) {
    case FlowState::kUdpUnreplied:
    case FlowState::kSynSent:
    case FlowState::kSynReceived:
    case FlowState::kClosing:
    case FlowState::kTimeWait:
    case FlowState::kResetGrace:
      return true;
    case FlowState::kFree:
    case FlowState::kUdpReplied:
    case FlowState::kEstablished:
    case FlowState::kHalfClosed:
      return false;
  }
  return false;
}
std::string_view name_of(FlowState s);  // "syn-sent", for show and traces

// When a process is killed, its stores up to some instruction are in the file and the later ones are not, in program
// order: the kernel stops a thread between two instructions, on any processor. So it is the compiler alone that must
// not move other stores to the entry across these.
inline void make_whole(FlowEntry& e) {
  std::atomic_signal_fence(std::memory_order_release);
  e.adoption = 1;
}
inline void take_apart(FlowEntry& e) {
  e.adoption = 0;
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

}  // namespace margay::dp
