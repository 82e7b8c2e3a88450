// SPDX-License-Identifier: Apache-2.0
// What commands tell of who gets new flows (SCI-77, SCI-78): the site's settings, and what is known of instances.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/monotonic.h"
#include "tests/support/cli_plane.h"

namespace margay::test {
namespace {

using nlohmann::json;

// Of SCI 192.0.2.10:80; instance 1 is dearer, and below the level.
class CliSelection : public ::testing::Test {
 protected:
  CliSelection() : snapshot_(cli_.plane.complete()) {
    snapshot_.generation = 7;
    SciPolicy& policy = snapshot_.scis[0].policy;
    policy.balance = Balance::kResourceAware;
    policy.cheapest_first = true;
    policy.security_level_min = 4;
    instance(0).config.preference = 200;
    instance(0).config.price = 10;
    instance(0).config.security_level = 4;
    instance(1).config.price = 4'000'000'000;
    instance(1).config.security_level = 3;
  }
  shared_table::InstanceRecord& instance(size_t i) { return snapshot_.scis[0].instances[i]; }
  json show(const std::string& what) { return json::parse(cli_.run("show " + what, true)); }

  CliPlane cli_;
  shared_table::Snapshot snapshot_;
};

TEST_F(CliSelection, SCI78ShowConfigTellsThePolicies) {
  ASSERT_TRUE(cli_.plane.apply(snapshot_));
  const json config = show("config");
  EXPECT_EQ(config["scis"][0]["balance"], "resource-aware");
  EXPECT_EQ(config["scis"][0]["cheapest_first"], true);
  EXPECT_EQ(config["scis"][0]["security_level_min"], 4);
  EXPECT_EQ(config["scis"][1]["cheapest_first"], false);
  EXPECT_EQ(config["scis"][1]["security_level_min"], 0);
  EXPECT_EQ(config["instances"][0]["preference"], 200);
  EXPECT_EQ(config["instances"][0]["price"], 10);
  EXPECT_EQ(config["instances"][0]["security_level"], 4);
  EXPECT_EQ(config["instances"][1]["preference"], 100) << "the default";
  EXPECT_EQ(config["instances"][1]["price"], 4'000'000'000);
}

TEST_F(CliSelection, SCI78ShowInstanceTellsWhoIsBarred) {
  EXPECT_EQ(show("instance")["instances"][1]["barred"], false);
  ASSERT_TRUE(cli_.plane.apply(snapshot_));
  EXPECT_EQ(show("instance")["instances"][0]["barred"], false);
  EXPECT_EQ(show("instance")["instances"][1]["barred"], true);
}

// The load as it was reported, until it is too old.
TEST_F(CliSelection, SCI77ShowInstanceTellsTheLoad) {
  for (const Nanoseconds left : {8 * kSecond, Nanoseconds{0}}) {
    instance(0).load = 0.375;
    instance(0).load_until = monotonic_now() + left;
    instance(0).load_lifetime = 12 * kSecond;
    ASSERT_TRUE(cli_.plane.apply(snapshot_));
    ++snapshot_.generation;
    EXPECT_EQ(show("instance")["instances"][0]["load_percent"], left > 0 ? json(37.5) : json());
    EXPECT_EQ(show("instance")["instances"][1]["load_percent"], nullptr) << "nothing was reported";
  }
}

// Two workers' averages, as old as each other: 8 and 16 ms. After 30 s nothing is known.
TEST_F(CliSelection, SCI77ShowInstanceTellsTheRecentResponseTime) {
  EXPECT_EQ(show("instance")["instances"][1]["response_recent_ms"], nullptr);
  for (dp::WorkerIndex w = 0; w < CliPlane::kWorkers; ++w) {
    cli_.shared.counters(w, 1).generation.set(1);
    cli_.shared.add_response(w, 1, 8000u << w, dp::to_tick(CliPlane::kNow));
  }
  EXPECT_EQ(show("instance")["instances"][1]["response_recent_ms"], 12);
  EXPECT_EQ(show("instance")["instances"][0]["response_recent_ms"], nullptr);
  for (dp::WorkerIndex w = 0; w < CliPlane::kWorkers; ++w) {
    cli_.shared.times(w, 1).clear();
    cli_.shared.add_response(w, 1, 8000, dp::to_tick(CliPlane::kNow - 30 * kSecond));
  }
  EXPECT_EQ(show("instance")["instances"][1]["response_recent_ms"], nullptr);
}

}  // namespace
}  // namespace margay::test
