// SPDX-License-Identifier: Apache-2.0
// Refusals and drops that need many packets: beyond a rate, or with a table or the outbox full. Each has its counter,
// and a packet that was answered is no drop. Causes that one packet shows stand in tests/packet/connection_rows.cc.
#include <gtest/gtest.h>

#include "tests/support/small_site.h"

namespace margay::test {
namespace {

using dp::Verdict;

constexpr unsigned kRate = 1000;  // resets and ICMP errors a second, and at once

PacketBuilder from_client(const PacketBuilder& p) { return p.ether(kSiteRouter, kSitePort0); }
PacketBuilder syn_of(unsigned n) { return from_client(n, kSyn, 1000); }

uint64_t drops(SmallSite& site, DropReason why) {
  return site.worker().counters().drops[static_cast<size_t>(why)].get();
}
uint64_t drops_in_all(SmallSite& site) {
  uint64_t sum = 0;
  for (const Counter& c : site.worker().counters().drops) sum += c.get();
  return sum;
}
uint64_t refused(SmallSite& site, Refusal why) {
  return site.worker().counters().refused[static_cast<size_t>(why)].get();
}
uint64_t refused_in_all(SmallSite& site) {
  uint64_t sum = 0;
  for (const Counter& c : site.worker().counters().refused) sum += c.get();
  return sum;
}
uint64_t passed_over(SmallSite& site, dp::InstanceIndex i, Refusal why) {
  return site.shared.counters(0, i).passed_over[static_cast<size_t>(why)].get();
}

TEST(Refusals, ResetsOfUnknownFlowsBeyondTheRateAreDrops) {
  SmallSite site(small_site(1, 10));
  for (unsigned n = 0; n < kRate + 7; ++n) site.send(0, from_client(tcp(client(n), kSci).flags(kAck).seq(1).ack(1)));
  EXPECT_EQ(site.outcome.reason, DropReason::kUnknownFlowRateLimited);
  EXPECT_EQ(refused(site, Refusal::kUnknownFlow), kRate);
  EXPECT_EQ(drops(site, DropReason::kUnknownFlowRateLimited), 7u);
  EXPECT_EQ(drops_in_all(site), 7u);
  EXPECT_EQ(refused_in_all(site), kRate);
}

TEST(Refusals, IcmpErrorsBeyondTheRateAreDrops) {
  SmallSite site(small_site(1, 0, dp::Balance::kRoundRobin, dp::Mode::kNat, Protocol::kUdp));
  for (unsigned n = 0; n < kRate + 5; ++n) site.send(0, from_client(udp(client(n), kSci).payload("query")));
  EXPECT_EQ(site.outcome.reason, DropReason::kRejectRateLimited);
  EXPECT_EQ(site.trace.refused, Refusal::kNone);
  EXPECT_EQ(refused(site, Refusal::kNoFreeSlot), kRate);
  EXPECT_EQ(drops(site, DropReason::kRejectRateLimited), 5u);
  EXPECT_EQ(drops_in_all(site), 5u);
  site.pass(dp::kSecond / 2);
  for (unsigned n = 0; n < kRate; ++n) site.send(0, from_client(udp(client(n), kSci).payload("query")));
  EXPECT_EQ(refused_in_all(site), kRate + kRate / 2);
}

// They have one rate with the others, for packets of bound flows too; no slot moves, and what fits goes on.
TEST(Refusals, TooBigBeyondTheRateIsADrop) {
  SmallSite site(small_site(1, 10, dp::Balance::kRoundRobin, dp::Mode::kIpip, Protocol::kUdp));
  const PacketBuilder fits = from_client(udp(client(1), kSci)).dont_fragment().payload_size(1480 - 28);
  const PacketBuilder too_long = fits.payload_size(1480 - 28 + 1);
  site.send(0, fits);
  for (unsigned n = 0; n < kRate + 3; ++n) site.send(0, too_long);
  EXPECT_EQ(site.outcome.reason, DropReason::kRejectRateLimited);
  EXPECT_EQ(refused(site, Refusal::kTooBig), kRate);
  EXPECT_EQ(site.shared.refused(0, Refusal::kTooBig), kRate);
  EXPECT_EQ(drops(site, DropReason::kRejectRateLimited), 3u);
  EXPECT_EQ(drops_in_all(site), 3u);
  EXPECT_EQ(refused_in_all(site), kRate);
  site.send(0, fits);
  EXPECT_EQ(site.outcome.verdict, Verdict::kTransmit);
  EXPECT_EQ(site.active(0), 1u);
}

// A full table of flows that may not give way: the newcomer is reset, under that name.
TEST(Refusals, FlowTableFull) {
  SmallSite site(small_site(1, 1000), 4);
  for (unsigned n = 0; n < 4; ++n) {
    site.send(0, syn_of(n));
    site.send(1, tcp("10.1.0.11:8080", client(n))
                     .flags(kSyn | kAck)
                     .seq(5000)
                     .ack(1001)
                     .ether(mac("02:00:00:01:00:01"), kSitePort1));
    site.send(0, from_client(tcp(client(n), kSci).flags(kAck).seq(1001).ack(5001)));
  }
  site.send(0, syn_of(9));
  EXPECT_EQ(site.outcome.verdict, Verdict::kTransmit);
  EXPECT_EQ(refused(site, Refusal::kFlowTableFull), 1u);
  EXPECT_EQ(refused_in_all(site), 1u);
  EXPECT_EQ(drops_in_all(site), 0u);
  EXPECT_EQ(site.active(0), 4u);
}

// Of two causes the one that came nearer to a session is told, although the other instance is asked last; each
// instance keeps its own.
TEST(Refusals, D45D46CausesOfSeveralInstances) {
  dp::SiteConfig config = small_site(2, 4, dp::Balance::kSlotBased);
  config.scis[0].instances[0].max_sessions = 0;
  SmallSite site(config);
  for (unsigned n = 0; n < 2; ++n) site.send(0, syn_of(n));  // half of 4
  EXPECT_EQ(refused_in_all(site), 0u);
  const uint64_t before = passed_over(site, 0, Refusal::kNoFreeSlot);
  for (unsigned n = 2; n < 5; ++n) site.send(0, syn_of(n));
  EXPECT_EQ(refused(site, Refusal::kProvisionalSpent), 3u);
  EXPECT_EQ(site.shared.refused(0, Refusal::kProvisionalSpent), 3u);
  EXPECT_EQ(refused_in_all(site), 3u);
  EXPECT_EQ(passed_over(site, 0, Refusal::kNoFreeSlot), before + 3);
  EXPECT_EQ(passed_over(site, 1, Refusal::kProvisionalSpent), 3u);
  EXPECT_EQ(passed_over(site, 1, Refusal::kNoFreeSlot), 0u);
  EXPECT_EQ(site.slots(1).active, 2u);
  site.table->instances.edit(1).admin = dp::Admin::kDisabled;
  site.send(0, syn_of(5));
  EXPECT_EQ(refused(site, Refusal::kNoFreeSlot), 1u);
  site.table->instances.edit(0).admin = dp::Admin::kDisabled;
  site.send(0, syn_of(6));
  EXPECT_EQ(refused(site, Refusal::kNoHealthyInstance), 1u);
  EXPECT_EQ(drops_in_all(site), 0u);
}

// Frames of our own that nobody has taken out: the next one is a drop, the question is still counted as read.
TEST(Refusals, OutboxFull) {
  SmallSite site(small_site(1, 10));
  const auto question = arp_request(mac("02:00:00:00:77:01"), "192.0.2.77", "192.0.2.2");
  for (unsigned n = 0; n < dp::Outbox::kFramesMax + 3; ++n) {
    site.send(0, question);
    ASSERT_EQ(site.outcome.verdict, Verdict::kConsumed);
  }
  EXPECT_EQ(site.own_frames().size(), dp::Outbox::kFramesMax);
  EXPECT_EQ(drops(site, DropReason::kOutboxFull), 3u);
  EXPECT_EQ(drops_in_all(site), 3u);
  site.send(0, question);
  EXPECT_EQ(site.own_frames().size(), 1u);
}

}  // namespace
}  // namespace margay::test
