// SPDX-License-Identifier: Apache-2.0
#pragma once

// The control plane's end of the connection, on a clock of the test's, beside a stand-in for the data plane.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "control/table/data_plane_link.h"
#include "tests/support/fake_data_plane.h"
#include "tests/unit/control/table_plan_rig.h"

namespace margay::control {

inline constexpr Nanoseconds kStep = 100 * kMillisecond;

struct LinkRig {
  FakeDataPlane plane;
  TablePlan plan;
  Nanoseconds now = kSecond;
  std::optional<DataPlaneLink> link;
  std::vector<std::string> lost;
  int back = 0;
  std::map<std::string, LedgerSample> ledger;

  explicit LinkRig(std::vector<SciConfig> scis = {sci("a", {instance("x", 1), instance("y", 2)})}) {
    EXPECT_TRUE(plan.configure(scis));
    link.emplace(plane.path(), plan, -1, now);
  }
  void turn() {
    const DataPlaneLink::Turn t = link->poll(now);
    if (t.lost) lost.push_back(*t.lost);
    back += t.back ? 1 : 0;
    if (!t.ledger.empty()) ledger.clear();
    for (const auto& [name, sample] : t.ledger) ledger[name] = sample;
    link->flush(now);
  }
  // A step of time; `beats`: the workers make progress.
  void step(bool beats = true) {
    now += kStep;
    if (beats) plane.beat();
    turn();
  }
  void connect(const std::optional<Snapshot>& running = {}) {
    meet(running);
    ASSERT_TRUE(link->status().alive);
  }
  void meet(const std::optional<Snapshot>& running) {
    for (int n = 0; n < 40 && !plane.accept(); ++n) turn(), now += kStep;
    ASSERT_TRUE(plane.connected());
    plane.welcome(running);
    turn();
    ASSERT_TRUE(link->status().connected) << link->status().why;
    step();
  }
};

}  // namespace margay::control
