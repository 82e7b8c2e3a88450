// SPDX-License-Identifier: Apache-2.0
// Instances that fall silent together, and probes that no data plane lets through.
#include <gtest/gtest.h>

#include <optional>

#include "tests/unit/control/sci_rig.h"

namespace margay::control {
namespace {

using test::SciRig;
using test::two_instances;

using enum HealthState;

// D-29, D-51, D-23: a broken prober must not reset a whole site.
class Silence : public testing::Test {
 protected:
  explicit Silence(size_t instances = 4) {
    SciSpec config = two_instances();
    for (size_t n = 3; n <= instances; ++n) {
      config.instances.push_back(config.instances[0]);
      config.instances.back().id = "si-" + std::to_string(n);
    }
    rig.emplace(config);
    rig->settle();
  }
  void fall_silent(std::initializer_list<const char*> who, bool silent = true) {
    for (const char* id : who) {
      rig->behaviours[id].liveness = Outcome::kFail;
      rig->behaviours[id].silent = silent;
    }
  }
  size_t count(HealthState state) {
    size_t n = 0;
    for (const InstanceDetail& i : rig->sci.state().instances) n += i.health == state ? 1 : 0;
    return n;
  }

  std::optional<SciRig> rig;
};

TEST_F(Silence, OfHalfTheInstancesIsTheProbersFor30Seconds_D29_D51_D23) {
  fall_silent({"si-1", "si-2", "si-3", "si-4"});
  rig->run_for(15 * kSecond);
  EXPECT_EQ(count(kUnknown), 4u);
  EXPECT_EQ(rig->first_with(Trigger::kAllDown)->state.gas->value, 0u) << "nobody is sent there meanwhile";
  rig->run_for(30 * kSecond);
  EXPECT_EQ(count(kUnhealthy), 4u) << "bounded in time";
}

TEST_F(Silence, OfFewIsTheirOwn_D51) {
  fall_silent({"si-1", "si-2"});
  rig->run_for(15 * kSecond);
  EXPECT_EQ(count(kUnhealthy), 2u);
  EXPECT_EQ(count(kHealthy), 2u);
}

TEST_F(Silence, OneAfterTheOtherIsTheirOwn_D51) {
  for (const char* id : {"si-1", "si-2", "si-3", "si-4"}) {
    fall_silent({id});
    rig->run_for(15 * kSecond);
  }
  EXPECT_EQ(count(kUnhealthy), 4u);
}

TEST_F(Silence, ARefusalIsNone_D54) {
  fall_silent({"si-1", "si-2", "si-3", "si-4"}, false);
  rig->run_for(15 * kSecond);
  EXPECT_EQ(count(kUnhealthy), 4u);
}

// A probe goes through the data plane: what began while that was away fails for it, even if it is told afterwards.
TEST(Sci, AProbeThatBeganWithoutADataPlaneTellsNothing_D23) {
  SciSpec config = two_instances();
  config.health.liveness->fall = 1;
  SciRig rig(config);
  rig.settle();
  rig.behaviours["si-1"].hangs = true;
  rig.handle(DataPlaneLost{"frozen"});
  rig.forget();
  const auto begun = [&] { return !rig.probes.empty() && rig.probes.back().second.id == "si-1"; };
  while (!begun()) rig.run_for(100 * kMillisecond);
  const ProbeRequest probe = rig.probes.back().second;
  rig.handle(DataPlaneBack{});
  rig.ledger({});
  rig.run_for(500 * kMillisecond);
  rig.handle(CheckResult{probe.id, probe.kind, probe.serial, Outcome::kFail, kSecond, "Timeout was reached", true});
  EXPECT_EQ(rig.state_of("si-1"), kHealthy);
  rig.behaviours["si-1"].hangs = false;
  rig.behaviours["si-1"].liveness = Outcome::kFail;
  rig.run_for(6 * kSecond);
  EXPECT_EQ(rig.state_of("si-1"), kUnhealthy) << "what began with it tells again";
}

// Too short to be lost: what was under way meanwhile may have failed for it.
TEST(Sci, AProbeDuringWhichTheDataPlaneStoodStillTellsNothing_D23) {
  for (const bool stood_still : {true, false}) {
    SciSpec config = two_instances();
    config.health.liveness->fall = 1;
    SciRig rig(config);
    rig.settle();
    rig.behaviours["si-1"].hangs = true;
    const auto begun = [&] { return !rig.probes.empty() && rig.probes.back().second.id == "si-1"; };
    while (!begun()) rig.run_for(100 * kMillisecond);
    const ProbeRequest probe = rig.probes.back().second;
    rig.run_for(500 * kMillisecond);
    rig.handle(LedgerSample{.instances = {}, .stood_still = stood_still});
    rig.run_for(400 * kMillisecond);
    rig.handle(CheckResult{probe.id, probe.kind, probe.serial, Outcome::kFail, kSecond, "Timeout was reached", true});
    EXPECT_EQ(rig.state_of("si-1"), stood_still ? kHealthy : kUnhealthy);
  }
}

// Frozen or started anew, the data plane lets no probe through: that is to end no session and stop no new one.
TEST(Sci, FailuresWithoutADataPlaneAreNotTheInstances_D23) {
  for (const Outcome outcome : {Outcome::kFail, Outcome::kError}) {
    SciRig r;
    r.settle();
    r.handle(DataPlaneLost{"frozen"});
    r.forget();
    r.behaviours["si-1"].liveness = outcome;
    r.behaviours["si-2"].hangs = true;
    r.run_for(60 * kSecond);
    EXPECT_TRUE(r.transitions.empty());
    r.behaviours["si-2"] = {};
    r.handle(DataPlaneBack{});
    r.ledger({});
    EXPECT_EQ(r.last().state.gas->value, 400u);
    r.run_for(60 * kSecond);
    EXPECT_EQ(r.state_of("si-1"), outcome == Outcome::kFail ? kUnhealthy : kUnknown);  // judged again
    EXPECT_EQ(r.state_of("si-2"), kHealthy);
  }
}

}  // namespace
}  // namespace margay::control
