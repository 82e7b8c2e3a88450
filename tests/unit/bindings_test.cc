// SPDX-License-Identifier: Apache-2.0
// The life of bindings over time: timers per state, slots given back once, who gives way, drain and audit.
#include <functional>

#include <gtest/gtest.h>

#include "tests/support/small_site.h"

namespace margay::test {
namespace {

using dp::kSecond;
using dp::Verdict;

PacketBuilder from_instance(unsigned n, unsigned flags, uint32_t seq, uint32_t ack) {
  return tcp("10.1.0.11:8080", client(n)).flags(flags).seq(seq).ack(ack).ether(mac("02:00:00:01:00:01"), kSitePort1);
}

void handshake(SmallSite& site, unsigned n) {
  site.send(0, from_client(n, kSyn, 1000));
  site.send(1, from_instance(n, kSyn | kAck, 5000, 1001));
  site.send(0, from_client(n, kAck, 1001, 5001));
}
void close_both(SmallSite& site, unsigned n) {
  site.send(0, from_client(n, kFin | kAck, 1001, 5001));
  site.send(1, from_instance(n, kFin | kAck, 5001, 1002));
  site.send(0, from_client(n, kAck, 1002, 5002));
}

// Catalogue, Part C: embryonic 5 s, TCP idle 300 s.
TEST(Bindings, SCI87EmbryonicEndsAfterFiveSeconds) {
  SmallSite site(small_site(1, 10));
  site.send(0, from_client(1, kSyn, 1000));
  EXPECT_EQ(site.active(0), 1u);
  site.pass(5 * kSecond - 2 * dp::kTickLength);
  EXPECT_EQ(site.active(0), 1u);
  site.pass(3 * dp::kTickLength);
  EXPECT_EQ(site.active(0), 0u);
  EXPECT_EQ(site.ended(0, EndReason::kTimeout), 1u);
  EXPECT_EQ(site.worker().flows(), 0u);
}

TEST(Bindings, SCI91PacketsExtendAnEstablishedBinding) {
  SmallSite site(small_site(1, 10));
  handshake(site, 1);
  for (int i = 0; i < 3; ++i) {
    site.pass(299 * kSecond);
    EXPECT_EQ(site.active(0), 1u);
    site.send(0, from_client(1, kAck, 1001, 5001));
  }
  site.pass(300 * kSecond + 2 * dp::kTickLength);
  EXPECT_TRUE(site.empty());
  EXPECT_EQ(site.ended(0, EndReason::kTimeout), 1u);
}

// SCI-92: the slot is free once both FINs are acknowledged; the tuple is held for TIME_WAIT (60 s).
TEST(Bindings, SCI92SlotEndsBeforeTheTuple) {
  SmallSite site(small_site(1, 10));
  handshake(site, 1);
  close_both(site, 1);
  EXPECT_EQ(site.active(0), 0u);
  EXPECT_EQ(site.ended(0, EndReason::kFin), 1u);
  EXPECT_EQ(site.worker().flows(), 1u);
  site.pass(60 * kSecond - 2 * dp::kTickLength);
  EXPECT_EQ(site.worker().flows(), 1u);
  site.pass(3 * dp::kTickLength);
  EXPECT_TRUE(site.empty());
  EXPECT_EQ(site.ended(0, EndReason::kTimeout), 0u);  // not released a second time
}

// l4lb facts, row 43: neither at once nor after the full timeout.
TEST(Bindings, ResetFreesTheSlotAfterItsGrace) {
  SmallSite site(small_site(1, 10));
  handshake(site, 1);
  site.send(0, from_client(1, kRst, 1001));
  site.pass(2 * kSecond - 2 * dp::kTickLength);
  EXPECT_EQ(site.active(0), 1u);
  site.pass(3 * dp::kTickLength);
  EXPECT_TRUE(site.empty());
  EXPECT_EQ(site.ended(0, EndReason::kReset), 1u);
}

// l4lb facts, rows 33 to 35: at once, with another slot, and the old one is not counted twice.
TEST(Bindings, NewSynInTimeWaitBindsAnew) {
  SmallSite site(small_site(2, 10));
  handshake(site, 1);
  const auto first = site.trace.instance;
  close_both(site, 1);
  site.send(0, from_client(1, kSyn, 900000));
  EXPECT_EQ(site.outcome.verdict, Verdict::kTransmit);
  EXPECT_TRUE(site.trace.new_binding);
  EXPECT_NE(site.trace.instance, first);  // round-robin goes on
  EXPECT_EQ(site.active(0) + site.active(1), 1u);
  EXPECT_EQ(site.worker().flows(), 1u);
  site.pass(100 * kSecond);
  EXPECT_TRUE(site.empty());
}

// Part C: UDP 60 s, unreplied 5 s.
TEST(Bindings, SCI87UdpTimersByReply) {
  dp::SiteConfig config = small_site(1, 10, dp::Balance::kRoundRobin, dp::Mode::kNat, Protocol::kUdp);
  config.scis[0].affinity_timeout = 60 * kSecond;
  SmallSite site(config);
  const auto ask = udp(client(1), kSci).payload("q").ether(kSiteRouter, kSitePort0);
  const auto answer = udp("10.1.0.11:8080", client(1)).payload("a").ether(mac("02:00:00:01:00:01"), kSitePort1);
  site.send(0, ask);
  site.pass(5 * kSecond + 2 * dp::kTickLength);
  EXPECT_TRUE(site.empty());
  site.send(0, ask);
  site.send(1, answer);
  site.pass(59 * kSecond);
  EXPECT_EQ(site.active(0), 1u);
  site.pass(2 * kSecond);
  EXPECT_TRUE(site.empty());
}

// l4lb facts, row 50: an established flow is never silently evicted; what is embryonic gives way, oldest first.
TEST(Bindings, FullTableTransientGivesWayEstablishedNever) {
  SmallSite site(small_site(1, 1000), 4);
  handshake(site, 1);
  handshake(site, 2);
  site.send(0, from_client(3, kSyn, 1000));
  site.pass(kSecond);
  site.send(0, from_client(4, kSyn, 1000));
  site.send(0, from_client(5, kSyn, 1000));
  EXPECT_EQ(site.outcome.verdict, Verdict::kTransmit);
  EXPECT_EQ(site.ended(0, EndReason::kEvicted), 1u);
  EXPECT_EQ(site.active(0), 4u);
  // Flow 3 was the one: its binding is gone, flow 4's is not.
  site.send(0, from_client(4, kSyn, 1000));
  EXPECT_FALSE(site.trace.new_binding);
  handshake(site, 4);
  handshake(site, 5);
  site.send(0, from_client(6, kSyn, 1000));
  EXPECT_EQ(site.trace.refused, Refusal::kFlowTableFull);
  EXPECT_EQ(site.active(0), 4u);
  for (unsigned n : {1u, 2u, 4u, 5u}) {
    site.send(0, from_client(n, kAck, 1001, 5001));
    EXPECT_EQ(site.outcome.verdict, Verdict::kTransmit) << n;
    EXPECT_EQ(site.trace.state_after, dp::FlowState::kEstablished) << n;
  }
}

// What holds no slot gives way before a handshake does, although it would end later.
TEST(Bindings, FullTableTimeWaitGivesWayBeforeHandshakes) {
  SmallSite site(small_site(1, 1000), 4);
  for (unsigned n = 1; n <= 3; ++n) {
    handshake(site, n);
    close_both(site, n);
  }
  site.send(0, from_client(4, kSyn, 1000));
  for (unsigned n = 5; n <= 7; ++n) site.send(0, from_client(n, kSyn, 1000));
  EXPECT_EQ(site.active(0), 4u);
  EXPECT_EQ(site.ended(0, EndReason::kEvicted), 0u);  // no slot was lost by it
  EXPECT_EQ(site.worker().counters().evicted.get(), 3u);
}

// D-45: unproven flows hold at most half of the limit.
TEST(Bindings, D45UnprovenFlowsHoldAtMostTheirShare) {
  SmallSite site(small_site(1, 10));
  for (unsigned n = 0; n < 20; ++n) site.send(0, from_client(n, kSyn, 1000));
  EXPECT_EQ(site.active(0), 5u);
  EXPECT_EQ(site.trace.refused, Refusal::kProvisionalSpent);
  // A proven one makes room for another unproven one, up to the limit.
  site.send(1, from_instance(0, kSyn | kAck, 5000, 1001));
  site.send(0, from_client(0, kAck, 1001, 5001));
  site.send(0, from_client(50, kSyn, 1000));
  EXPECT_TRUE(site.trace.new_binding);
  EXPECT_EQ(site.active(0), 6u);
  EXPECT_EQ(site.shared.provisional.view(0).active, 5u);
  site.pass(400 * kSecond);
  EXPECT_TRUE(site.empty());
}

// SCI-90, D-7: the limit counts over everything; a lowered one takes no session away.
TEST(Bindings, SCI90LimitIsExactAndMayBeLowered) {
  SmallSite site(small_site(1, 6));
  for (unsigned n = 0; n < 6; ++n) handshake(site, n);
  site.send(0, from_client(6, kSyn, 1000));
  EXPECT_EQ(site.trace.refused, Refusal::kNoFreeSlot);
  site.shared.set_limit(*site.table, 0, 4);
  EXPECT_EQ(site.slots(0).over, 2u);
  EXPECT_EQ(site.slots(0).free(), 0u);
  for (unsigned n = 0; n < 2; ++n) close_both(site, n);
  EXPECT_EQ(site.slots(0).over, 0u);
  site.send(0, from_client(7, kSyn, 1000));
  EXPECT_EQ(site.trace.refused, Refusal::kNoFreeSlot);
  close_both(site, 2);
  site.send(0, from_client(8, kSyn, 1000));
  EXPECT_TRUE(site.trace.new_binding);
  site.pass(400 * kSecond);
  EXPECT_TRUE(site.empty());
}

dp::Instance& instance_of(SmallSite& site, dp::InstanceIndex i) { return site.table->instances.edit(i); }

// D-33: no new flow, sessions live until the deadline; then both ends are reset and the slots come back.
TEST(Bindings, D33DrainEndsAtItsDeadline) {
  SmallSite site(small_site(1, 10));
  handshake(site, 1);
  site.own_frames();
  instance_of(site, 0).admin = dp::Admin::kDraining;
  instance_of(site, 0).drain_deadline = dp::to_tick(site.now + 30 * kSecond);
  site.send(0, from_client(2, kSyn, 1000));
  EXPECT_EQ(site.trace.refused, Refusal::kNoHealthyInstance);
  site.send(0, from_client(1, kAck, 1001, 5001));
  EXPECT_EQ(site.outcome.verdict, Verdict::kTransmit);
  site.pass(29 * kSecond);
  EXPECT_EQ(site.active(0), 1u);
  site.own_frames();
  site.pass(2 * kSecond);
  EXPECT_TRUE(site.empty());
  EXPECT_EQ(site.ended(0, EndReason::kDrained), 1u);
  const auto frames = site.own_frames();
  ASSERT_EQ(frames.size(), 2u);  // one to each end, at the number that end expects
  const Bytes to_instance(frames[0].bytes.begin(), frames[0].bytes.begin() + frames[0].length);
  EXPECT_EQ(to_instance, tcp(client(1), "10.1.0.11:8080")
                             .flags(kRst)
                             .seq(1001)
                             .window(0)
                             .dont_fragment()
                             .ether(kSitePort1, mac("02:00:00:01:00:01"))
                             .build());
  const Bytes to_client(frames[1].bytes.begin(), frames[1].bytes.begin() + frames[1].length);
  EXPECT_EQ(
      to_client,
      tcp(kSci, client(1)).flags(kRst).seq(5001).window(0).dont_fragment().ether(kSitePort0, kSiteRouter).build());
}

// D-22: UDP is bound anew at once, TCP in mid-flow is reset.
TEST(Bindings, SCI85LostInstanceRebindsUdp) {
  SmallSite site(small_site(2, 10, dp::Balance::kRoundRobin, dp::Mode::kNat, Protocol::kUdp));
  const auto ask = udp(client(1), kSci).payload("q").ether(kSiteRouter, kSitePort0);
  site.send(0, ask);
  const auto first = site.trace.instance;
  instance_of(site, first).admin = dp::Admin::kDisabled;
  site.send(0, ask);
  EXPECT_EQ(site.outcome.verdict, Verdict::kTransmit);
  EXPECT_TRUE(site.trace.new_binding);
  EXPECT_NE(site.trace.instance, first);
  EXPECT_EQ(site.active(first), 0u);
  EXPECT_EQ(site.ended(first, EndReason::kDisabled), 1u);
}

// on_unhealthy: keep. Sessions go on until their timers end them, new flows never come.
TEST(Bindings, D22KeepLeavesSessionsAlone) {
  dp::SiteConfig config = small_site(1, 10);
  config.scis[0].on_unhealthy = OnUnhealthy::kKeep;
  SmallSite site(config);
  handshake(site, 1);
  instance_of(site, 0).health = dp::HealthState::kUnhealthy;
  site.send(0, from_client(1, kAck | kPsh, 1001, 5001));
  EXPECT_EQ(site.outcome.verdict, Verdict::kTransmit);
  site.pass(10 * kSecond);
  EXPECT_EQ(site.active(0), 1u);
  site.send(0, from_client(2, kSyn, 1000));
  EXPECT_EQ(site.trace.refused, Refusal::kNoHealthyInstance);
  instance_of(site, 0).admin = dp::Admin::kDisabled;
  site.pass(10 * kSecond);
  EXPECT_EQ(site.ended(0, EndReason::kDisabled), 1u);
}

// on_unhealthy: rebind. The binding is given up; a TCP packet in mid-flow belongs to a flow that nobody knows then.
TEST(Bindings, D22RebindGivesTheBindingUp) {
  dp::SiteConfig config = small_site(2, 10);
  config.scis[0].on_unhealthy = OnUnhealthy::kRebind;
  config.scis[0].unknown_flow = UnknownFlow::kAdopt;
  SmallSite site(config);
  handshake(site, 1);
  const auto first = site.trace.instance;
  instance_of(site, first).health = dp::HealthState::kUnhealthy;
  site.send(0, from_client(1, kAck | kPsh, 1001, 5001));
  EXPECT_TRUE(site.trace.new_binding);
  EXPECT_NE(site.trace.instance, first);
  EXPECT_EQ(site.ended(first, EndReason::kUnhealthy), 1u);
  EXPECT_EQ(site.active(first), 0u);
}

// And one of which no packet comes is ended without a reset to anybody.
TEST(Bindings, D22RebindEndsSilentSessionsSilently) {
  dp::SiteConfig config = small_site(1, 10);
  config.scis[0].on_unhealthy = OnUnhealthy::kRebind;
  SmallSite site(config);
  handshake(site, 1);
  site.own_frames();
  instance_of(site, 0).health = dp::HealthState::kUnhealthy;
  site.pass(10 * kSecond);
  EXPECT_EQ(site.ended(0, EndReason::kUnhealthy), 1u);
  EXPECT_TRUE(site.own_frames().empty());
}

TEST(Bindings, SCI58D22LostInstanceResetsTcp) {
  SmallSite site(small_site(1, 10));
  handshake(site, 1);
  site.own_frames();
  instance_of(site, 0).health = dp::HealthState::kUnhealthy;
  site.send(0, from_client(1, kAck | kPsh, 1001, 5001));
  EXPECT_EQ(site.outcome.reason, DropReason::kInstanceGone);
  EXPECT_EQ(site.own_frames().size(), 2u);
  EXPECT_TRUE(site.empty());
  EXPECT_EQ(site.ended(0, EndReason::kUnhealthy), 1u);
}

// Health that is lost in a drain, before its deadline, is what ended the session.
TEST(Bindings, D22D33EachEndHasItsOwnReason) {
  SmallSite site(small_site(1, 10));
  const auto ended_by = [&](const std::function<void(dp::Instance&)>& change) {
    const dp::Instance before = instance_of(site, 0);
    handshake(site, 1);
    change(instance_of(site, 0));
    site.pass(100 * dp::kMillisecond);
    instance_of(site, 0) = before;
    EXPECT_TRUE(site.empty());
  };
  ended_by([](dp::Instance& i) { i.admin = dp::Admin::kDisabled; });
  EXPECT_EQ(site.ended(0, EndReason::kDisabled), 1u);
  ended_by([&](dp::Instance& i) { i.admin = dp::Admin::kDraining, i.drain_deadline = dp::to_tick(site.now); });
  EXPECT_EQ(site.ended(0, EndReason::kDrained), 1u);
  ended_by([&](dp::Instance& i) {
    i.admin = dp::Admin::kDraining, i.drain_deadline = dp::to_tick(site.now + 30 * kSecond);
    i.health = dp::HealthState::kUnhealthy;
  });
  EXPECT_EQ(site.ended(0, EndReason::kUnhealthy), 1u);
  EXPECT_EQ(site.ended(0, EndReason::kDrained), 1u);
}

// The instances are compared a share a tick, while sessions begin and end.
TEST(Bindings, AuditOfManyInstancesIsSpreadOverTicks) {
  constexpr unsigned kInstances = 600;
  SmallSite site(small_site(kInstances, 1000), 256);
  const auto& counters = site.worker().counters();
  site.pass(2 * dp::kTickLength);  // 256 entries and instances in the first tick
  EXPECT_EQ(counters.audit_passes.get(), 0u);
  site.pass(dp::kTickLength);
  EXPECT_EQ(counters.audit_passes.get(), 1u);
  for (unsigned n = 0; n < 150; ++n) {
    handshake(site, n);
    if (n >= 10) {  // round-robin: instance n has it, in any third of the comparison
      const unsigned old = n - 10;
      site.send(0, from_client(old, kFin | kAck, 1001, 5001));
      site.send(0, from_client(old, kRst, 1002));
    }
    if (n % 3 == 0) site.pass(dp::kTickLength);
  }
  site.pass(kSecond);
  EXPECT_GT(counters.audit_passes.get(), 20u);
  EXPECT_EQ(counters.audit_differences.get(), 0u);
  site.shared.counters(0, kInstances - 1).active.subtract();  // in the last share
  site.pass(100 * dp::kMillisecond);
  EXPECT_GT(counters.audit_differences.get(), 0u);
}

// The audit counts bits while bindings come and go around its cursor; a bit that was lost is found.
TEST(Bindings, AuditFindsALostSlotAndNothingElse) {
  SmallSite site(small_site(1, 5000), 2048);
  for (unsigned n = 0; n < 1500; ++n) {
    handshake(site, n);
    if (n % 3 == 0) close_both(site, n);
    if (n % 7 == 0) site.pass(dp::kTickLength);
  }
  site.pass(kSecond);
  const auto& counters = site.worker().counters();
  EXPECT_GT(counters.audit_passes.get(), 5u);
  EXPECT_EQ(counters.audit_differences.get(), 0u);
  site.shared.counters(0, 0).active.subtract();  // a slot whose binding is not counted any more
  site.pass(kSecond);
  EXPECT_GT(counters.audit_differences.get(), 0u);
}

}  // namespace
}  // namespace margay::test
