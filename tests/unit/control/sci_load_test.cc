// SPDX-License-Identifier: Apache-2.0
// What the data plane is told for balance: resource-aware (SCI-77), and what the SCI's policies keep from GAS (SCI-78).
#include <gtest/gtest.h>

#include "tests/unit/control/sci_rig.h"

namespace margay::control {
namespace {

using test::SciRig;
using test::two_instances;

SciSpec scraped(bool tells_load) {
  SciSpec config = two_instances();
  config.metrics.prometheus = "http://{address}:9100/metrics";
  config.metrics.interval = 4 * kSecond;
  config.tells_load = tells_load;
  return config;
}

// Of the last table that named it.
std::optional<TableChanged::Load> told(const SciRig& r, const std::string& id) {
  std::optional<TableChanged::Load> load;
  for (const auto& [at, table] : r.tables) {
    for (const TableChanged::Entry& e : table.changed) {
      if (e.id == id) load = e.load;
    }
  }
  return load;
}

TEST(SciLoad, TheMostWantedResourceWithTheSessionsOfThen_SCI77) {
  SciRig r(scraped(true));
  r.behaviours["si-1"].samples = {{Metric::kCpu, SampleKind::kGauge, 0.25},
                                  {Metric::kGpuMemory, SampleKind::kGauge, 0.75},
                                  {Metric::kQueueDepth, SampleKind::kGauge, 9},
                                  {Metric::kMemory, SampleKind::kGauge, 0.5}};
  r.behaviours["si-2"].samples = {{Metric::kCpu, SampleKind::kGauge, 1.5}};
  r.settle();
  r.ledger({{"si-1", 30}, {"si-2", 7}});
  r.run_for(6 * kSecond);
  const auto first = told(r, "si-1"), second = told(r, "si-2");
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->value, 0.75);
  EXPECT_EQ(first->active, 30u);
  EXPECT_EQ(first->lifetime, 12 * kSecond);  // three intervals
  const auto& [at, scrape] = r.scrapes.at(r.scrapes.size() - 1);
  EXPECT_EQ(told(r, scrape.id)->until, at + 12 * kSecond);
  EXPECT_EQ(second->value, 1);  // a share of one
  EXPECT_EQ(second->active, 7u);
}

TEST(SciLoad, NothingIsToldOfWhatDoesNotSayIt) {
  SciRig r(scraped(true));
  r.behaviours["si-1"].samples = {{Metric::kRequests, SampleKind::kGauge, 4}};
  r.behaviours["si-2"].scrape_ok = false;
  r.run_for(20 * kSecond);
  EXPECT_FALSE(told(r, "si-1"));
  EXPECT_FALSE(told(r, "si-2"));
}

TEST(SciLoad, NothingIsToldWhereNobodyAsks) {
  SciRig r(scraped(false));
  r.behaviours["si-1"].samples = r.behaviours["si-2"].samples = {{Metric::kCpu, SampleKind::kGauge, 0.25}};
  r.settle();
  r.run_for(60 * kSecond);
  EXPECT_TRUE(r.tables.empty());
}

// 40 instances scraped every 4 s, spread over these: one change of the table a second, not 10.
TEST(SciLoad, ManyAreToldTogether) {
  SciSpec config = scraped(true);
  config.instances.clear();
  for (int i = 0; i < 40; ++i) {
    config.instances.push_back(
        {.id = "si-" + std::to_string(i), .address = "10.1.0.11", .port = 80, .max_sessions = 9});
  }
  SciRig r(config);
  for (const auto& i : config.instances) r.behaviours[i.id].samples = {{Metric::kCpu, SampleKind::kGauge, 0.25}};
  r.settle();
  r.run_for(20 * kSecond);
  EXPECT_GE(r.scrapes.size(), 160u);
  EXPECT_LE(r.tables.size(), 21u);
  size_t entries = 0;
  for (const auto& [at, table] : r.tables) entries += table.changed.size();
  EXPECT_GE(entries, 160u) << "each is told again, for its age";
}

// An instance below the required level holds nothing that a flow could get, whatever weight the operator gives it.
TEST(SciLoad, WhatPoliciesBarIsInNoGas_SCI78) {
  SciSpec config = two_instances();
  config.instances[0].barred = true;
  SciRig r(config);
  r.settle();
  EXPECT_EQ(r.sci.state().gas->value, 200u);
  r.handle(LedgerSample{{{"si-1", {.weight = 3}}}});
  EXPECT_EQ(r.sci.state().gas->value, 200u);
  EXPECT_EQ(r.sci.state().health.healthy, 2u);
}

}  // namespace
}  // namespace margay::control
