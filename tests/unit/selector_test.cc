// SPDX-License-Identifier: Apache-2.0
// SCI-76, SCI-77: shares follow from arithmetic on weights and counts; SCI-74, SCI-75, D-46: who is a candidate.
#include <gtest/gtest.h>

#include <map>
#include <optional>

#include "tests/support/small_site.h"

namespace margay::test {
namespace {

using dp::Balance;
using dp::HealthState;

PacketBuilder first_packet(unsigned n) {
  const std::string from = "198." + std::to_string(18 + n / 60000) + "." + std::to_string(n / 250 % 240) + "." +
                           std::to_string(n % 250 + 1) + ":40000";
  return tcp(from, "192.0.2.10:80").flags(kSyn).seq(1).ether(kSiteRouter, kSitePort0);
}

// Opens flows and counts who took them.
std::map<dp::InstanceIndex, unsigned> open_flows(SmallSite& site, unsigned count, unsigned first = 0) {
  std::map<dp::InstanceIndex, unsigned> taken;
  for (unsigned n = first; n < first + count; ++n) {
    site.send(0, first_packet(n));
    if (site.trace.new_binding) ++taken[site.trace.instance];
  }
  return taken;
}

TEST(Selector, SCI77RoundRobinFollowsWeights) {
  dp::SiteConfig config = small_site(3, 10000);
  config.scis[0].instances[0].weight = 5;
  config.scis[0].instances[2].weight = 0;
  SmallSite site(config, 2048);
  // 5 of 6 and 1 of 6; weight 0 takes nothing.
  EXPECT_EQ(open_flows(site, 600), (std::map<dp::InstanceIndex, unsigned>{{0, 500}, {1, 100}}));
}

// Smooth: with weights 5 and 1 the light one is never two apart from its place in a run of six.
TEST(Selector, RoundRobinIsSmooth) {
  dp::SiteConfig config = small_site(2, 10000);
  config.scis[0].instances[0].weight = 5;
  SmallSite site(config);
  for (unsigned run = 0; run < 20; ++run) EXPECT_EQ(open_flows(site, 6, run * 6)[1], 1u) << run;
}

TEST(Selector, SCI77LeastConnectionsEvensOut) {
  SmallSite site(small_site(3, 10000, Balance::kLeastConnections), 2048);
  open_flows(site, 90);
  for (dp::InstanceIndex i = 0; i < 3; ++i) EXPECT_EQ(site.active(i), 30u);
  // Sessions on instance 1 only, by another worker's count: the next ones go to the other two.
  site.shared.counters(0, 1).active.add(20);
  open_flows(site, 40, 1000);
  EXPECT_EQ(site.active(0), 50u);
  EXPECT_EQ(site.active(2), 50u);
  site.shared.counters(0, 1).active.subtract(20);
}

TEST(Selector, LeastConnectionsCountsByWeight) {
  dp::SiteConfig config = small_site(2, 10000, Balance::kLeastConnections);
  config.scis[0].instances[1].weight = 3;
  SmallSite site(config, 2048);
  open_flows(site, 400);
  EXPECT_EQ(site.active(0), 100u);
  EXPECT_EQ(site.active(1), 300u);
}

// One that serves anew gets a tenth of its share at first and all of it after the ramp, whatever the algorithm counts.
class Ramp : public testing::Test {
 protected:
  // Instance 1 began to serve `ago` before now.
  SmallSite& site(Balance balance, dp::Nanoseconds ago) {
    dp::SiteConfig config = small_site(2, 10000, balance);
    config.scis[0].ramp = 10 * kSecond;
    site_.emplace(config, 4096);
    site_->table->instances.edit(1).ramp_end = dp::to_tick(site_->now + 10 * kSecond - ago);
    return *site_;
  }

