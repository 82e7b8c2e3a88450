// SPDX-License-Identifier: Apache-2.0
// Segments of somebody who knows a connection's addresses and ports but not its numbers (RFC 5961 §1.2). No window is
// larger than 2^30 (RFC 7323 §2.3), so the end that a segment is for takes nothing from one that lies farther ahead
// (RFC 9293 §3.10.7.4, first check), and neither may the binding: its slot stays held, SCI-92.
#include <gtest/gtest.h>

#include "dataplane/core/tcp_state.h"

namespace margay::dp {
namespace {

constexpr uint32_t kBeyondAnyWindow = 0x60000000;
constexpr uint32_t kClient = 1000, kInstance = 5000;

FlowState take(FlowEntry& e, Direction from, unsigned flags, uint32_t sequence, uint32_t acknowledgement) {
  Parsed p;
  p.layer = Layer::kTcp;
  p.tcp_flags = static_cast<uint8_t>(flags);
  p.sequence = sequence;
  p.acknowledgement = acknowledgement;
  if ((flags & kSyn) != 0 && from == Direction::kFromClient) {
    begin_tcp(e, p);
  } else {
    e.state = track_tcp(e, p, from, true).next;
  }
  return e.state;
}

FlowEntry established() {
  FlowEntry e{};
  e.flags = kHoldsSlot | kTwoKeys;
  take(e, Direction::kFromClient, kSyn, kClient, 0);
  take(e, Direction::kFromInstance, kSyn | kAck, kInstance, kClient + 1);
  take(e, Direction::kFromClient, kAck, kClient + 1, kInstance + 1);
  return e;
}

TEST(TcpBlind, SCI92ResetBehindAnAckBeyondAnyWindowIsNotBelieved) {
  for (const Direction from : {Direction::kFromClient, Direction::kFromInstance}) {
    FlowEntry e = established();
    const uint32_t next = from == Direction::kFromClient ? kClient + 1 : kInstance + 1;
    ASSERT_EQ(take(e, from, kAck, next + kBeyondAnyWindow, 0), FlowState::kEstablished);
    EXPECT_EQ(take(e, from, kRst, next + kBeyondAnyWindow / 2, 0), FlowState::kEstablished);
  }
}

TEST(TcpBlind, SCI92FinBeyondAnyWindowEndsNothing) {
  FlowEntry e = established();
  EXPECT_EQ(take(e, Direction::kFromClient, kFin | kAck, kClient + 1 + kBeyondAnyWindow, 0), FlowState::kEstablished);
  take(e, Direction::kFromInstance, kFin | kAck, kInstance + 1, kClient + 1);
  EXPECT_EQ(e.state, FlowState::kHalfClosed);  // the client may go on for as long as it likes
}

}  // namespace
}  // namespace margay::dp
