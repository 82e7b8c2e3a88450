// SPDX-License-Identifier: Apache-2.0
// Whatever the site, health and the data plane do: the deltas that it takes come to the complete table.
#include <memory>

#include <gtest/gtest.h>

#include "control/table/table_plan.h"
#include "tests/support/seed.h"
#include "tests/unit/control/table_plan_rig.h"

namespace margay::control {
namespace {

using test::Random;

class RandomSite {
 public:
  explicit RandomSite(Random& random) : random_(random) {}

  std::vector<SciConfig> change() {
    const std::string name(1, static_cast<char>('a' + random_.below(5)));
    if (random_.one_in(6)) {
      site_.erase(name);
    } else {
      SciConfig& s = site_.try_emplace(name, sci(name, {})).first->second;
      const std::string id = "i" + std::to_string(random_.below(8));
      std::erase_if(s.instances, [&](const InstanceConfig& i) { return i.id == id; });
      if (!random_.one_in(3)) s.instances.push_back(instance(id, static_cast<uint16_t>(1 + random_.below(3))));
      if (random_.one_in(20)) s.mode = s.mode == Mode::kNat ? Mode::kL2Dsr : Mode::kNat;
      if (random_.one_in(5)) s.ramp = random_.below(9);
    }
    std::vector<SciConfig> scis;
    for (const auto& [key, s] : site_) scis.push_back(s);
    return scis;
  }

 private:
  Random& random_;
  std::map<std::string, SciConfig> site_;
};

// The data plane refuses at times, loses its control plane at times; instances are in use at random.
TEST(TablePlan, DeltasComeToTheCompleteTable) {
  const uint64_t seed = test::test_seed();
  SCOPED_TRACE(test::seed_text(seed));
  Random random(seed);
  RandomSite site(random);
  DataPlane plane;
  auto plan = std::make_unique<TablePlan>();
  ASSERT_TRUE(plan->adopt({}, plane.counts()));
  std::vector<SciConfig> scis;
  uint64_t compared = 0, refused = 0;
  for (int step = 0; step < 20'000; ++step) {
    if (random.one_in(3)) {
      const auto changed = site.change();
      if (plan->configure(changed)) scis = changed;
    }
    const std::string name(1, static_cast<char>('a' + random.below(5)));
    const auto state = static_cast<HealthState>(random.below(4));
    plan->apply(name, health_of("i" + std::to_string(random.below(8)), state, random.below(200)));
    for (auto& [index, seen] : plane.instances) seen.in_use = random.one_in(4);
    if (random.one_in(200)) {  // another control plane
      plan = std::make_unique<TablePlan>();
      ASSERT_TRUE(plan->configure(scis));
      (void)plan->adopt(plane.running(), plane.counts());
    }
    if (!plan->pending()) continue;
    const Snapshot s = plan->next();
    const auto decoded = shared_table::decode(shared_table::encode(s));
    ASSERT_TRUE(decoded) << decoded.error().message;
    plan->committed(s);
    if (random.one_in(10) || !plane.refusal(s).empty()) {
      ++refused;
      plan->refused();
      if (random.one_in(2)) plan->retry();
      continue;
    }
    plane.apply(s);
    plan->taken();
    if (!random.one_in(3)) plan->acked(s.generation);
    if (plan->holds_back()) {
      plan->retry();
      continue;
    }
    ASSERT_EQ(plane.scis, complete(*plan)) << "step " << step;
    ++compared;
  }
  EXPECT_GT(compared, 5'000u);
  EXPECT_GT(refused, 500u);
}

}  // namespace
}  // namespace margay::control