 private:
  std::optional<SmallSite> site_;
};

TEST_F(Ramp, RoundRobin) {
  // 26 + 256 = 282 parts: 26 of 282 at first, a third at half time (128 of 384), half in the end.
  EXPECT_EQ(open_flows(site(Balance::kRoundRobin, 0), 282)[1], 26u);
  EXPECT_EQ(open_flows(site(Balance::kRoundRobin, 5 * kSecond), 300)[1], 100u);
  EXPECT_EQ(open_flows(site(Balance::kRoundRobin, 10 * kSecond), 300)[1], 150u);
  EXPECT_EQ(open_flows(site(Balance::kRoundRobin, 4000 * kSecond), 300)[1], 150u);
}

TEST_F(Ramp, LeastConnections) {
  EXPECT_EQ(open_flows(site(Balance::kLeastConnections, 5 * kSecond), 300)[1], 100u);
  EXPECT_EQ(open_flows(site(Balance::kLeastConnections, 10 * kSecond), 300)[1], 150u);
}

TEST_F(Ramp, SlotBased) {
  // At half time its 10,000 free slots count as 5,000: nothing until the other has fewer.
  EXPECT_EQ(open_flows(site(Balance::kSlotBased, 5 * kSecond), 300)[1], 0u);
  EXPECT_EQ(open_flows(site(Balance::kSlotBased, 10 * kSecond), 300)[1], 150u);
}

// Where no other serves, it takes all.
TEST_F(Ramp, RefusesNobody) {
  SmallSite& only = site(Balance::kSlotBased, 0);
  only.table->instances.edit(0).health = HealthState::kUnhealthy;
  EXPECT_EQ(open_flows(only, 100)[1], 100u);
}

TEST(Selector, SCI77SlotBasedTakesTheMostFreeSlots) {
  dp::SiteConfig config = small_site(2, 1000, Balance::kSlotBased);
  config.scis[0].instances[1].max_sessions = 1200;
  SmallSite site(config, 4096);
  open_flows(site, 200);  // until both have 1000 free
  EXPECT_EQ(site.active(0), 0u);
  EXPECT_EQ(site.active(1), 200u);
  open_flows(site, 100, 1000);
  EXPECT_EQ(site.active(0), 50u);
  EXPECT_EQ(site.active(1), 250u);
}

// Sessions that end at once leave all instances equal: each one still gets its turn.
TEST(Selector, EqualsTakeTurns) {
  for (const Balance balance : {Balance::kLeastConnections, Balance::kSlotBased}) {
    SmallSite site(small_site(3, 100, balance));
    std::map<dp::InstanceIndex, unsigned> taken;
    for (unsigned n = 0; n < 30; ++n) {
      site.send(0, first_packet(n));
      ++taken[site.trace.instance];
      site.send(0, first_packet(n).flags(kRst).seq(2));
      site.pass(3 * dp::kSecond);
    }
    EXPECT_EQ(taken, (std::map<dp::InstanceIndex, unsigned>{{0, 10}, {1, 10}, {2, 10}}));
  }
}

// l4lb facts, row 20: workers do not all begin with the first instance.
TEST(Selector, WorkersBeginAtDifferentInstances) {
  SmallSite site(small_site(4, 100), 256, 4);
  std::map<dp::InstanceIndex, unsigned> first;
  std::vector<bool> seen(4, false);
  for (unsigned n = 0; n < 400; ++n) {
    std::vector<uint64_t> misses;
    for (auto& c : site.shared.worker_counters) misses.push_back(c.misses.get());
    site.send(0, first_packet(n));
    for (size_t w = 0; w < 4; ++w) {
      if (site.shared.worker_counters[w].misses.get() == misses[w] || seen[w]) continue;
      seen[w] = true;
      ++first[site.trace.instance];
    }
  }
  EXPECT_EQ(first, (std::map<dp::InstanceIndex, unsigned>{{0, 1}, {1, 1}, {2, 1}, {3, 1}}));
}

// "If any eligible instance has a slot, the flow is admitted": whatever the algorithm prefers.
TEST(Selector, AnyFreeSlotIsFound) {
  for (const Balance balance : {Balance::kRoundRobin, Balance::kLeastConnections, Balance::kSlotBased}) {
    dp::SiteConfig config = small_site(5, 4, balance);
    config.scis[0].provisional_share = 1.0;
    SmallSite site(config);
    for (unsigned n = 0; n < 20; ++n) {
      site.send(0, first_packet(n));
      ASSERT_TRUE(site.trace.new_binding) << n;
    }
    site.send(0, first_packet(20));
    EXPECT_EQ(site.trace.refused, Refusal::kNoFreeSlot);
    EXPECT_EQ(site.shared.refused(0, Refusal::kNoFreeSlot), 1u);
  }
}

struct HealthCase {
  const char* name;
  HealthState first, second;
  dp::WhenNoneHealthy when_none;
  int expected;  // who takes a flow: 0, 1; -1 nobody
};

TEST(Selector, SCI57SCI74SCI75SCI82D46Eligibility) {
  using enum HealthState;
  const auto degraded = dp::WhenNoneHealthy::kDegraded, reject = dp::WhenNoneHealthy::kReject;
  for (const HealthCase& c : std::vector<HealthCase>{
           {"healthy before degraded", kDegraded, kHealthy, degraded, 1},
           {"degraded as last resort", kDegraded, kUnhealthy, degraded, 0},
           {"degraded refused by policy", kDegraded, kUnhealthy, reject, -1},
           {"never unhealthy", kUnhealthy, kUnhealthy, degraded, -1},
           {"unknown is unhealthy", kUnknown, kUnhealthy, degraded, -1},
       }) {
    dp::SiteConfig config = small_site(2, 10);
    config.scis[0].when_none_healthy = c.when_none;
    SmallSite site(config);
    site.table->instances.edit(0).health = c.first;
    site.table->instances.edit(1).health = c.second;
    site.send(0, first_packet(1));
    if (c.expected < 0) {
      EXPECT_EQ(site.trace.refused, Refusal::kNoHealthyInstance) << c.name;
    } else {
      EXPECT_EQ(site.trace.instance, static_cast<dp::InstanceIndex>(c.expected)) << c.name;
    }
  }
}

// D-46: HEALTHY ones exist and are full: that is not "no healthy instance", and DEGRADED does not help out.
TEST(Selector, D46FullIsNotUnhealthy) {
  SmallSite site(small_site(2, 1));
  site.table->instances.edit(1).health = HealthState::kDegraded;
  site.send(0, first_packet(1));
  EXPECT_EQ(site.trace.instance, 0u);
  site.send(0, first_packet(2));
  EXPECT_EQ(site.trace.refused, Refusal::kNoFreeSlot);
  EXPECT_EQ(site.active(1), 0u);
}

// An instance that was full for long does not draw every flow once it has room.
TEST(Selector, RoundRobinForgetsTurnsThatWereMissed) {
  dp::SiteConfig config = small_site(2, 10000);
  config.scis[0].instances[0].max_sessions = 0;
  SmallSite site(config, 4096);
  open_flows(site, 1000);
  site.shared.set_limit(*site.table, 0, 10000);
  const auto after = open_flows(site, 10, 5000);
  EXPECT_LE(after.at(0), 7u);
}

}  // namespace
}  // namespace margay::test
