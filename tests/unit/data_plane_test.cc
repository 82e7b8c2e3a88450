// SPDX-License-Identifier: Apache-2.0
// Snapshots of a control plane and an operator's commands on one running data plane.
#include "dataplane/data_plane.h"

#include <gtest/gtest.h>

#include "tests/support/cli_plane.h"

namespace margay::test {
namespace {

using shared_table::OperatorSetting;
using shared_table::Snapshot;

class DataPlaneTest : public ::testing::Test {
 protected:
  // What runs, as a complete snapshot of the next generation, with si-1 and si-2 of 192.0.2.10:80 at [0] and [1].
  Snapshot running() {
    Snapshot s = cli_.plane.complete();
    s.generation = cli_.plane.generation() + 1;
    return s;
  }
  void apply(const Snapshot& s) {
    const auto done = cli_.plane.apply(s);
    ASSERT_TRUE(done) << done.error().message;
    cli_.plane.begin_turn();
  }
  // No worker runs here, so every table is passed as soon as liburcu's thread gets to it.
  void await_passed() {
    UrcuQsbr::drain();
    ASSERT_EQ(cli_.plane.passed(), cli_.plane.table().version);
  }
  OperatorSetting setting(dp::InstanceIndex i) { return OperatorSetting::unpack(cli_.shared.settings[i].get()); }
  const dp::Instance& instance(dp::InstanceIndex i) { return cli_.plane.table().instances[i]; }

