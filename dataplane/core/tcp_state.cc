// SPDX-License-Identifier: Apache-2.0
#include "dataplane/core/tcp_state.h"

#include <array>

namespace margay::dp {
namespace {

constexpr bool after(uint32_t a, uint32_t b) { return static_cast<int32_t>(a - b) > 0; }
constexpr bool within(uint32_t v, uint32_t low, uint32_t high) { return v - low <= high - low; }

// An old duplicate SYN carries the first number of the old connection: at most what that one sent lies between.
// Taken as 16 MiB: beyond it a duplicate costs an embryonic binding, below it a new client a retransmission.
constexpr uint32_t kOldConnection = 1u << 24;

// What a packet means once its numbers are checked. A packet that means nothing changes nothing.
enum class Event : uint8_t {
  kNothing,
  kSynAck,     // instance answers the SYN
  kProof,      // client acknowledges the instance's SYN
  kData,       // anything else of an open connection
  kFirstFin,   // one side has no more to send
  kBothFins,   // the other side too
  kBothAcked,  // both FINs are acknowledged
  kReset,      // RST that its receiver will believe
  kAlive,      // the side that seemed to reset goes on: the RST was not its own
};
constexpr size_t kEvents = 9;

using S = FlowState;
// [state - kSynSent][event]; kStay: no change. Columns: nothing, syn-ack, proof, data, first fin, both fins,
// both acked, reset, alive (which state_without_reset() answers).
constexpr S kStay = S::kFree, kSynRe = S::kSynReceived, kEst = S::kEstablished, kHalf = S::kHalfClosed;
constexpr S kClos = S::kClosing, kTimeW = S::kTimeWait, kReset = S::kResetGrace;
// clang-format off
constexpr std::array<std::array<S, kEvents>, 6> kTwoWay{{
    /*SynSent*/     {kStay, kSynRe, kStay, kStay, kStay, kStay, kStay,  kReset, kStay},
    /*SynReceived*/ {kStay, kSynRe, kEst,  kStay, kStay, kStay, kStay,  kReset, kStay},
    /*Established*/ {kStay, kStay,  kStay, kStay, kHalf, kClos, kTimeW, kReset, kStay},
    /*HalfClosed*/  {kStay, kStay,  kStay, kStay, kHalf, kClos, kTimeW, kReset, kStay},
    /*Closing*/     {kStay, kStay,  kStay, kStay, kStay, kClos, kTimeW, kReset, kStay},
    /*TimeWait*/    {kStay, kStay,  kStay, kStay, kStay, kStay, kTimeW, kStay,  kStay},
}};
// One-way: a client's FIN is a half-close; what follows refreshes the closing timer. Closing and TimeWait are never
// reached, and a half-closed binding changes by a reset only.
constexpr std::array<std::array<S, kEvents>, 4> kOneWay{{
    /*SynSent*/     {kStay, kStay, kStay, kEst,  kHalf, kStay, kStay, kReset, kStay},
    /*SynReceived*/ {kStay, kStay, kStay, kEst,  kHalf, kStay, kStay, kReset, kStay},
    /*Established*/ {kStay, kStay, kStay, kStay, kHalf, kStay, kStay, kReset, kStay},
    /*HalfClosed*/  {kStay, kStay, kStay, kStay, kStay, kStay, kStay, kReset, kStay},
}};
// clang-format on

// What an entry was before a RST that turned out not to be its peer's own.
S state_without_reset(const FlowEntry& e) {
  const unsigned fins = e.flags & (kClientFin | kInstanceFin);
  if (fins == (kClientFin | kInstanceFin)) return S::kClosing;
  return fins != 0 ? S::kHalfClosed : S::kEstablished;
}

struct Sides {  // the two directions of an entry, seen from the packet's sender
  uint32_t& next;
  uint32_t& acked;
  uint32_t& peer_next;
  uint32_t& peer_acked;
};

Sides sides_of(FlowEntry& e, Direction direction) {
  if (direction == Direction::kFromClient) return {e.client_next, e.client_acked, e.instance_next, e.instance_acked};
  return {e.instance_next, e.instance_acked, e.client_next, e.client_acked};
}

Event reset_event(FlowEntry& e, const Parsed& p, Direction direction, bool two_way) {
  const Sides s = sides_of(e, direction);
  bool believed;
  if (!two_way) {
    believed = within(p.sequence, s.next - 65535, s.next + 65535);
  } else if (e.state == S::kSynSent && direction == Direction::kFromInstance) {
    believed = (p.tcp_flags & kAck) != 0 && after(p.acknowledgement, s.acked) &&
               !after(p.acknowledgement, s.peer_next);  // RFC 9293 §3.10.7.3
  } else {
    believed = p.sequence == s.peer_acked || p.sequence == s.next;
  }
  if (!believed || e.state == S::kResetGrace) return Event::kNothing;
  e.flags = static_cast<uint8_t>(direction == Direction::kFromInstance ? e.flags | kResetByInstance
                                                                       : e.flags & ~kResetByInstance);
  return Event::kReset;
}

Event syn_event(FlowEntry& e, const Parsed& p, Direction direction) {
  if (direction == Direction::kFromClient) {
    if (e.state == S::kSynSent) begin_tcp(e, p);  // repeated, perhaps with another number
    return Event::kNothing;
  }
  // It acknowledges the SYN, and any of the data that came with it.
  const bool answers = (p.tcp_flags & kAck) != 0 && after(p.acknowledgement, e.instance_acked) &&
                       !after(p.acknowledgement, e.client_next);
  if (!answers || (e.state != S::kSynSent && e.state != S::kSynReceived)) return Event::kNothing;
  e.instance_next = p.sequence + 1;
  e.client_acked = p.sequence;
  e.instance_acked = p.acknowledgement;
  return Event::kSynAck;
}

// Who knows a connection's addresses only has to guess both numbers (RFC 5961 §5.2): the sequence near what the two
// ends have shown, the acknowledgement not beyond what the other end has sent. Larger than what is in flight anywhere.
constexpr uint32_t kReach = 1u << 24;
bool plausible(FlowEntry& e, const Parsed& p, Direction direction, bool two_way) {
  const Sides s = sides_of(e, direction);
  if (!two_way) return within(p.sequence, s.next - kReach, s.next + kReach);
  return within(p.sequence, s.peer_acked - kReach, s.next + kReach) &&
         within(p.acknowledgement, s.acked - kReach, s.peer_next);
}

// Takes sequence, acknowledgement and FIN of an ordinary segment into the entry.
void advance(FlowEntry& e, const Parsed& p, Direction direction, bool two_way) {
  const Sides s = sides_of(e, direction);
  const uint32_t end = p.sequence + p.sequence_length();
  if (after(end, s.next)) s.next = end;
  if ((p.tcp_flags & kFin) != 0 && end == s.next) {
    e.flags |= direction == Direction::kFromClient ? kClientFin : kInstanceFin;
  }
  if (two_way && (p.tcp_flags & kAck) != 0 && after(p.acknowledgement, s.acked) &&
      !after(p.acknowledgement, s.peer_next)) {
    s.acked = p.acknowledgement;
  }
}

Event segment_event(FlowEntry& e, const Parsed& p, Direction direction, bool two_way) {
  if ((two_way && e.state == S::kSynSent) || !plausible(e, p, direction, two_way)) return Event::kNothing;
  const bool proof = two_way && e.state == S::kSynReceived && direction == Direction::kFromClient &&
                     after(p.acknowledgement, e.client_acked) && !after(p.acknowledgement, e.instance_next);
  if (two_way && e.state == S::kSynReceived && !proof && direction == Direction::kFromClient) return Event::kNothing;
  advance(e, p, direction, two_way);
  if (proof) return Event::kProof;
  const unsigned fins = e.flags & (kClientFin | kInstanceFin);
  if (two_way && fins == (kClientFin | kInstanceFin)) {
    const bool acked = e.instance_acked == e.client_next && e.client_acked == e.instance_next;
    return acked ? Event::kBothAcked : Event::kBothFins;
  }
  return fins != 0 ? Event::kFirstFin : Event::kData;
}

S next_of(const FlowEntry& e, Event event, bool two_way) {
  if (event == Event::kAlive) return state_without_reset(e);
  if (e.state == S::kResetGrace) return S::kFree;
  const auto row = static_cast<size_t>(e.state) - static_cast<size_t>(S::kSynSent);
  const auto column = static_cast<size_t>(event);
  return two_way ? kTwoWay[row][column] : kOneWay[row][column];
}

}  // namespace

void begin_tcp(FlowEntry& e, const Parsed& syn) {
  e.state = S::kSynSent;
  e.client_next = syn.sequence + syn.sequence_length();  // data may come with it (RFC 7413)
  e.instance_acked = syn.sequence;
  e.client_acked = 0;
}

void adopt_tcp(FlowEntry& e, const Parsed& p) {
  e.state = S::kEstablished;
  e.client_next = p.sequence + p.sequence_length();
  e.instance_acked = p.sequence;
  e.instance_next = e.client_acked = p.acknowledgement;
}

bool starts_anew(const FlowEntry& e, const Parsed& syn) {
  if ((syn.tcp_flags & (kSyn | kAck)) != kSyn) return false;
  const bool old_duplicate = within(syn.sequence, e.client_next - kOldConnection, e.client_next);
  switch (e.state) {
    case S::kResetGrace:
      return true;
    case S::kClosing:
    case S::kTimeWait:
      return !old_duplicate;
    case S::kHalfClosed:
      return (e.flags & kTwoKeys) == 0 && !old_duplicate;
    case S::kFree:
    case S::kUdpUnreplied:
    case S::kUdpReplied:
    case S::kSynSent:
    case S::kSynReceived:
    case S::kEstablished:
      return false;
  }
  return false;
}

TcpChange track_tcp(FlowEntry& e, const Parsed& p, Direction direction, bool two_way) {
  Event event;
  if ((p.tcp_flags & kRst) != 0) {
    event = reset_event(e, p, direction, two_way);
  } else if ((p.tcp_flags & kSyn) != 0) {
    event = syn_event(e, p, direction);
  } else if (e.state == S::kResetGrace) {
    const bool by_instance = (e.flags & kResetByInstance) != 0;
    const bool by_sender = by_instance == (direction == Direction::kFromInstance);
    // Not what was under way before the RST, and never an unproven flow (D-45): that one has nothing to go on with.
    const bool taken = plausible(e, p, direction, two_way);
    const bool goes_on = taken && by_sender && (e.flags & kHoldsProvisional) == 0 &&
                         !after(sides_of(e, direction).peer_acked, p.sequence + p.sequence_length());
    event = goes_on ? Event::kAlive : Event::kNothing;
    if (taken) advance(e, p, direction, two_way);
  } else {
    event = segment_event(e, p, direction, two_way);
  }
  const S next = next_of(e, event, two_way);
  TcpChange change{next == S::kFree ? e.state : next};
  change.proven = event == Event::kProof;
  // A SYN-ACK proves no client: repeated ones must not keep an unproven flow (D-45).
  change.refreshed = e.state != S::kTimeWait && event != Event::kNothing && event != Event::kSynAck;
  return change;
}

}  // namespace margay::dp
