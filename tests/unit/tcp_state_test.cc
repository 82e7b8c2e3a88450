// SPDX-License-Identifier: Apache-2.0
// TCP as it passes by: every expectation follows from RFC 9293's state diagram (§3.3.2), its rules for RST
// (§3.10.7) and the requirement catalogue (SCI-92, SCI-125, D-45).
#include "dataplane/core/tcp_state.h"

#include <gtest/gtest.h>

#include <vector>

namespace margay::dp {
namespace {

constexpr auto C = Direction::kFromClient;
constexpr auto I = Direction::kFromInstance;

struct Segment {
  Direction from;
  unsigned flags;
  uint32_t seq;
  uint32_t ack;
  uint16_t bytes;
  FlowState expected;  // after it
};

Parsed parsed(const Segment& s) {
  Parsed p;
  p.layer = Layer::kTcp;
  p.tcp_flags = static_cast<uint8_t>(s.flags);
  p.sequence = s.seq;
  p.acknowledgement = s.ack;
  p.l4_payload = s.bytes;
  return p;
}

FlowEntry begun(uint32_t isn, bool two_way) {
  FlowEntry e{};
  e.flags = two_way ? kHoldsSlot | kTwoKeys : kHoldsSlot;
  begin_tcp(e, parsed({C, kSyn, isn, 0, 0, FlowState::kSynSent}));
  return e;
}

void play(FlowEntry& e, const std::vector<Segment>& segments, bool two_way) {
  for (size_t k = 0; k < segments.size(); ++k) {
    const TcpChange change = track_tcp(e, parsed(segments[k]), segments[k].from, two_way);
    e.state = change.next;
    ASSERT_EQ(name_of(e.state), name_of(segments[k].expected)) << "after segment " << k;
  }
}

using S = FlowState;

TEST(TcpState, SCI92WholeConnectionTwoWay) {
  FlowEntry e = begun(1000, true);
  play(e,
       {{I, kSyn | kAck, 5000, 1001, 0, S::kSynReceived},
        {C, kAck, 1001, 5001, 0, S::kEstablished},
        {C, kAck, 1001, 5001, 100, S::kEstablished},
        {I, kAck, 5001, 1101, 500, S::kEstablished},
        {C, kAck | kFin, 1101, 5501, 0, S::kHalfClosed},
        {I, kAck, 5501, 1102, 0, S::kHalfClosed},
        {I, kAck, 5501, 1102, 300, S::kHalfClosed},    // the other side may still send
        {I, kAck | kFin, 5801, 1102, 0, S::kClosing},  // not acknowledged yet
        {C, kAck, 1102, 5801, 0, S::kClosing},         // one short of the FIN
        {C, kAck, 1102, 5802, 0, S::kTimeWait},
        {I, kAck | kFin, 5801, 1102, 0, S::kTimeWait}},  // repeated FIN
       true);
}

TEST(TcpState, SimultaneousCloseNeedsBothAcknowledgements) {
  FlowEntry e = begun(0xfffffff0, true);  // numbers wrap
  play(e,
       {{I, kSyn | kAck, 0xffffffff, 0xfffffff1, 0, S::kSynReceived},
        {C, kAck, 0xfffffff1, 0, 0, S::kEstablished},
        {C, kAck | kFin, 0xfffffff1, 0, 20, S::kHalfClosed},
        {I, kAck | kFin, 0, 0xfffffff1, 0, S::kClosing},
        {I, kAck, 1, 0x6, 0, S::kClosing},  // client's FIN acknowledged (…f1 + 20 + 1 = 6)
        {C, kAck, 0x6, 1, 0, S::kTimeWait}},
       true);
}

// D-45: only an acknowledgement of the instance's own number proves a client.
TEST(TcpState, D45BlindAcknowledgementProvesNothing) {
  FlowEntry e = begun(1000, true);
  const TcpChange early = track_tcp(e, parsed({C, kAck, 1001, 77, 0, {}}), C, true);
  EXPECT_FALSE(early.proven);
  EXPECT_EQ(early.next, S::kSynSent);
  e.state = track_tcp(e, parsed({I, kSyn | kAck, 5000, 1001, 0, {}}), I, true).next;
  for (const uint32_t wrong : {0u, 4999u, 5000u, 5002u, 5001u + (1u << 31)}) {
    const TcpChange blind = track_tcp(e, parsed({C, kAck, 1001, wrong, 0, {}}), C, true);
    EXPECT_FALSE(blind.proven) << wrong;
    EXPECT_EQ(blind.next, S::kSynReceived) << wrong;
    EXPECT_FALSE(blind.refreshed) << wrong;
  }
  const TcpChange right = track_tcp(e, parsed({C, kAck, 1001, 5001, 0, {}}), C, true);
  EXPECT_TRUE(right.proven);
  EXPECT_EQ(right.next, S::kEstablished);
}

TEST(TcpState, SynAckThatAnswersAnotherSynIsIgnored) {
  FlowEntry e = begun(1000, true);
  play(e, {{I, kSyn | kAck, 5000, 1000, 0, S::kSynSent}, {I, kSyn | kAck, 5000, 1002, 0, S::kSynSent}}, true);
}

struct ResetCase {
  const char* name;
  Direction from;
  uint32_t seq;
  bool believed;
};

// l4lb facts, row 43: a spoofed RST must not free a slot. In window: from the peer's highest acknowledgement to the
// sender's highest byte. Here: client sent 1001..1100, acknowledged to 1051; instance sent 5001..5200, acked to 5101.
TEST(TcpState, ResetCountsOnlyInWindow) {
  const std::vector<ResetCase> cases{
      {"client, at its next byte", C, 1101, true}, {"client, at what was acknowledged", C, 1051, true},
      {"client, one before", C, 1050, false},      {"client, one beyond", C, 1102, false},
      {"client, blind", C, 0x80000000, false},     {"instance, at its next byte", I, 5201, true},
      {"instance, acknowledged", I, 5101, true},   {"instance, one before", I, 5100, false},
      {"instance, one beyond", I, 5202, false},
  };
  for (const ResetCase& c : cases) {
    FlowEntry e = begun(1000, true);
    play(e,
         {{I, kSyn | kAck, 5000, 1001, 0, S::kSynReceived},
          {C, kAck, 1001, 5001, 100, S::kEstablished},
          {I, kAck, 5001, 1051, 200, S::kEstablished},
          {C, kAck, 1101, 5101, 0, S::kEstablished}},
         true);
    const TcpChange change = track_tcp(e, parsed({c.from, kRst, c.seq, 0, 0, {}}), c.from, true);
    EXPECT_EQ(change.next, c.believed ? S::kResetGrace : S::kEstablished) << c.name;
  }
}

TEST(TcpState, ConnectionRefusedByTheInstance) {
  FlowEntry e = begun(1000, true);
  play(e, {{I, kRst | kAck, 0, 1000, 0, S::kSynSent}, {I, kRst | kAck, 0, 1001, 0, S::kResetGrace}}, true);
}

TEST(TcpState, TheSideThatSeemedToResetGoesOn) {
  FlowEntry e = begun(1000, true);
  play(e,
       {{I, kSyn | kAck, 5000, 1001, 0, S::kSynReceived},
        {C, kAck, 1001, 5001, 0, S::kEstablished},
        {C, kRst, 1001, 0, 0, S::kResetGrace},
        {I, kAck, 5001, 1001, 10, S::kResetGrace},   // the other side proves nothing
        {C, kAck, 1001, 5011, 5, S::kEstablished}},  // the client is alive
       true);
}

TEST(TcpState, OneWayFinIsAHalfClose) {
  FlowEntry e = begun(1000, false);
  play(e,
       {{C, kAck, 1001, 5001, 0, S::kEstablished},
        {C, kAck, 1001, 5001, 100, S::kEstablished},
        {C, kAck | kFin, 1101, 5501, 0, S::kHalfClosed}},
       false);
  const TcpChange ack = track_tcp(e, parsed({C, kAck, 1102, 5900, 0, {}}), C, false);
  EXPECT_EQ(ack.next, S::kHalfClosed);
  EXPECT_TRUE(ack.refreshed);  // later acknowledgements refresh the closing timer
}

TEST(TcpState, OneWayResetWithin64KiB) {
  for (const auto& [seq, believed] : {std::pair{1001u, true}, {1001u + 65535, true}, {1001u + 65536, false}}) {
    FlowEntry e = begun(1000, false);
    EXPECT_EQ(track_tcp(e, parsed({C, kRst, seq, 0, 0, {}}), C, false).next, believed ? S::kResetGrace : S::kSynSent);
  }
}

TEST(TcpState, RepeatedSynDoesNotRefreshTheEmbryonicTimer) {
  FlowEntry e = begun(1000, true);
  EXPECT_FALSE(track_tcp(e, parsed({C, kSyn, 1000, 0, 0, {}}), C, true).refreshed);
}

TEST(TcpState, AdoptedInMidFlowClosesLikeAnyOther) {
  FlowEntry e{};
  e.flags = kHoldsSlot | kTwoKeys;
  adopt_tcp(e, parsed({C, kAck, 1000, 5000, 50, {}}));
  EXPECT_EQ(e.state, S::kEstablished);
  play(e,
       {{I, kAck | kFin, 5000, 1050, 10, S::kHalfClosed},
        {C, kAck | kFin, 1050, 5011, 0, S::kClosing},
        {I, kAck, 5011, 1051, 0, S::kTimeWait}},
       true);
}

// RFC 9293 §3.6.1; l4lb facts, rows 33 to 35.
TEST(TcpState, NewSynOnAnEndedConnectionStartsAnew) {
  struct Case {
    S state;
    bool two_way;
    uint32_t seq;
    bool anew;
  };
  for (const Case& c : std::vector<Case>{{S::kTimeWait, true, 2001, true},
                                         {S::kTimeWait, true, 2000, false},  // at the old connection's end
                                         {S::kTimeWait, true, 1000, false},  // old duplicate
                                         {S::kTimeWait, true, 2000 - (1u << 24) - 1, true},
                                         {S::kClosing, true, 2001, true},
                                         {S::kResetGrace, true, 1000, true},
                                         {S::kHalfClosed, true, 2001, false},
                                         {S::kHalfClosed, false, 2001, true},
                                         {S::kEstablished, true, 2001, false},
                                         {S::kSynSent, true, 2001, false}}) {
    FlowEntry e{};
    e.flags = c.two_way ? kTwoKeys : 0;
    e.state = c.state;
    e.client_next = 2000;
    EXPECT_EQ(starts_anew(e, parsed({C, kSyn, c.seq, 0, 0, {}})), c.anew) << name_of(c.state) << " " << c.seq;
    EXPECT_FALSE(starts_anew(e, parsed({C, kSyn | kAck, c.seq, 1, 0, {}}))) << name_of(c.state);
    EXPECT_FALSE(starts_anew(e, parsed({C, kAck, c.seq, 1, 0, {}}))) << name_of(c.state);
  }
}

void expect_sound(const FlowEntry& e, S before, S after, bool two_way) {
  EXPECT_TRUE(is_tcp(after));
  const unsigned both = kClientFin | kInstanceFin;
  if (after == S::kTimeWait && before != S::kTimeWait) {
    EXPECT_EQ(e.flags & both, both);
    EXPECT_EQ(e.client_acked, e.instance_next);
    EXPECT_EQ(e.instance_acked, e.client_next);
  }
  if (!two_way) {
    EXPECT_NE(after, S::kTimeWait);
    EXPECT_NE(after, S::kClosing);
  }
}

void take_every_packet(S state, bool two_way, Direction from) {
  for (unsigned flags = 0; flags < 64; ++flags) {
    for (const uint32_t seq : {0u, 999u, 1000u, 1001u, 1u << 31}) {
      FlowEntry e{};
      e.state = state;
      e.flags = two_way ? kHoldsSlot | kTwoKeys : kHoldsSlot;
      e.client_next = e.instance_next = 1000;
      e.client_acked = e.instance_acked = 900;
      const TcpChange change = track_tcp(e, parsed({from, flags, seq, seq, 0, {}}), from, two_way);
      expect_sound(e, state, change.next, two_way);
    }
  }
}

// Whatever arrives, in whatever state: the next state is one that the timers know, and a slot is given up only by
// way of TIME_WAIT, which both FINs and both acknowledgements reach, or by a timer.
TEST(TcpState, EveryStateTakesEveryPacket) {
  for (const S state :
       {S::kSynSent, S::kSynReceived, S::kEstablished, S::kHalfClosed, S::kClosing, S::kTimeWait, S::kResetGrace}) {
    for (const Direction from : {C, I}) take_every_packet(state, true, from);
    if (state == S::kClosing || state == S::kTimeWait || state == S::kSynReceived) continue;
    take_every_packet(state, false, C);
  }
}

}  // namespace
}  // namespace margay::dp