  CliPlane cli_;
};

TEST_F(DataPlaneTest, ASnapshotSetsHealthAndLimit) {
  Snapshot s = running();
  s.scis[0].instances[1].health = HealthState::kDegraded;
  s.scis[0].instances[1].limit = 50;
  apply(s);
  EXPECT_EQ(instance(1).health, HealthState::kDegraded);
  EXPECT_EQ(cli_.shared.slots.limit(1), 50u);
  EXPECT_EQ(cli_.shared.provisional.limit(1), 25u) << "D-45: half of it";
  EXPECT_EQ(cli_.shared.slots.limit(0), instance(0).limit) << "the others' are as before";
}

TEST_F(DataPlaneTest, ARefusedSnapshotChangesNothing) {
  Snapshot s = running();
  s.scis[0].instances[0].limit = 0;
  s.scis[0].instances[1].config.address = *IpAddress::parse("198.51.100.7");
  const uint64_t version = cli_.plane.table().version;
  const uint32_t limit = cli_.shared.slots.limit(0);
  EXPECT_FALSE(cli_.plane.apply(s));
  cli_.plane.begin_turn();
  EXPECT_EQ(cli_.plane.table().version, version);
  EXPECT_EQ(cli_.shared.slots.limit(0), limit);
}

TEST_F(DataPlaneTest, WhatTheOperatorSetStandsUntilItIsCleared) {
  cli_.run("set instance 192.0.2.10:80 si-2 max-sessions 40");
  cli_.run("set instance 192.0.2.10:80 si-2 disable");
  Snapshot s = running();
  s.scis[0].instances[1].health = HealthState::kDegraded;
  s.scis[0].instances[1].limit = s.scis[0].instances[1].config.max_sessions / 2;
  apply(s);
  EXPECT_EQ(instance(1).admin, Admin::kDisabled);
  EXPECT_EQ(instance(1).max_sessions, 40u);
  EXPECT_EQ(instance(1).limit, 20u) << "D-7: the factor of the operator's number";
  EXPECT_EQ(cli_.shared.slots.limit(1), 20u);
  cli_.run("clear instance 192.0.2.10:80 si-2");
  EXPECT_EQ(instance(1).admin, Admin::kEnabled);
  EXPECT_EQ(instance(1).limit, s.scis[0].instances[1].limit);
  EXPECT_EQ(cli_.shared.slots.limit(1), s.scis[0].instances[1].limit);
}

// D-7: HEALTHY the whole number, DEGRADED the factor of it, rounded down; whatever limit the control plane reckoned,
// who does not know of the operator's number. 0.29 * 100 is 29 and not 28.999...
TEST_F(DataPlaneTest, D7OfTheOperatorsNumber) {
  struct Row {
    HealthState health;
    uint32_t limit;  // of 100, as the control plane says
    uint32_t operators;
  };
  cli_.run("set instance 192.0.2.10:80 si-2 max-sessions 1000");
  for (const Row& row : {Row{HealthState::kHealthy, 100, 1000}, Row{HealthState::kDegraded, 29, 290},
                         Row{HealthState::kUnhealthy, 0, 0}, Row{HealthState::kUnknown, 0, 0}}) {
    Snapshot s = running();
    s.scis[0].policy.degradation_factor = 0.29;
    s.scis[0].instances[1].config.max_sessions = 1;
    s.scis[0].instances[1].health = row.health;
    s.scis[0].instances[1].limit = row.limit / 100;
    apply(s);
    EXPECT_EQ(cli_.shared.slots.limit(1), row.operators) << name_of(row.health);
    EXPECT_EQ(cli_.shared.provisional.limit(1), row.operators / 2) << name_of(row.health);
  }
}

// The control plane gives a draining instance no slots; the operator lets it take flows.
TEST_F(DataPlaneTest, EnableStandsOverADrainOfTheControlPlane) {
  Snapshot s = running();
  s.scis[0].instances[0].admin = Admin::kDraining;
  s.scis[0].instances[0].limit = 0;
  apply(s);
  EXPECT_EQ(instance(0).admin, Admin::kDraining);
  EXPECT_EQ(cli_.shared.slots.limit(0), 0u);
  cli_.run("set instance 192.0.2.10:80 si-1 enable");
  EXPECT_EQ(instance(0).admin, Admin::kEnabled);
  EXPECT_EQ(cli_.shared.slots.limit(0), 200u);
  EXPECT_EQ(setting(0), (OperatorSetting{.generation = 1, .admin = Admin::kEnabled, .max_sessions = {}, .weight = {}}));
  cli_.run("clear instance 192.0.2.10:80 si-1");
  EXPECT_EQ(instance(0).admin, Admin::kDraining);
  EXPECT_EQ(cli_.shared.slots.limit(0), 0u);
}

TEST_F(DataPlaneTest, TheControlPlaneSeesWhatTheOperatorSet) {
  cli_.run("set instance 192.0.2.10:80 si-2 max-sessions 40");
  cli_.run("set instance 192.0.2.10:80 si-2 disable");
  cli_.run("set instance 192.0.2.10:80 si-2 weight 0");
  EXPECT_EQ(setting(1), (OperatorSetting{.generation = 1, .admin = Admin::kDisabled, .max_sessions = 40, .weight = 0}));
  EXPECT_EQ(cli_.shared.settings[0].get(), 0u);
  apply(running());
  EXPECT_EQ(setting(1).max_sessions, 40u) << "a snapshot leaves it alone";
  cli_.run("clear instance 192.0.2.10:80 si-2");
  const OperatorSetting nothing_set{.generation = 1, .admin = {}, .max_sessions = {}, .weight = {}};
  EXPECT_EQ(setting(1), nothing_set);
  cli_.run("set instance 192.0.2.10:80 si-2 weight 3");
  Snapshot without = running();
  without.scis[0].instances.pop_back();
  apply(without);
  EXPECT_EQ(setting(1), nothing_set) << "it went with its instance, whose generation stays known";
}

class FirstSnapshotTest : public ::testing::Test {
 protected:
  Refusal refusal_of_a_new_flow() {
    const size_t w = cli_.receive(0, tcp("198.51.100.7:4000" + std::to_string(next_++), "192.0.2.10:80").flags(kSyn));
    return cli_.fast_paths[w]->trace(0).refused;
  }
  CliPlane cli_{true};
  int next_ = 0;
};

TEST_F(FirstSnapshotTest, NothingIsAdmittedBefore) {
  EXPECT_EQ(refusal_of_a_new_flow(), Refusal::kNoSnapshot) << "when_none_healthy: degraded does not let it in";
  for (dp::InstanceIndex i = 0; i < 3; ++i) {
    EXPECT_EQ(cli_.plane.table().instances[i].health, HealthState::kUnknown);
    EXPECT_EQ(cli_.shared.slots.limit(i), 0u);
  }
  EXPECT_EQ(cli_.plane.generation(), 0u) << "there is no snapshot to read back";
  EXPECT_EQ(cli_.run("set instance 192.0.2.10:80 si-1 drain"), "14: no control plane has told of its instances yet");
}

// The other way round than the site file has them, and while workers may still have an older table.
TEST_F(FirstSnapshotTest, GivesIndicesAsItLikes) {
  cli_.run("stop");
  cli_.run("start");
  Snapshot s = cli_.plane.complete();
  s.generation = 1;
  std::swap(s.scis[0].index, s.scis[1].index);
  uint32_t index = 3;
  for (auto& sci : s.scis) {
    for (auto& i : sci.instances) {
      i.index = --index;
      i.generation = 1;
      i.health = HealthState::kHealthy;
      i.limit = i.config.max_sessions;
    }
  }
  const auto done = cli_.plane.apply(s);
  ASSERT_TRUE(done) << done.error().message;
  cli_.plane.begin_turn();
  std::swap(s.scis[0], s.scis[1]);  // in the order of their indices
  EXPECT_EQ(cli_.plane.complete(), s);
  EXPECT_EQ(cli_.plane.table().instances[2].si_id, "si-1");
  EXPECT_EQ(cli_.shared.slots.limit(2), 200u);
  EXPECT_EQ(cli_.shared.slots.view(2).generation, 1);
  EXPECT_EQ(refusal_of_a_new_flow(), Refusal::kNone);
  EXPECT_EQ(cli_.shared.active(1) + cli_.shared.active(2), 1u);
}

TEST_F(FirstSnapshotTest, MayNameFewerThanTheSiteFile) {
  Snapshot s;
  s.generation = 1;
  ASSERT_TRUE(cli_.plane.apply(s));
  cli_.plane.begin_turn();
  EXPECT_EQ(cli_.plane.table().sci_by_name("192.0.2.10:80"), dp::kNoIndex);
  EXPECT_EQ(cli_.run("show sci", true).find("192.0.2.10"), std::string::npos);
}

TEST_F(DataPlaneTest, AnInstanceThatWentLeavesItsIndexOnceNobodyUsesIt) {
  Snapshot without = running();
  const auto old = without.scis[0].instances[1];
  without.scis[0].instances.pop_back();
  apply(without);
  EXPECT_TRUE(instance(old.index).gone);
  EXPECT_EQ(cli_.shared.slots.limit(old.index), 0u);
  await_passed();
  Snapshot with = running();
  with.scis[0].instances.push_back(old);
  with.scis[0].instances[1].config.id = "si-3";
  with.scis[0].instances[1].generation = 2;
  apply(with);
  EXPECT_EQ(instance(old.index).si_id, "si-3");
  EXPECT_EQ(cli_.shared.slots.view(old.index).generation, 2);
  EXPECT_EQ(cli_.shared.slots.view(old.index).free(), old.limit);
}

// Other tables that are on their way hold no index.
TEST_F(DataPlaneTest, AnIndexIsFreeOnceTheTableWithoutItHasPassed) {
  Snapshot with = running();
  Snapshot without = with;
  with.scis[0].instances[1].config.id = "si-3";
  with.scis[0].instances[1].generation = 2;
  const auto refused = [&] {
    with.generation = cli_.plane.generation() + 1;
    const auto done = cli_.plane.apply(with);
    return done ? "" : done.error().message;
  };
  const std::string in_use = "scis[192.0.2.10:80].instances[si-3]: index 1 is still in use by si-2";
  without.scis[0].instances.pop_back();
  UrcuQsbr::register_reader();
  apply(without);
  EXPECT_EQ(refused(), in_use) << "this reader has the table before it";
  UrcuQsbr::offline();
  await_passed();
  UrcuQsbr::online();
  apply(running());
  EXPECT_LT(cli_.plane.passed(), cli_.plane.table().version);
  EXPECT_EQ(refused(), "");
  UrcuQsbr::unregister_reader();
}

TEST_F(DataPlaneTest, ATurnSeesOneTable) {
  cli_.plane.begin_turn();
  const uint64_t version = cli_.plane.table().version;
  ASSERT_TRUE(cli_.plane.apply(running()));
  EXPECT_EQ(cli_.plane.table().version, version) << "a command goes on with the table that it began with";
  cli_.plane.begin_turn();
  EXPECT_EQ(cli_.plane.table().version, version + 1);
}

}  // namespace
}  // namespace margay::test
