// SPDX-License-Identifier: Apache-2.0
// Next hops: asked for, learnt, given up, and what waits for them (RFC 826, RFC 1122 §2.3.2, RFC 4861 §7).
#include <gtest/gtest.h>

#include "tests/support/small_site.h"

namespace margay::test {
namespace {

using dp::kSecond;
using dp::Neighbours;
using dp::Verdict;

const MacAddress kInstanceMac = mac("02:00:00:01:00:01");

dp::SiteConfig unresolved_site() {
  dp::SiteConfig config = small_site(1, 1000);
  config.scis[0].instances[0].mac.reset();
  return config;
}
PacketBuilder syn(unsigned n) {
  return tcp("198.51.100." + std::to_string(n + 1) + ":40000", "192.0.2.10:80")
      .flags(kSyn)
      .ether(kSiteRouter, kSitePort0);
}
PacketBuilder answer() { return arp_reply(kInstanceMac, "10.1.0.11", kSitePort1, "10.1.0.2"); }

// How many ARP requests for the instance stand in the outbox.
size_t questions(SmallSite& site) {
  size_t count = 0;
  const Bytes question = arp_request(kSitePort1, "10.1.0.2", "10.1.0.11").build();
  for (const dp::Frame& f : site.own_frames()) {
    if (Bytes(f.bytes.begin(), f.bytes.begin() + f.length) == question) ++count;
  }
  return count;
}

TEST(Neighbours, InstancesAreAskedForFromTheStartAndForEver) {
  SmallSite site(unresolved_site());
  site.pass(100 * dp::kMillisecond);
  EXPECT_EQ(questions(site), 1u);
  site.pass(10 * kSecond);
  const size_t asked = questions(site);  // once a second; the scan takes at most 50 ms
  EXPECT_GE(asked, 9u);
  EXPECT_LE(asked, 10u);
}

TEST(Neighbours, PacketsWaitAndGoInOrder) {
  SmallSite site(unresolved_site());
  for (unsigned n = 0; n < 3; ++n) {
    site.send(0, syn(n));
    EXPECT_EQ(site.outcome.verdict, Verdict::kHeld) << n;
  }
  EXPECT_EQ(site.worker().held(), 3u);
  site.send(1, answer());
  dp::Burst burst;
  ASSERT_TRUE(site.worker().release_held(burst, *site.table, site.now));
  ASSERT_EQ(burst.count, 3u);
  for (unsigned n = 0; n < 3; ++n) {
    const Bytes expected = syn(n).to("10.1.0.11:8080").ether(kSitePort1, kInstanceMac).ttl(63).build();
    const dp::Packet& p = burst.packets[n];
    EXPECT_EQ(hex(Bytes(p.data, p.data + p.length)), hex(expected));
    EXPECT_EQ(burst.outcomes[n].verdict, Verdict::kTransmit);
    EXPECT_EQ(burst.outcomes[n].target, 1);
  }
  EXPECT_FALSE(site.worker().release_held(burst, *site.table, site.now));
}

// l4lb facts, row 56: bounded a next hop.
TEST(Neighbours, AtMost32Wait) {
  SmallSite site(unresolved_site());
  for (unsigned n = 0; n < 32; ++n) site.send(0, syn(n));
  EXPECT_EQ(site.outcome.verdict, Verdict::kHeld);
  site.send(0, syn(32));
  EXPECT_EQ(site.outcome.reason, DropReason::kNeighbourQueueFull);
}

TEST(Neighbours, GivenUpAfterThreeQuestions) {
  SmallSite site(unresolved_site());
  site.send(0, syn(0));
  site.pass(2 * kSecond);
  EXPECT_EQ(site.worker().held(), 1u);
  site.pass(2 * kSecond);
  EXPECT_EQ(site.worker().held(), 0u);
  EXPECT_EQ(site.worker().counters().drops[static_cast<size_t>(DropReason::kNeighbourUnresolved)].get(), 1u);
  site.send(0, syn(1));  // nothing waits for a hop that is known not to answer
  EXPECT_EQ(site.outcome.reason, DropReason::kNeighbourUnresolved);
  site.send(1, answer());
  site.send(0, syn(2));
  EXPECT_EQ(site.outcome.verdict, Verdict::kTransmit);
}

// RFC 4861 §7.3: confirmed again after its time, used meanwhile, forgotten without an answer.
TEST(Neighbours, KnownIsConfirmedAndForgotten) {
  SmallSite site(unresolved_site());
  site.pass(kSecond);
  site.send(1, answer());
  questions(site);
  site.pass(29 * kSecond);
  EXPECT_EQ(questions(site), 0u);
  site.pass(2 * kSecond);
  EXPECT_GE(questions(site), 1u);
  site.send(0, syn(1));
  EXPECT_EQ(site.outcome.verdict, Verdict::kTransmit);
  site.pass(5 * kSecond);
  site.send(0, syn(2));
  EXPECT_NE(site.outcome.verdict, Verdict::kTransmit);
  site.send(1, answer());
  site.send(0, syn(3));
  EXPECT_EQ(site.outcome.verdict, Verdict::kTransmit);
}

TEST(Neighbours, ConfiguredAddressesAreNeitherAskedForNorOverwritten) {
  SmallSite site(small_site(1, 10));
  site.pass(5 * kSecond);
  EXPECT_EQ(questions(site), 0u);
  const MacAddress liar = mac("02:00:00:00:66:66");
  site.send(1, arp_reply(liar, "10.1.0.11", kSitePort1, "10.1.0.2"));
  site.send(0, syn(0));
  EXPECT_EQ(site.sent, syn(0).to("10.1.0.11:8080").ether(kSitePort1, kInstanceMac).ttl(63).build());
}

// A flood of answers for hosts that nobody asked for takes no room.
TEST(Neighbours, NothingIsLearntUnasked) {
  SmallSite site(small_site(1, 10));
  for (unsigned n = 20; n < 250; ++n) {
    site.send(0, arp_reply(mac("02:00:00:00:77:01"), "192.0.2." + std::to_string(n), kSitePort0, "192.0.2.2"));
  }
  for (uint32_t i = 0; i < site.worker().neighbours().count(); ++i) {
    const dp::Neighbour& n = site.worker().neighbours().at(i);
    EXPECT_TRUE(n.state == dp::NeighbourState::kUnused || n.state == dp::NeighbourState::kStatic) << i;
  }
}

// Clients on the port's own network (ND exhaustion): the table stays bounded and bound hosts stay reachable.
TEST(Neighbours, ManyHostsOnLinkTakeTurns) {
  dp::SiteConfig config = small_site(1, 100000);
  config.ports[0].addresses = {*Prefix::parse("192.0.2.2/24"), *Prefix::parse("172.16.0.2/12")};
  SmallSite site(config, 16384);
  const auto client = [](unsigned n) {
    return "172.17." + std::to_string(n / 250) + "." + std::to_string(n % 250 + 1) + ":40000";
  };
  unsigned held = 0, refused = 0;
  for (unsigned n = 0; n < 5000; ++n) {
    site.send(0, tcp(client(n), "192.0.2.10:80").flags(kSyn).ether(kSiteRouter, kSitePort0));
    ASSERT_EQ(site.outcome.verdict, Verdict::kTransmit);
    site.send(1, tcp("10.1.0.11:8080", client(n)).flags(kSyn | kAck).ack(1).ether(kInstanceMac, kSitePort1));
    (site.outcome.verdict == Verdict::kHeld ? held : refused) += 1;
    site.own_frames();
  }
  EXPECT_GT(refused, 0u);
  EXPECT_LE(site.worker().held(), Neighbours::kWaitingMax);
  site.send(0, arp_reply(mac("02:00:00:00:88:01"), "172.17.0.1", kSitePort0, "172.16.0.2"));
  dp::Burst burst;
  EXPECT_TRUE(site.worker().release_held(burst, *site.table, site.now));
  EXPECT_EQ(burst.count, 1u);
  EXPECT_EQ(held, Neighbours::kWaitingMax);
}

// Eight hosts of one set, all with packets that wait: there is no room for a ninth.
TEST(Neighbours, AFullSetIsANamedDrop) {
  dp::SiteConfig config = small_site(1, 100000);
  config.ports[0].addresses = {*Prefix::parse("192.0.2.2/24"), *Prefix::parse("172.16.0.2/12")};
  SmallSite site(config, 16384);
  uint64_t refused = 0;
  for (uint32_t n = 1; n < 2000; ++n) {  // scattered, so that sets fill unevenly
    const std::string client = IpAddress::v4(to_wire32(0xac10'0000u + n * n * 7919 % 0xf'fff0u)).format() + ":40000";
    site.send(0, tcp(client, "192.0.2.10:80").flags(kSyn).ether(kSiteRouter, kSitePort0));
    site.send(1, tcp("10.1.0.11:8080", client).flags(kSyn | kAck).ack(1).ether(kInstanceMac, kSitePort1));
    if (site.outcome.reason == DropReason::kNeighbourTableFull) ++refused;
    site.own_frames();
  }
  EXPECT_GT(refused, 0u);
  EXPECT_EQ(site.worker().counters().drops[static_cast<size_t>(DropReason::kNeighbourTableFull)].get(), refused);
}

// Several instances at one address: all of them are one next hop, and an answer reaches just that one.
TEST(Neighbours, OneAnswerForAllInstancesOfAHost) {
  dp::SiteConfig config = small_site(40, 10);
  for (size_t n = 0; n < 40; ++n) {
    config.scis[0].instances[n].mac.reset();
    config.scis[0].instances[n].address = ip(n < 20 ? "10.1.0.11" : "10.1.0.12");
    config.scis[0].instances[n].port = static_cast<uint16_t>(8080 + n);
  }
  SmallSite site(config);
  site.pass(kSecond / 2);
  EXPECT_EQ(questions(site), 1u);
  site.send(1, answer());
  unsigned known = 0, unknown = 0;
  for (const dp::Instance& i : site.table->instances) {
    const dp::Neighbour& n = site.worker().neighbours().at(Neighbours::pinned(i.next_hop));
    (n.usable() ? known : unknown) += 1;
    if (n.usable()) {
      EXPECT_EQ(n.address, ip("10.1.0.11"));
      EXPECT_EQ(n.mac, kInstanceMac);
    }
  }
  EXPECT_EQ(known, 20u);
  EXPECT_EQ(unknown, 20u);
}

// RFC 5227 §2.4 c: at most one announcement in DEFEND_INTERVAL, whichever worker hears the claims.
TEST(Neighbours, OneWorkerDefendsOurAddresses) {
  SmallSite site(small_site(1, 10), 256, 2);
  const MacAddress other = mac("02:00:00:00:66:66");
  const auto claim = arp_request(other, "192.0.2.10", "192.0.2.10");
  const Bytes announcement = arp_request(kSitePort0, "192.0.2.10", "192.0.2.10").build();
  site.send(0, claim, 1);
  EXPECT_EQ(site.outcome.reason, DropReason::kAddressConflict);
  site.send(0, claim, 0);
  EXPECT_EQ(site.own_frames(1).size(), 0u);
  const auto frames = site.own_frames(0);
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(Bytes(frames[0].bytes.begin(), frames[0].bytes.begin() + frames[0].length), announcement);
  const auto claims = site.worker(0).defence().claims();
  ASSERT_EQ(claims.size(), 1u);
  EXPECT_EQ(claims[0].address, ip("192.0.2.10"));
  EXPECT_EQ(claims[0].mac, other);
  EXPECT_EQ(claims[0].count, 2u);
  const auto conflicts = static_cast<size_t>(DropReason::kAddressConflict);
  EXPECT_EQ(site.worker(0).counters().drops[conflicts].get(), 2u);
  EXPECT_EQ(site.worker(1).counters().drops[conflicts].get(), 0u);
}

// Somebody claims more addresses than are remembered: what was defended lately stays, and the rest has its turn later.
TEST(Neighbours, DefenceIsBounded) {
  const auto address = [](size_t n) { return IpAddress::v4(to_wire32(0x0a000000u + static_cast<uint32_t>(n))); };
  const MacAddress other = mac("02:00:00:00:66:66");
  dp::Defence defence;
  dp::Tick now = 0xffff'ff00;  // the clock's turn comes meanwhile
  for (size_t n = 0; n < dp::Defence::kClaimsMax; ++n) EXPECT_TRUE(defence.claimed(0, address(n), other, now));
  EXPECT_FALSE(defence.claimed(0, address(1000), other, now));
  now += dp::Defence::kInterval - 1;
  EXPECT_FALSE(defence.claimed(0, address(1000), other, now));
  EXPECT_FALSE(defence.claimed(0, address(5), other, now));
  ++now;
  EXPECT_TRUE(defence.claimed(0, address(5), other, now));
  EXPECT_TRUE(defence.claimed(0, address(1000), other, now));
  EXPECT_FALSE(defence.claimed(0, address(1000), other, now));
  EXPECT_FALSE(defence.claimed(0, address(5), other, now));
  EXPECT_TRUE(defence.claimed(1, address(5), other, now));  // on another port it is another claim
  EXPECT_EQ(defence.claims().size(), dp::Defence::kClaimsMax);
}

}  // namespace
}  // namespace margay::test
