// SPDX-License-Identifier: Apache-2.0
// Snapshots of a control plane and an operator's commands on one running data plane.
#include "dataplane/data_plane.h"

#include <gtest/gtest.h>

#include "tests/support/cli_plane.h"

namespace margay::test {
namespace {

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

TEST_F(DataPlaneTest, EnableStandsOverADrainOfTheControlPlane) {
  Snapshot s = running();
  s.scis[0].instances[0].admin = Admin::kDraining;
  apply(s);
  EXPECT_EQ(instance(0).admin, Admin::kDraining);
  cli_.run("set instance 192.0.2.10:80 si-1 enable");
  EXPECT_EQ(instance(0).admin, Admin::kEnabled);
  cli_.run("clear instance 192.0.2.10:80 si-1");
  EXPECT_EQ(instance(0).admin, Admin::kDraining);
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
