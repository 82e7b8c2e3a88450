// SPDX-License-Identifier: Apache-2.0
// balance: consistent-hash (SCI-77): shares by weight, the same choice in every worker and process, and no more flows
// that move than an instance wins or had.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "dataplane/core/rendezvous.h"
#include "tests/support/choices.h"

namespace margay::test {
namespace {

constexpr unsigned kHashedFlows = 20'000;
constexpr uint64_t kFlowWord = 0xc8c3c689b33e94ed, kNameWord = 0x41eee4590213d14f;
constexpr double kDraw = 0x1.2980d320893bfp-1;

std::vector<dp::FlowKey> flows_of(uint64_t seed) {
  Random random(seed);
  std::vector<dp::FlowKey> flows(kHashedFlows);
  for (dp::FlowKey& flow : flows) flow = random_flow(random);
  return flows;
}

dp::SiteConfig hashed_site(size_t instances) { return small_site(instances, 1000, dp::Balance::kConsistentHash); }

std::vector<std::string> names_of_choices(Choices& site, const std::vector<dp::FlowKey>& flows, dp::WorkerIndex w = 0) {
  std::vector<std::string> names;
  for (const dp::FlowKey& flow : flows) names.push_back(site.name(site.first(flow, w)));
  return names;
}

// Chi-square's quantile that a right distribution passes by once in a million runs (Wilson and Hilferty).
double once_in_a_million(double freedom) {
  const double k = 2 / (9 * freedom);
  return freedom * std::pow(1 - k + 4.7534 * std::sqrt(k), 3);
}

TEST(ConsistentHash, SharesFollowWeights) {
  const uint64_t seed = test_seed();
  SCOPED_TRACE(seed_text(seed));
  for (const std::vector<double>& weights :
       {std::vector<double>(10, 1), {1, 2, 3, 4}, {5, 5, 1, 5}, std::vector<double>(100, 7), {1, 1000, 0}}) {
    dp::SiteConfig config = hashed_site(weights.size());
    for (size_t i = 0; i < weights.size(); ++i) config.scis[0].instances[i].weight = static_cast<uint16_t>(weights[i]);
    Choices site(config);
    std::vector<unsigned> taken(weights.size());
    for (const dp::FlowKey& flow : flows_of(seed)) ++taken[site.first(flow)];
    std::vector<double> shares = weights;
    if (shares.back() == 0) {
      EXPECT_EQ(taken.back(), 0u);
      taken.pop_back(), shares.pop_back();
    }
    EXPECT_LT(chi_square(taken, shares), once_in_a_million(static_cast<double>(shares.size()) - 1))
        << weights.size() << " instances";
  }
}

// Neighbouring clients and ports, as scanners and NATs use them, spread like any others.
TEST(ConsistentHash, NeighboursAreSpread) {
  Choices site(hashed_site(8));
  std::vector<unsigned> by_port(8), by_address(8);
  dp::FlowKey flow;
  flow.protocol = Protocol::kTcp;
  for (unsigned n = 0; n < 8000; ++n) {
    flow.client = ip("198.51.100.7");
    flow.client_port = to_wire16(static_cast<uint16_t>(20'000 + n));
    ++by_port[site.first(flow)];
    flow.client = IpAddress::v4(to_wire32(0xc6336400u + n));
    flow.client_port = to_wire16(40'000);
    ++by_address[site.first(flow)];
  }
  EXPECT_LT(chi_square(by_port, std::vector<double>(8, 1)), once_in_a_million(7));
  EXPECT_LT(chi_square(by_address, std::vector<double>(8, 1)), once_in_a_million(7));
}

// Another process: other workers, other secrets, the file's instances in another order, so other indices.
TEST(ConsistentHash, EveryWorkerAndProcessChoosesTheSame) {
  const uint64_t seed = test_seed();
  SCOPED_TRACE(seed_text(seed));
  const auto flows = flows_of(seed);
  for (const size_t instances : {7u, 100u}) {
    dp::SiteConfig config = hashed_site(instances);
    for (size_t i = 0; i < instances; ++i) config.scis[0].instances[i].weight = static_cast<uint16_t>(1 + i % 3);
    Choices one(config, 4);
    std::reverse(config.scis[0].instances.begin(), config.scis[0].instances.end());
    Choices other(config, 2);
    const auto names = names_of_choices(one, flows);
    EXPECT_EQ(names_of_choices(one, flows, 3), names);
    EXPECT_EQ(names_of_choices(other, flows, 1), names);
  }
}

// By the formulas of rendezvous.h, reckoned elsewhere: a build that draws otherwise would part from those that run.
TEST(ConsistentHash, DrawsAreTheSameInEveryBuild) {
  dp::FlowKey flow;
  flow.client = ip("198.51.100.7");
  flow.client_port = to_wire16(40'000);
  flow.protocol = Protocol::kTcp;
  EXPECT_EQ(dp::rendezvous_flow(flow), kFlowWord);
  EXPECT_EQ(dp::rendezvous_name("192.0.2.10:80", "si-1"), kNameWord);
  EXPECT_EQ(dp::rendezvous_draw(kFlowWord, kNameWord), kDraw);
}

// One that goes, by health or out of the site file: its own flows move, and they spread over the others.
TEST(ConsistentHash, OnlyTheFlowsOfTheOneThatGoesMove) {
  const uint64_t seed = test_seed();
  SCOPED_TRACE(seed_text(seed));
  const auto flows = flows_of(seed);
  dp::SiteConfig config = hashed_site(10);
  Choices site(config);
  const auto before = names_of_choices(site, flows);
  site.table->instances.edit(3).health = HealthState::kUnhealthy;
  const auto without = names_of_choices(site, flows);
  std::map<std::string, unsigned> heirs;
  for (unsigned n = 0; n < kHashedFlows; ++n) {
    if (before[n] != "si-4") {
      ASSERT_EQ(without[n], before[n]);
    } else {
      ++heirs[without[n]];
    }
  }
  std::vector<unsigned> counts;
  for (const auto& [name, count] : heirs) counts.push_back(count);
  ASSERT_EQ(counts.size(), 9u);
  EXPECT_LT(chi_square(counts, std::vector<double>(9, 1)), once_in_a_million(8));

  config.scis[0].instances.erase(config.scis[0].instances.begin() + 3);
  Choices smaller(config);
  EXPECT_EQ(names_of_choices(smaller, flows), without);
  site.table->instances.edit(3).health = HealthState::kHealthy;
  EXPECT_EQ(names_of_choices(site, flows), before);
}

// One that comes, or gets a greater weight, takes flows from the others and none moves between these: as many as its
// share, binomial, within 5 sigma.
TEST(ConsistentHash, OneThatComesTakesItsShareAlone) {
  const uint64_t seed = test_seed();
  SCOPED_TRACE(seed_text(seed));
  const auto flows = flows_of(seed);
  dp::SiteConfig config = hashed_site(11);
  config.scis[0].instances[10].weight = 0;
  Choices site(config);
  auto before = names_of_choices(site, flows);
  double had = 0;
  for (const uint16_t weight : {uint16_t{1}, uint16_t{3}}) {
    config.scis[0].instances[10].weight = weight;
    Choices next(config);
    const auto after = names_of_choices(next, flows);
    unsigned moved = 0;
    for (unsigned n = 0; n < kHashedFlows; ++n) {
      if (after[n] == before[n]) continue;
      ASSERT_EQ(after[n], "si-11");
      ++moved;
    }
    const double share = weight / (10.0 + weight), gained = share - had;
    EXPECT_NEAR(moved, kHashedFlows * gained, 5 * std::sqrt(kHashedFlows * gained * (1 - gained))) << weight;
    before = after;
    had = share;
  }
}

// A full instance's flows go on to the next one that the flow draws, as if the full one were not there.
TEST(ConsistentHash, AFullOneIsWalkedPast) {
  dp::SiteConfig config = hashed_site(6);
  config.scis[0].instances[2].max_sessions = 1;
  Choices site(config);
  ASSERT_TRUE(site.shared.slots.take(2, 1, 0));
  dp::SiteConfig five = hashed_site(6);
  five.scis[0].instances[2].weight = 0;
  Choices without(five);
  Random random(7);
  for (unsigned n = 0; n < 2000; ++n) {
    const dp::FlowKey flow = random_flow(random);
    ASSERT_EQ(site.admit(flow), without.first(flow));
  }
}

// What an operator sets by hand may be more than any weight of the site file.
TEST(ConsistentHash, AWeightThatIsRaisedByHandCounts) {
  class Owner : public dp::LiveSite::Owner {
   public:
    dp::Tick tick_at(dp::Nanoseconds) const override { return 0; }
    uint64_t passed() const override { return 0; }
    void publish(const dp::SiteTable&, std::shared_ptr<const dp::SiteTable>) override {}
  };
  const dp::SiteConfig config = hashed_site(2);
  Choices site(config);
  Owner owner;
  dp::LiveSite live(config, site.shared, site.table->clone(), owner);
  live.set(1, [](dp::Override& set) { set.weight = 9; });
  site.table = live.table()->clone();
  std::vector<unsigned> taken(2);
  for (const dp::FlowKey& flow : flows_of(1)) ++taken[site.first(flow)];
  EXPECT_LT(chi_square(taken, {1, 9}), once_in_a_million(1));
}

}  // namespace
}  // namespace margay::test
