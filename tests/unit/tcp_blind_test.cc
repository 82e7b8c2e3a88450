// SPDX-License-Identifier: Apache-2.0
// Segments of somebody who knows a connection's addresses and ports but not its numbers (RFC 5961 §1.2). No window is
// larger than 2^30 (RFC 7323 §2.3), so the end that a segment is for takes nothing from one that lies farther ahead
// (RFC 9293 §3.10.7.4, first check), and neither may the binding: its slot stays held, SCI-92.
#include <gtest/gtest.h>

#include "dataplane/core/tcp_state.h"
#include "tests/support/seed.h"

namespace margay::dp {
namespace {

constexpr uint32_t kBeyondAnyWindow = 0x60000000;
constexpr uint32_t kClientStart = 1000, kInstanceStart = 5000;

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
  take(e, Direction::kFromClient, kSyn, kClientStart, 0);
  take(e, Direction::kFromInstance, kSyn | kAck, kInstanceStart, kClientStart + 1);
  take(e, Direction::kFromClient, kAck, kClientStart + 1, kInstanceStart + 1);
  return e;
}

TEST(TcpBlind, SCI92ResetBehindAnAckBeyondAnyWindowIsNotBelieved) {
  for (const Direction from : {Direction::kFromClient, Direction::kFromInstance}) {
    FlowEntry e = established();
    const uint32_t next = from == Direction::kFromClient ? kClientStart + 1 : kInstanceStart + 1;
    ASSERT_EQ(take(e, from, kAck, next + kBeyondAnyWindow, 0), FlowState::kEstablished);
    EXPECT_EQ(take(e, from, kRst, next + kBeyondAnyWindow / 2, 0), FlowState::kEstablished);
  }
}

TEST(TcpBlind, SCI92FinBeyondAnyWindowEndsNothing) {
  FlowEntry e = established();
  EXPECT_EQ(take(e, Direction::kFromClient, kFin | kAck, kClientStart + 1 + kBeyondAnyWindow, 0),
            FlowState::kEstablished);
  take(e, Direction::kFromInstance, kFin | kAck, kInstanceStart + 1, kClientStart + 1);
  EXPECT_EQ(e.state, FlowState::kHalfClosed);  // the client may go on for as long as it likes
}

// Eight acknowledgements and sixteen resets, spread over all numbers, for each of a thousand connections.
TEST(TcpBlind, SCI92SpreadAcksAndResetsEndNothing) {
  const uint64_t seed = test::test_seed();
  SCOPED_TRACE(test::seed_text(seed));
  test::Random random(seed);
  for (int n = 0; n < 1000; ++n) {
    FlowEntry e = established();
    const auto base = static_cast<uint32_t>(random.next()), acknowledged = static_cast<uint32_t>(random.next());
    for (uint32_t k = 0; k < 8; ++k) take(e, Direction::kFromClient, kAck, base + (k << 29), acknowledged);
    for (uint32_t k = 0; k < 16; ++k) take(e, Direction::kFromClient, kRst, base + (k << 28) + 7, 0);
    take(e, Direction::kFromClient, kAck, kClientStart + 1, kInstanceStart + 1);
    ASSERT_EQ(e.state, FlowState::kEstablished) << n;
  }
}

// A RST somewhere in the window is for its receiver to challenge (RFC 5961 §3.2), not for us to believe.
TEST(TcpBlind, ResetInTheWindowButNotAtItsEdgesIsNotBelieved) {
  FlowEntry e = established();
  take(e, Direction::kFromClient, kAck, kClientStart + 1, kInstanceStart + 1);
  e.client_next += 1000;
  EXPECT_EQ(take(e, Direction::kFromClient, kRst, kClientStart + 500, 0), FlowState::kEstablished);
  EXPECT_EQ(take(e, Direction::kFromClient, kRst, kClientStart + 1001, 0), FlowState::kResetGrace);
}

// D-45: SYN, RST behind it, any acknowledgement: the flow is as unproven as before, and ends with its grace.
TEST(TcpBlind, D45ResetAndAckProveNothing) {
  FlowEntry e{};
  e.flags = kHoldsSlot | kHoldsProvisional | kTwoKeys;
  take(e, Direction::kFromClient, kSyn, kClientStart, 0);
  EXPECT_EQ(take(e, Direction::kFromClient, kRst, kClientStart + 1, 0), FlowState::kResetGrace);
  EXPECT_EQ(take(e, Direction::kFromClient, kAck, kClientStart + 1, kInstanceStart), FlowState::kResetGrace);
}

// A FIN that is not the sender's last byte ends nothing.
TEST(TcpBlind, SCI92OldFinEndsNothing) {
  FlowEntry e = established();
  e.client_next += 1000;
  take(e, Direction::kFromClient, kFin | kAck, kClientStart + 1, kInstanceStart + 1);
  EXPECT_EQ(e.state, FlowState::kEstablished);
}

// RFC 7413: data comes with the SYN; the instance may take it or not.
TEST(TcpBlind, SCI125SynWithData) {
  for (const uint32_t taken : {1u, 101u}) {
    FlowEntry e{};
    e.flags = kHoldsSlot | kTwoKeys;
    Parsed syn;
    syn.layer = Layer::kTcp;
    syn.tcp_flags = kSyn;
    syn.sequence = kClientStart;
    syn.l4_payload = 100;
    begin_tcp(e, syn);
    EXPECT_EQ(take(e, Direction::kFromInstance, kSyn | kAck, kInstanceStart, kClientStart + taken),
              FlowState::kSynReceived);
    EXPECT_EQ(take(e, Direction::kFromClient, kAck, kClientStart + 101, kInstanceStart + 1), FlowState::kEstablished);
  }
}

// D-45: what the instance repeats keeps no unproven flow.
TEST(TcpBlind, D45RepeatedSynAckDoesNotRefresh) {
  FlowEntry e{};
  e.flags = kHoldsSlot | kTwoKeys;
  take(e, Direction::kFromClient, kSyn, kClientStart, 0);
  Parsed p;
  p.layer = Layer::kTcp;
  p.tcp_flags = kSyn | kAck;
  p.sequence = kInstanceStart;
  p.acknowledgement = kClientStart + 1;
  EXPECT_FALSE(track_tcp(e, p, Direction::kFromInstance, true).refreshed);
}

}  // namespace
}  // namespace margay::dp
