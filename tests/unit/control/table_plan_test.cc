// SPDX-License-Identifier: Apache-2.0
// From site and health to snapshots.
#include "control/table/table_plan.h"

#include <gtest/gtest.h>

#include "tests/unit/control/table_plan_rig.h"

namespace margay::control {
namespace {

// Commits what is pending; the data plane takes it, and every worker passes it.
void settle(TablePlan& plan, DataPlane& plane) {
  while (plan.pending()) {
    const Snapshot s = plan.next();
    ASSERT_EQ(plane.refusal(s), "");
    plan.committed(s);
    plane.apply(s);
    plan.taken();
    plan.acked(s.generation);
  }
}

TEST(TablePlan, TheFirstCommitIsCompleteAndTheNextTellsWhatChanged) {
  TablePlan plan;
  ASSERT_TRUE(plan.configure({sci("a", {instance("x", 1)}), sci("b", {instance("y", 2)})}));
  EXPECT_FALSE(plan.pending());  // nobody is there
  ASSERT_TRUE(plan.adopt({}, {.capacity = {1, 8, 8}}));
  ASSERT_TRUE(plan.pending());
  const Snapshot first = plan.next();
  EXPECT_EQ(first.generation, 1u);
  EXPECT_EQ(first.base, 0u);
  ASSERT_EQ(first.scis.size(), 2u);
  EXPECT_EQ(first.scis[0].instances[0].health, HealthState::kUnknown);
  EXPECT_EQ(first.scis[0].instances[0].limit, 0u);
  plan.committed(first);
  EXPECT_FALSE(plan.pending());
  plan.apply("b", health_of("y", HealthState::kHealthy, 100));
  EXPECT_FALSE(plan.pending());  // one at a time
  plan.taken();
  ASSERT_TRUE(plan.pending());
  const Snapshot second = plan.next();
  EXPECT_EQ(second.generation, 2u);
  EXPECT_EQ(second.base, 1u);
  ASSERT_EQ(second.scis.size(), 1u);
  EXPECT_EQ(second.scis[0].policy.csci_id, "b");
  EXPECT_EQ(second.scis[0].instances[0].health, HealthState::kHealthy);
  EXPECT_EQ(second.scis[0].instances[0].limit, 100u);
  EXPECT_TRUE(second.removed.empty());
}

TEST(TablePlan, AnScIThatGoesIsRemovedByItsIndex) {
  TablePlan plan;
  DataPlane plane;
  ASSERT_TRUE(plan.configure({sci("a", {instance("x", 1)}), sci("b", {instance("y", 2)})}));
  ASSERT_TRUE(plan.adopt({}, plane.counts()));
  settle(plan, plane);
  const uint32_t gone = plan.scis().at("a").index;
  ASSERT_TRUE(plan.configure({sci("b", {instance("y", 2)})}));
  ASSERT_TRUE(plan.pending());
  EXPECT_EQ(plan.next().removed, std::vector<uint32_t>{gone});
  EXPECT_TRUE(plan.next().scis.empty());
}

TEST(TablePlan, AnInstanceKeepsItsIndexAndAnotherAddressIsAnotherInstance) {
  TablePlan plan;
  DataPlane plane;
  ASSERT_TRUE(plan.configure({sci("a", {instance("x", 1), instance("y", 2)})}));
  ASSERT_TRUE(plan.adopt({}, plane.counts()));
  plan.apply("a", health_of("x", HealthState::kHealthy, 100));
  plan.apply("a", health_of("y", HealthState::kDegraded, 50));
  settle(plan, plane);
  const InstanceRecord x = record(plan, "a", "x"), y = record(plan, "a", "y");
  InstanceConfig smaller = instance("y", 2);
  smaller.max_sessions = 30;
  ASSERT_TRUE(plan.configure({sci("a", {smaller, instance("x", 9), instance("z", 3)})}));
  EXPECT_EQ(record(plan, "a", "y").index, y.index);
  EXPECT_EQ(record(plan, "a", "y").generation, y.generation);
  EXPECT_EQ(record(plan, "a", "y").health, HealthState::kDegraded);
  EXPECT_EQ(record(plan, "a", "y").limit, 30u);  // never above max_sessions
  EXPECT_NE(record(plan, "a", "x").index, x.index);
  EXPECT_EQ(record(plan, "a", "x").health, HealthState::kUnknown);
  settle(plan, plane);
}

TEST(TablePlan, AFreedIndexWaitsForWorkersAndBindings) {
  TablePlan plan;
  DataPlane plane;
  const CountersShape two{.workers = 1, .instances = 2, .scis = 2};
  ASSERT_TRUE(plan.configure({sci("a", {instance("x", 1), instance("y", 2)})}));
  ASSERT_TRUE(plan.adopt({}, plane.counts(two)));
  settle(plan, plane);
  const InstanceRecord x = record(plan, "a", "x");
  plane.instances[x.index].in_use = true;
  ASSERT_TRUE(plan.configure({sci("a", {instance("y", 2)})}));
  const Snapshot without = plan.next();
  plan.committed(without);
  plane.apply(without);
  plan.taken();
  const auto with_z = std::vector{sci("a", {instance("y", 2), instance("z", 3)})};
  plane.instances[x.index].in_use = false;
  EXPECT_FALSE(plan.configure(with_z));  // not every worker has passed it
  plan.acked(without.generation);
  plane.instances[x.index].in_use = true;
  const auto full = plan.configure(with_z);
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().message, "scis[a].instances[z]: the data plane has room for 2 instances, and none is left");
  EXPECT_EQ(plan.scis().at("a").instances.size(), 1u);  // whole or not at all
  plane.instances[x.index].in_use = false;
  ASSERT_TRUE(plan.configure(with_z));
  EXPECT_EQ(record(plan, "a", "z").index, x.index);
  EXPECT_EQ(record(plan, "a", "z").generation, x.generation + 1);
  settle(plan, plane);
}

TEST(TablePlan, TooManyIsAnErrorByName) {
  TablePlan plan;
  ASSERT_TRUE(plan.configure({sci("a", {instance("x", 1)}), sci("b", {})}));
  const auto adopted = plan.adopt({}, {.capacity = {1, 8, 1}});
  ASSERT_FALSE(adopted);
  EXPECT_EQ(adopted.error().message, "scis[b]: the data plane has room for 1 SCIs, and none is left");
  EXPECT_FALSE(plan.pending());
  ASSERT_TRUE(plan.configure({sci("a", {instance("x", 1)})}));
  EXPECT_TRUE(plan.pending());
}

TEST(TablePlan, WhatDoesNotFitABufferIsAnErrorByName) {
  TablePlan plan;
  std::vector<InstanceConfig> many;
  for (uint32_t n = 0; n < 60'000; ++n) {
    std::string id = std::to_string(n);
    id.resize(kIdBytesMax, '-');
    many.push_back(instance(id, 1));
  }
  const auto done = plan.configure({sci("small", {}), sci("x-large", many)});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message.substr(0, 14), "scis[x-large]:") << done.error().message;
}

