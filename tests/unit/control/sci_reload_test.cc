// SPDX-License-Identifier: Apache-2.0
// One SCI as a whole: what a changed configuration keeps, and what it begins anew.
#include <gtest/gtest.h>

#include "tests/unit/control/sci_rig.h"

namespace margay::control {
namespace {

using test::SciRig;
using test::two_instances;

using enum HealthState;

TEST(Sci, AReloadKeepsHealthAndAddsAndRemoves) {
  SciRig r;
  r.settle();
  r.behaviours["si-2"].liveness = Outcome::kFail;
  r.run_for(9 * kSecond);
  r.forget();
  SciSpec config = two_instances();
  config.instances[1].weight = 3;
  config.instances.push_back({.id = "si-3", .address = "10.1.0.13", .port = 8080, .max_sessions = 50});
  r.handle(ConfigChanged{config});
  EXPECT_EQ(r.state_of("si-1"), kHealthy);
  EXPECT_EQ(r.state_of("si-2"), kUnhealthy);
  EXPECT_EQ(r.state_of("si-3"), kUnknown);
  ASSERT_EQ(r.tables.size(), 1u);
  EXPECT_EQ(r.tables[0].second.changed.size(), 2u);  // si-2's weight, si-3
  r.run_for(3 * kSecond);
  EXPECT_EQ(r.sci.state().gas->value, 250u);

  config.instances.erase(config.instances.begin());
  r.handle(ConfigChanged{config});
  EXPECT_EQ(r.tables.back().second.removed, std::vector<std::string>{"si-1"});
  r.run_for(kSecond);
  EXPECT_EQ(r.last().trigger, Trigger::kHealth);
  EXPECT_EQ(r.last().state.gas->value, 50u);
  r.forget();
  r.run_for(60 * kSecond);
  for (const auto& [at, probe] : r.probes) EXPECT_NE(probe.id, "si-1");
}

TEST(Sci, AReloadWithoutTheProbeThatFailedAsksTheOtherAtTheConfirmInterval_D24) {
  SciSpec config = two_instances();
  config.health.readiness = ProbeConfig{.http = "x", .interval = 3600 * kSecond};
  SciRig r(config);
  r.settle();
  r.behaviours["si-1"].liveness = Outcome::kFail;
  r.run_for(9 * kSecond);
  ASSERT_EQ(r.state_of("si-1"), kUnhealthy);
  config.health.liveness.reset();
  r.handle(ConfigChanged{config});
  r.run_for(10 * kSecond);
  EXPECT_EQ(r.state_of("si-1"), kHealthy);
}

// At another address answers another instance: nobody has confirmed it yet.
TEST(Sci, AReloadThatMovesAnInstanceBeginsItAnew_SCI60) {
  SciRig r;
  r.settle();
  r.behaviours["si-1"].hangs = true;
  r.run_for(7 * kSecond);  // a probe of the old address is in flight
  const auto asked =
      std::find_if(r.probes.rbegin(), r.probes.rend(), [](const auto& p) { return p.second.id == "si-1"; });
  ASSERT_NE(asked, r.probes.rend());
  r.forget();
  SciSpec config = two_instances();
  config.instances[0].address = "10.1.0.99";
  r.handle(ConfigChanged{config});
  EXPECT_EQ(r.state_of("si-1"), kUnknown);
  ASSERT_EQ(r.tables.size(), 1u);
  EXPECT_EQ(r.tables[0].second.removed, std::vector<std::string>{"si-1"});
  ASSERT_EQ(r.tables[0].second.changed.size(), 1u);
  EXPECT_EQ(r.tables[0].second.changed[0],
            (TableChanged::Entry{.id = "si-1", .health = kUnknown, .health_since = r.now, .weight = 1}));
  r.behaviours["si-1"].hangs = false;
  r.run_for(4 * kSecond);
  EXPECT_EQ(r.state_of("si-1"), kHealthy);
  for (const auto& [at, probe] : r.probes) {
    if (probe.id == "si-1") {
      EXPECT_EQ(probe.address, "10.1.0.99");
    }
  }
}

TEST(Sci, AReloadThatTakesTheLastServingInstanceIsAllDown_SCI106) {
  SciRig r;
  r.settle();
  r.behaviours["si-2"].liveness = Outcome::kFail;
  r.run_for(9 * kSecond);
  r.forget();
  SciSpec config = two_instances();
  config.instances.erase(config.instances.begin());
  r.handle(ConfigChanged{config});
  ASSERT_EQ(r.reports.size(), 1u);
  EXPECT_EQ(r.last().trigger, Trigger::kAllDown);
  EXPECT_EQ(r.last().state.gas->value, 0u);
}

TEST(Sci, AHundredReloadsOfTheSameFileChangeNothing) {
  SciRig reloaded, untouched;
  for (SciRig* r : {&reloaded, &untouched}) r->settle();
  for (int i = 0; i < 100; ++i) {
    reloaded.handle(ConfigChanged{two_instances()});
    reloaded.run_for(kSecond);
    untouched.run_for(kSecond);
  }
  EXPECT_EQ(reloaded.probes.size(), untouched.probes.size());
  EXPECT_EQ(reloaded.reports.size(), untouched.reports.size());
  EXPECT_TRUE(reloaded.transitions.empty());
  EXPECT_TRUE(reloaded.tables.empty());
}

}  // namespace
}  // namespace margay::control
