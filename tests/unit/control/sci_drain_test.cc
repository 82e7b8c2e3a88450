// SPDX-License-Identifier: Apache-2.0
// Drains of an instance and of a whole SCI (D-33): by our operator, by the data plane's, and over a restart.
#include <gtest/gtest.h>

#include "tests/unit/control/sci_rig.h"

namespace margay::control {
namespace {

using test::kBegin;
using test::SciRig;
using test::two_instances;

using enum HealthState;

TEST(Sci, DrainingIsCriticalAndNoHealthState_D33_D34) {
  SciRig r;
  r.settle();
  r.handle(OperatorDrain{"si-1", true});
  ASSERT_EQ(r.reports.size(), 1u);
  EXPECT_EQ(r.last().trigger, Trigger::kAdmin);
  EXPECT_EQ(r.last().state.gas->value, 200u);
  EXPECT_EQ(r.last().state.health.healthy, 2u);
  const TableChanged::Entry& told = r.tables.back().second.changed[0];
  EXPECT_EQ(told.id, "si-1");
  EXPECT_EQ(told.admin, Admin::kDraining);
  EXPECT_EQ(told.drain_deadline, r.now + 600 * kSecond);
  EXPECT_EQ(told.limit, 200u) << "by health alone: the data plane knows that it drains";
  r.handle(OperatorDrain{"si-1", true});
  EXPECT_EQ(r.reports.size(), 1u);
  r.handle(OperatorDrain{std::nullopt, true});
  EXPECT_EQ(r.last().state.admin, Admin::kDraining);
  EXPECT_EQ(r.last().state.gas->value, 0u);
  r.handle(OperatorDrain{std::nullopt, false});
  EXPECT_EQ(r.last().state.gas->value, 200u);
  r.handle(OperatorDrain{"si-1", false});
  EXPECT_EQ(r.last().state.gas->value, 400u);
}

TEST(Sci, ADrainSetInTheDataPlaneIsSeenInItsCounters_D33) {
  SciRig r;
  r.settle();
  r.handle(LedgerSample{{{"si-2", {.active = 3, .admin = Admin::kDraining}}}});
  EXPECT_EQ(r.last().trigger, Trigger::kAdmin);
  EXPECT_EQ(r.last().state.gas->value, 200u);
}

TEST(Sci, ADrainOutlivesTheControlPlane_D33) {
  SciRig r(two_instances(), {{"si-1", {kHealthy}, kBegin + 90 * kSecond}, {"si-2", {kHealthy}}});
  r.ledger({});
  EXPECT_EQ(r.last().state.gas->value, 200u);
  ASSERT_EQ(r.tables.size(), 1u);
  EXPECT_EQ(r.tables[0].second.changed[0].admin, Admin::kDraining);
  EXPECT_EQ(r.tables[0].second.changed[0].drain_deadline, kBegin + 90 * kSecond);
  EXPECT_EQ(r.tables[0].second.changed[1].admin, Admin::kEnabled);
  r.handle(OperatorDrain{"si-1", false});
  EXPECT_EQ(r.last().state.gas->value, 400u);
}

// Of a whole SCI that drained, one order ends the drain.
TEST(Sci, ADrainOfAllIsTheScis_D33) {
  SciRig r(two_instances(), {{"si-1", {kHealthy}, kBegin + 90 * kSecond}, {"si-2", {kHealthy}, kBegin + 90 * kSecond}});
  r.ledger({});
  EXPECT_EQ(r.last().state.admin, Admin::kDraining);
  EXPECT_EQ(r.last().state.gas->value, 0u);
  r.handle(OperatorDrain{std::nullopt, false});
  EXPECT_EQ(r.last().state.gas->value, 400u);
}

// An instance that the site file has since then was never told to drain.
TEST(Sci, ADrainOfAllThatWereThereIsNotThatOfANewOne_D33) {
  SciRig r(two_instances(), {{"si-1", {kHealthy}, kBegin + 90 * kSecond}});
  r.settle();
  EXPECT_EQ(r.sci.state().admin, Admin::kEnabled);
  EXPECT_EQ(r.sci.state().gas->value, 200u);
}

TEST(Sci, OneInstanceLeavesTheDrainOfAll_D33) {
  SciRig r;
  r.settle();
  r.handle(OperatorDrain{std::nullopt, true});
  r.handle(OperatorDrain{"si-1", false});
  EXPECT_EQ(r.last().trigger, Trigger::kAdmin);
  EXPECT_EQ(r.last().state.admin, Admin::kEnabled);
  EXPECT_EQ(r.last().state.gas->value, 200u);
  EXPECT_EQ(r.tables.back().second.changed.size(), 1u) << "si-2 drains on, until the same deadline";
  r.handle(OperatorDrain{"si-2", false});
  EXPECT_EQ(r.last().state.gas->value, 400u);
}

TEST(Sci, WhatTheDataPlanesOperatorEnablesStandsOverADrain_D33) {
  SciRig r;
  r.settle();
  r.handle(OperatorDrain{"si-1", true});
  r.handle(LedgerSample{{{"si-1", {.admin = Admin::kEnabled}}}});
  EXPECT_EQ(r.last().state.gas->value, 400u);
}

TEST(Sci, ADrainOfNobodyChangesNothing_D33) {
  SciRig r;
  r.settle();
  r.handle(OperatorDrain{"nobody", true});
  EXPECT_TRUE(r.reports.empty());
  EXPECT_TRUE(r.tables.empty());
}

}  // namespace
}  // namespace margay::control