TEST(TablePlan, AChangeOfModeIsAnotherSci) {
  TablePlan plan;
  DataPlane plane;
  ASSERT_TRUE(plan.configure({sci("a", {instance("x", 1)})}));
  ASSERT_TRUE(plan.adopt({}, plane.counts()));
  plan.apply("a", health_of("x", HealthState::kHealthy, 100));
  settle(plan, plane);
  const SciRecord before = plan.scis().at("a");
  SciConfig other = sci("a", {instance("x", 1)});
  other.mode = Mode::kL2Dsr;
  ASSERT_TRUE(plan.configure({other}));
  EXPECT_NE(plan.scis().at("a").index, before.index);
  EXPECT_NE(record(plan, "a", "x").index, before.instances[0].index);
  EXPECT_EQ(record(plan, "a", "x").health, HealthState::kHealthy);
  EXPECT_EQ(plan.next().removed, std::vector<uint32_t>{before.index});
}

TEST(TablePlan, ATakeOverKeepsPlacesAndKnowsHealthByAge) {
  TablePlan before;
  DataPlane plane;
  const SciConfig config = sci("a", {instance("x", 1), instance("y", 2), instance("z", 3)});
  ASSERT_TRUE(before.configure({config}));
  ASSERT_TRUE(before.adopt({}, plane.counts()));
  before.apply("a", health_of("y", HealthState::kUnhealthy, 0, 40 * kSecond));
  before.apply("a", {.changed = {{.id = "x",
                                  .health = HealthState::kDegraded,
                                  .health_since = 30 * kSecond,
                                  .serves_since = 10 * kSecond,
                                  .admin = Admin::kDraining,
                                  .drain_deadline = 90 * kSecond,
                                  .limit = 50,
                                  .weight = 1}},
                     .removed = {}});
  settle(before, plane);

  const SciConfig moved = sci("a", {instance("x", 1), instance("y", 2), instance("z", 4)});
  const std::vector<Sci::Known> known = known_of(plane.running(), moved, 50 * kSecond);
  ASSERT_EQ(known.size(), 2u);  // z is another one now
  EXPECT_EQ(known[0].id, "x");
  EXPECT_EQ(known[0].health.state, HealthState::kDegraded);
  EXPECT_EQ(known[0].health.age, 20 * kSecond);
  EXPECT_EQ(known[0].health.serves_age, 40 * kSecond);
  EXPECT_EQ(known[0].drain_deadline, 90 * kSecond);
  EXPECT_EQ(known[1].health.state, HealthState::kUnhealthy);
  EXPECT_EQ(known[1].health.age, 10 * kSecond);
  EXPECT_EQ(known_of(plane.running(), moved, kSecond)[0].health.age, 0u);  // a clock that lies

  TablePlan after;
  ASSERT_TRUE(after.configure({config}));
  ASSERT_TRUE(after.adopt(plane.running(), plane.counts()));
  EXPECT_EQ(complete(after).begin()->first, complete(before).begin()->first);
  for (const char* id : {"x", "y", "z"}) {
    EXPECT_EQ(record(after, "a", id).index, record(before, "a", id).index);
    EXPECT_EQ(record(after, "a", id).generation, record(before, "a", id).generation);
  }
  EXPECT_GT(after.next().generation, plane.generation);
  EXPECT_EQ(plane.refusal(after.next()), "");
}

