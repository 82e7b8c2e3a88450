// SPDX-License-Identifier: Apache-2.0
// SCI-77: weighted-response-time and resource-aware, whose shares follow from arithmetic on what is known; and what
// holds for all six algorithms: weights, slow start, health, sampling in large sites, and that a free slot is found.
#include <gtest/gtest.h>

#include "tests/support/choices.h"

namespace margay::test {
namespace {

using dp::Balance;
using dp::kNoIndex;
using Counts = std::vector<unsigned>;

// Each within `off` of what is expected.
testing::AssertionResult near(const Counts& counts, const std::vector<double>& expected, double off) {
  for (size_t i = 0; i < expected.size(); ++i) {
    if (std::abs(counts[i] - expected[i]) <= off) continue;
    return testing::AssertionFailure() << "instance " << i << " took " << counts[i] << ", expected " << expected[i]
                                       << " +/- " << off;
  }
  return testing::AssertionSuccess();
}

// Turns are smooth: each worker is at most one flow from the shares.
constexpr dp::WorkerIndex kBalancers = 4;
constexpr double kOneEach = kBalancers;

TEST(WeightedResponseTime, SCI77SharesAreTheInverseOfTheTimes) {
  Choices site(small_site(3, 10000, Balance::kWeightedResponseTime), kBalancers);
  site.saw_everywhere(0, 10);
  site.saw_everywhere(1, 20);
  site.saw_everywhere(2, 40);
  EXPECT_TRUE(near(site.admit_many(2800), {1600, 800, 400}, kOneEach));  // 4 : 2 : 1
}

TEST(WeightedResponseTime, WeightsCount) {
  dp::SiteConfig config = small_site(3, 10000, Balance::kWeightedResponseTime);
  config.scis[0].instances[1].weight = 4;
  config.scis[0].instances[2].weight = 0;
  Choices site(config, kBalancers);
  site.saw_everywhere(0, 10);
  site.saw_everywhere(1, 20);
  site.saw_everywhere(2, 1);
  EXPECT_TRUE(near(site.admit_many(1200), {400, 800, 0}, kOneEach));  // 1/10 : 4/20
}

TEST(WeightedResponseTime, WhatOneWorkerSawHoldsForAll) {
  Choices site(small_site(2, 10000, Balance::kWeightedResponseTime), kBalancers);
  site.saw(0, 0, 30);
  site.saw(3, 1, 10);
  EXPECT_TRUE(near(site.admit_many(1200), {300, 900}, kOneEach));
}

TEST(WeightedResponseTime, NothingKnownOfOneIsTheUsualTime) {
  Choices site(small_site(3, 10000, Balance::kWeightedResponseTime), kBalancers);
  site.saw_everywhere(0, 10);
  site.saw_everywhere(1, 30);
  EXPECT_TRUE(near(site.admit_many(2200), {1200, 400, 600}, kOneEach));  // 1/10 : 1/30 : 1/20
}

TEST(WeightedResponseTime, NothingKnownOfAnyIsByWeights) {
  dp::SiteConfig config = small_site(2, 10000, Balance::kWeightedResponseTime);
  config.scis[0].instances[1].weight = 3;
  Choices site(config, kBalancers);
  EXPECT_TRUE(near(site.admit_many(1200), {300, 900}, kOneEach));
}

// Half of 30 s ago: 10 and 30 ms are worth 15 and 25, so 5 : 3. After 30 s nothing is known.
TEST(WeightedResponseTime, WhatWasSeenGrowsOld) {
  Choices site(small_site(2, 10000, Balance::kWeightedResponseTime), kBalancers);
  site.saw_everywhere(0, 10);
  site.saw_everywhere(1, 30);
  site.now += 15 * kSecond;
  EXPECT_TRUE(near(site.admit_many(1600), {1000, 600}, kOneEach));
  site.now += 15 * kSecond;
  EXPECT_TRUE(near(site.admit_many(1600), {800, 800}, kOneEach));
}

// A time of next to nothing does not starve the other one of the requests that would show it well again.
TEST(WeightedResponseTime, NobodyIsStarved) {
  Choices site(small_site(2, 1u << 20, Balance::kWeightedResponseTime));
  site.saw(0, 0, 0);
  site.saw(0, 1, 60'000);
  EXPECT_GT(site.admit_many(20'000)[1], 1u);
}

// A new sample counts an eighth; all, when the others are forgotten.
TEST(WeightedResponseTime, TheAverageForgets) {
  Choices site(small_site(1, 1, Balance::kWeightedResponseTime));
  site.saw(0, 0, 80);
  site.saw(0, 0, 160);
  EXPECT_DOUBLE_EQ(site.shared.response_time(0, dp::to_tick(site.now)).microseconds, 90'000);
  site.now += 30 * kSecond;
  site.saw(0, 0, 8);
  EXPECT_DOUBLE_EQ(site.shared.response_time(0, dp::to_tick(site.now)).microseconds, 8000);
  site.shared.serve(0, 0, 7);  // the index is another instance's
  EXPECT_EQ(site.shared.response_time(0, dp::to_tick(site.now)).worth, 0);
}

// From the last of a request to the first of its response, as the packets pass.
TEST(WeightedResponseTime, IsSeenInThePath) {
  SmallSite site(small_site(1, 10, Balance::kWeightedResponseTime, dp::Mode::kNat, Protocol::kUdp));
  site.send(0, udp("198.51.100.7:4000", "192.0.2.10:80").payload("question").ether(kSiteRouter, kSitePort0));
  site.pass(25 * kMillisecond);
  site.send(1,
            udp("10.1.0.11:8080", "198.51.100.7:4000").payload("answer").ether(mac("02:00:00:01:00:01"), kSitePort1));
  EXPECT_NEAR(site.shared.response_time(0, dp::to_tick(site.now)).microseconds, 25'000, 10'000);
}

TEST(ResourceAware, SCI77LeastLoadUntilTheSlotsTakenMakeUpForIt) {
  Choices site(small_site(2, 100, Balance::kResourceAware), kBalancers);
  site.reported(0, 0.2);
  site.reported(1, 0.5);
  EXPECT_EQ(site.admit_many(30), (Counts{30, 0}));  // a session is a hundredth: 0.2 + 0.30 = 0.5
  EXPECT_EQ(site.admit_many(20), (Counts{10, 10}));
}

// Sessions that the report knows of are in it; those that began since are not yet.
TEST(ResourceAware, WhatBeganSinceTheReportCounts) {
  Choices site(small_site(2, 100, Balance::kResourceAware), kBalancers);
  for (unsigned n = 0; n < 40; ++n) ASSERT_TRUE(site.shared.slots.take(0, 1, 0));
  site.shared.counters(0, 0).active.add(40);
  site.reported(0, 0.3, 40);
  site.reported(1, 0.5);
  EXPECT_EQ(site.admit_many(20), (Counts{20, 0}));
  site.reported(0, 0.3, 30);  // 30 more began: 0.6, against 0.5
  EXPECT_EQ(site.admit_many(10), (Counts{0, 10}));
}

TEST(ResourceAware, AnOldReportCountsLess) {
  Choices site(small_site(2, 100, Balance::kResourceAware), kBalancers);
  site.reported(0, 0.2);
  site.reported(1, 0.5);
  site.now += 5 * kSecond;  // half of its life: 0.1 and 0.25
  EXPECT_EQ(site.admit_many(15), (Counts{15, 0}));
  EXPECT_EQ(site.admit_many(20), (Counts{10, 10}));
}

// All reports are stale: their source is at fault. Then active / limit, which is known here.
TEST(ResourceAware, AllStaleIsByTheSlotsTaken) {
  dp::SiteConfig config = small_site(2, 100, Balance::kResourceAware);
  config.scis[0].instances[1].max_sessions = 300;
  for (const bool reported : {false, true}) {
    Choices site(config, kBalancers);
    if (reported) site.reported(0, 0.1), site.reported(1, 0.9);
    site.now += 10 * kSecond;
    EXPECT_TRUE(near(site.admit_many(200), {50, 150}, 1)) << reported;
  }
}

// (0.1 + n1/100) / 1 = (0.1 + n2/100) / 3 with n1 + n2 = 100: n1 = 20, n2 = 80.
TEST(ResourceAware, WeightsCount) {
  dp::SiteConfig config = small_site(2, 100, Balance::kResourceAware);
  config.scis[0].instances[1].weight = 3;
  Choices site(config, kBalancers);
  site.reported(0, 0.1);
  site.reported(1, 0.1);
  EXPECT_TRUE(near(site.admit_many(100), {20, 80}, 1));
}

// Free slots times weight: 3 * (1000 - 667) = 1000 - 0; from there on 3 * n2 = n1.
TEST(SlotBased, WeightsCount) {
  dp::SiteConfig config = small_site(2, 1000, Balance::kSlotBased);
  config.scis[0].instances[1].weight = 3;
  Choices site(config, kBalancers);
  EXPECT_TRUE(near(site.admit_many(667), {0, 667}, 1));
  EXPECT_TRUE(near(site.admit_many(400), {300, 100}, 2));
}

class EachBalance : public testing::TestWithParam<Balance> {
 protected:
  dp::SiteConfig config(size_t instances, uint32_t slots) const { return small_site(instances, slots, GetParam()); }
};

// "If any eligible instance has a slot, the flow is admitted", and never more than there are.
TEST_P(EachBalance, EverySlotIsFoundAndNoneTwice) {
  for (const size_t instances : {5u, 64u, 65u, 300u}) {
    for (const bool tiers : {false, true}) {
      dp::SiteConfig site = config(instances, 3);
      for (size_t i = 0; tiers && i < instances; ++i)
        site.scis[0].instances[i].preference = static_cast<uint8_t>(i % 7);
      Choices choices(site, kBalancers);
      EXPECT_EQ(choices.admit_many(static_cast<unsigned>(3 * instances)), Counts(instances, 3)) << instances << tiers;
      EXPECT_EQ(choices.admit_many(10), Counts(instances, 0)) << instances << tiers;
    }
  }
}

// SCI-57, SCI-74, SCI-75: UNHEALTHY and UNKNOWN never, DEGRADED when it is asked for, weight 0 and barred ones never.
TEST_P(EachBalance, OnlyTheEligibleAreOffered) {
  using enum HealthState;
  for (const size_t instances : {8u, 100u}) {
    dp::SiteConfig site = config(instances, 1000);
    site.scis[0].instances[3].weight = 0;
    site.scis[0].security_level_min = 5;
    for (auto& i : site.scis[0].instances) i.security_level = 5;
    site.scis[0].instances[4].security_level = 4;
    Choices choices(site, kBalancers);
    for (dp::InstanceIndex i = 5; i < instances; ++i) {
      choices.table->instances.edit(i).health = i == 5 ? kDegraded : i == 6 ? kUnknown : kUnhealthy;
    }
    choices.table->instances.edit(2).admin = dp::Admin::kDraining;
    const Counts taken = choices.admit_many(200);
    EXPECT_EQ(taken[0] + taken[1], 200u) << instances;
    Random random(1);
    for (unsigned n = 0; n < 20; ++n) EXPECT_EQ(choices.first(random_flow(random), 0, kDegraded), 5u);
    choices.table->instances.edit(0).health = choices.table->instances.edit(1).health = kUnknown;
    EXPECT_EQ(choices.first(random_flow(random)), kNoIndex);
  }
}

// One alone of a thousand: draws hardly ever find it, the flow does.
TEST_P(EachBalance, TheOnlyOneOfManyIsFound) {
  Choices site(config(1000, 50), kBalancers);
  for (dp::InstanceIndex i = 0; i < 1000; ++i) {
    if (i != 777) site.table->instances.edit(i).health = HealthState::kUnhealthy;
  }
  EXPECT_EQ(site.admit_many(60)[777], 50u);
}

// A new instance begins with a tenth of its share (26 of 256): with 9 others, well below a tenth of 1000 flows; where
// the weight is of what is free or used, it cannot get more than with its whole share.
TEST_P(EachBalance, ANewInstanceIsSpared) {
  dp::SiteConfig site = config(10, 100'000);
  site.scis[0].ramp = 10 * kSecond;
  Choices choices(site, kBalancers);
  choices.table->instances.edit(9).ramp_end = dp::to_tick(choices.now + 10 * kSecond);
  const Counts taken = choices.admit_many(1000);
  // 1000 * 0.1016 / 9.1016 = 11; by chance (consistent-hash) 6 sigma more; resource-aware: half a slot's rounding.
  EXPECT_LE(taken[9], 31u);
  for (dp::InstanceIndex i = 0; i < 9; ++i) EXPECT_GE(taken[i], 50u);
}

// Of 1000, over 4 workers that see each other's sessions.
TEST_P(EachBalance, ManyInstancesShareEvenly) {
  constexpr unsigned kInstances = 1000, kOpened = 20'000;
  Choices site(config(kInstances, 1000), kBalancers);
  const Counts taken = site.admit_many(kOpened);
  const auto [least, most] = std::minmax_element(taken.begin(), taken.end());
  switch (GetParam()) {
    case Balance::kLeastConnections:
    case Balance::kSlotBased:
    case Balance::kResourceAware:
      // ln ln n / ln d + O(1) above the mean (Azar, Broder, Karlin and Upfal, "Balanced allocations", 1994): 0.7 +
      // O(1).
      EXPECT_LE(*most, kOpened / kInstances + 4);
      break;
    case Balance::kRoundRobin:
    case Balance::kWeightedResponseTime:
      // A sixteenth of the choices that it is drawn for, at most one off a worker; 6 sigma of the draws are 7.
      EXPECT_LE(*most, kOpened / kInstances + kBalancers + 7);
      EXPECT_GE(*least, kOpened / kInstances - kBalancers - 7);
      break;
    case Balance::kConsistentHash:
      EXPECT_LT(chi_square(taken, std::vector<double>(kInstances, 1)), 999 + 6 * 44.7);  // 6 sigma
      break;
  }
}

INSTANTIATE_TEST_SUITE_P(All, EachBalance, testing::ValuesIn(kBalances), [](const auto& balance) {
  std::string name(word_of(balance.param));
  std::erase(name, '-');
  return name;
});

// l4lb facts, row 31d: a change of weights holds from the next flow on.
TEST(Balance, AWeightThatChangesHoldsAtOnce) {
  for (const Balance balance : {Balance::kRoundRobin, Balance::kWeightedResponseTime}) {
    Choices site(small_site(2, 10000, balance), kBalancers);
    EXPECT_TRUE(near(site.admit_many(400), {200, 200}, kOneEach));
    site.table->instances.edit(1).weight = 3;
    EXPECT_TRUE(near(site.admit_many(400), {100, 300}, 2 * kOneEach));
    site.table->instances.edit(1).weight = 1;
    EXPECT_TRUE(near(site.admit_many(400), {200, 200}, 2 * kOneEach));
  }
}

// SCI-78: the highest preference first, the others only while these are full.
TEST(Policies, SCI78PreferredOnesFirst) {
  for (const Balance balance : kBalances) {
    dp::SiteConfig config = small_site(4, 10, balance);
    config.scis[0].instances[1].preference = config.scis[0].instances[3].preference = 200;
    config.scis[0].instances[2].preference = 0;
    Choices site(config, kBalancers);
    Counts taken = site.admit_many(20);
    EXPECT_EQ(taken, (Counts{0, 10, 0, 10})) << word_of(balance);
    EXPECT_EQ(site.admit_many(10), (Counts{10, 0, 0, 0})) << word_of(balance);
    EXPECT_EQ(site.admit_many(11), (Counts{0, 0, 10, 0})) << word_of(balance);
  }
}

// Preference is for what may take flows at all: a preferred one that is DEGRADED is none of the HEALTHY (D-46).
TEST(Policies, PreferenceDoesNotStandOverHealth) {
  dp::SiteConfig config = small_site(2, 10);
  config.scis[0].instances[1].preference = 200;
  Choices site(config);
  site.table->instances.edit(1).health = HealthState::kDegraded;
  EXPECT_EQ(site.admit_many(5), (Counts{5, 0}));
}

TEST(Policies, SCI78CheapestFirstWithinAPreference) {
  dp::SiteConfig config = small_site(4, 10);
  for (size_t i = 0; i < 4; ++i) config.scis[0].instances[i].price = static_cast<uint32_t>(40 - 10 * i);
  config.scis[0].instances[3].preference = 50;  // the cheapest of all, for when the others are full
  Choices by_preference_alone(config);
  EXPECT_EQ(by_preference_alone.admit_many(15), (Counts{5, 5, 5, 0}));
  config.scis[0].cheapest_first = true;
  Choices site(config);
  EXPECT_EQ(site.admit_many(10), (Counts{0, 0, 10, 0}));
  EXPECT_EQ(site.admit_many(10), (Counts{0, 10, 0, 0}));
  EXPECT_EQ(site.admit_many(20), (Counts{10, 0, 0, 10}));
}

// SCI-78: nobody of the level that is required: no instance may take the flow, which is not that all are full (D-46).
TEST(Policies, SCI78SecurityLevelIsRequired) {
  dp::SiteConfig config = small_site(2, 10);
  config.scis[0].security_level_min = 6;
  config.scis[0].instances[1].security_level = 6;
  SmallSite site(config);
  const auto syn_of = [](unsigned n) {
    return tcp("198.51.100.7:" + std::to_string(4000 + n), "192.0.2.10:80")
        .flags(kSyn)
        .seq(1)
        .ether(kSiteRouter, kSitePort0);
  };
  site.send(0, syn_of(0));
  EXPECT_EQ(site.trace.instance, 1u);
  site.table->instances.edit(1).health = HealthState::kUnhealthy;
  site.send(0, syn_of(1));
  EXPECT_EQ(site.trace.refused, Refusal::kNoHealthyInstance);
}

}  // namespace
}  // namespace margay::test