// SCI-77: what an instance reported goes along, a change of the site leaves it, and it ends when it is told no more.
TEST(TablePlan, LoadIsPassedOn) {
  TablePlan plan;
  DataPlane plane;
  ASSERT_TRUE(plan.configure({sci("a", {instance("x", 1), instance("y", 2)})}));
  ASSERT_TRUE(plan.adopt({}, plane.counts()));
  TableChanged change = health_of("x", HealthState::kHealthy, 100);
  change.changed[0].load = {.value = 0.375, .active = 40, .until = 90 * kSecond, .lifetime = 12 * kSecond};
  plan.apply("a", change);
  const auto expect_load = [&](double load, uint32_t active, Nanoseconds until, Nanoseconds lifetime) {
    settle(plan, plane);
    const InstanceRecord& x = plane.scis.begin()->second.instances[0];
    EXPECT_EQ(x.load, load);
    EXPECT_EQ(x.load_active, active);
    EXPECT_EQ(x.load_until, until);
    EXPECT_EQ(x.load_lifetime, lifetime);
    EXPECT_EQ(plane.scis.begin()->second.instances[1].load_until, 0u) << "nothing is known of the other";
  };
  expect_load(0.375, 40, 90 * kSecond, 12 * kSecond);
  InstanceConfig larger = instance("x", 1);
  larger.max_sessions = 300;
  ASSERT_TRUE(plan.configure({sci("a", {larger, instance("y", 2)})}));
  ASSERT_TRUE(plan.pending());
  expect_load(0.375, 40, 90 * kSecond, 12 * kSecond);
  plan.apply("a", health_of("x", HealthState::kHealthy, 100));
  expect_load(0, 0, 0, 0);
}

TEST(TablePlan, ARefusedChangeOfTheSiteDoesNotHoldUpHealth) {
  TablePlan plan;
  DataPlane plane;
  ASSERT_TRUE(plan.configure({sci("a", {instance("x", 1)}), sci("b", {instance("y", 2)})}));
  ASSERT_TRUE(plan.adopt({}, plane.counts()));
  settle(plan, plane);
  const auto taken = plane.scis;
  ASSERT_TRUE(plan.configure({sci("a", {instance("x", 1), instance("new", 7)}), sci("c", {instance("z", 3)})}));
  const InstanceRecord offered = record(plan, "a", "new");
  plan.committed(plan.next());
  plan.refused();
  EXPECT_TRUE(plan.holds_back());
  EXPECT_NE(record(plan, "a", "new").index, offered.index);  // its place may have been the reason
  plan.apply("a", health_of("x", HealthState::kHealthy, 100));
  const Snapshot held = plan.next();
  EXPECT_EQ(held.base, 0u);
  auto expected = taken;
  expected.begin()->second.instances[0].health = HealthState::kHealthy;
  expected.begin()->second.instances[0].health_since = 5;
  expected.begin()->second.instances[0].limit = 100;
  ASSERT_EQ(plane.refusal(held), "");
  plane.apply(held);
  EXPECT_EQ(plane.scis, expected);
  plan.committed(held);
  plan.taken();
  plan.retry();
  settle(plan, plane);
  EXPECT_EQ(plane.scis, complete(plan));
}

}  // namespace
}  // namespace margay::control
