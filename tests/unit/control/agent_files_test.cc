// SPDX-License-Identifier: Apache-2.0
// What the C-SMA and a C-PS write down, and nonces that never come twice (CSMA-144, CSMA-146).
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "control/agent/agent_state.h"
#include "control/agent/sealer.h"
#include "control/cps/state_wire.h"
#include "control/northbound/wire/envelope.h"
#include "tests/support/temp_folder.h"

namespace margay::control {
namespace {

c_sma::SavedState c_sma_state() {
  c_sma::SavedState state{.saved_ms = 1'700'000'000'250, .orders = {}, .entries = {}};
  state.orders = {{"192.0.2.10:80", {1'700'000'000'000, 7}}, {"b", {1, 0}}};
  c_sma::SavedEntry full;
  full.csci_id = "192.0.2.10:80";
  full.cs_id = "ARS";
  full.identity = "CN=sci-1";
  full.metrics = {.gas = 0,
                  .computing_time_ms = 5,
                  .computing_time_minimum_ms = 1,
                  .computing_time_maximum_ms = 9,
                  .price = 3,
                  .reputation = 0,
                  .security_level = 10};
  full.health = {.healthy = 1, .degraded = 2, .unhealthy = 3, .unknown = 1};
  full.admin = Admin::kDraining;
  full.reporting_interval = 60 * kSecond;
  full.age = 1'500 * kMillisecond;
  c_sma::SavedEntry bare;
  bare.csci_id = "b";
  bare.cs_id = "VRS";
  state.entries = {full, bare};
  return state;
}

TEST(AgentState, ComesBackAsItWas) {
  const auto back = agent_state_of(bytes_of(c_sma_state()));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(*back, c_sma_state());
}

TEST(AgentState, WhatIsNoneIsRefused) {
  EXPECT_EQ(agent_state_of("\xff").error().message, "is no margay.v1.CSmaState");
  c_sma::SavedState odd = c_sma_state();
  odd.entries[0].admin = static_cast<Admin>(9);
  EXPECT_EQ(agent_state_of(bytes_of(odd)).error().message, "entries.admin: expected one of its words");
  odd = c_sma_state();
  odd.entries[0].health.unknown = 4;  // of 3 that are unhealthy
  EXPECT_EQ(agent_state_of(bytes_of(odd)).error().message,
            "entries.health.unknown: expected at most as many as unhealthy");
}

TEST(CpsState, ComesBackAsItWas) {
  cps::SavedState state{.unix_ms = 1'700'000'000'000, .sites = {}};
  cps::SavedSite& site = state.sites.emplace_back();
  site.c_sma = "edge-1";
  site.epoch = 9;
  site.nonces = {{"k1", 77}};
  cps::SavedPart& part = site.parts.emplace_back();
  part.cs_id = "ARS";
  part.position = northbound::RowVersion{9, 4};
  northbound::Row row;
  row.key = {"ARS", "192.0.2.10:80"};
  row.version = {9, 4};
  row.metrics.gas = 400;
  row.source = northbound::SourceState::kHealthy;
  row.measured_at = 3 * kSecond;  // an age
  row.valid_for = 180 * kSecond;
  part.rows = {{.row = row, .received_ago = kSecond}};
  part.tombstones = {{{"ARS", "gone"}, {9, 3}, northbound::WithdrawReason::kFailed}};
  const auto back = cps::state_of(cps::bytes_of(state, 1000 * kSecond), 5 * kSecond);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(*back, state);
  EXPECT_EQ(cps::state_of("\xff", 0).error().message, "is no margay.v1.CPsState");
}

// The clock began in 1970 and was set to 2026 between two processes: what is written then can be read again.
TEST(CpsState, AnAgeOfDecadesIsNoReasonToForgetTheRest) {
  cps::SavedPart part{"ARS", {}, {}, {}, {}};
  part.rows = {{.row = {{"ARS"}, {9, 4}}, .received_ago = kSecond}};
  part.rows[0].row.valid_for = kSecond;
  const cps::SavedState state{0, {{"edge-1", 9, {part}, {{"k1", 77}}}}};
  const Time now{5 * kSecond, 1'790'000'000'000};
  cps::ServiceTable table;
  cps::Peers peers;
  ASSERT_TRUE(cps::restore(state, now, table, peers));
  const auto back = cps::state_of(cps::bytes_of(cps::save(table, peers, now), now.monotonic), now.monotonic);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->sites[0].nonces, state.sites[0].nonces);
  EXPECT_GE(back->sites[0].parts[0].rows[0].received_ago, 365 * 24 * 3600 * kSecond);
  EXPECT_EQ(table.aged(now.monotonic), 1u);
}

uint64_t nonce_of(Sealer& sealer) {
  northbound::Message message;
  message.header = {northbound::Direction::kToCPs, "edge-1", "cps", std::string(16, 'c'), 1, 0, 0, 1'700'000'000'000};
  message.body = northbound::Keepalive{};
  const auto sealed = sealer.seal(message, 0);
  EXPECT_TRUE(sealed);
  if (!sealed) return 0;
  const auto opened =
      northbound::open(*sealed, {.find_key = [](const auto&) { return nullptr; }, .accept_unsigned = true}, 0);
  const auto* good = std::get_if<northbound::Opened>(&opened);
  EXPECT_NE(good, nullptr);
  return good == nullptr ? 0 : good->message.header.nonce;
}

TEST(Sealer, NoNonceComesTwiceWhateverIsLost) {
  const test::TempFolder folder;
  uint64_t last = 0;
  const auto rises = [&](int64_t unix_ms) {
    auto sealer = Sealer::open({}, folder.path(), unix_ms);
    ASSERT_TRUE(sealer) << sealer.error().message;
    for (int i = 0; i < 3; ++i) {
      const uint64_t nonce = nonce_of(**sealer);
      EXPECT_GT(nonce, last);
      last = nonce;
    }
  };
  rises(1'700'000'000'000);
  rises(1'700'000'000'000);  // another process
  rises(1'600'000'000'000);  // the clock went back
  std::ofstream(folder.path() + "/nonces") << "damaged";
  rises(1'700'000'000'100);  // the clock makes up for the file
}

TEST(Sealer, WithoutADiskThereIsNoNonceAndNoMessage) {
  const test::TempFolder folder;
  std::filesystem::create_directory(folder.path() + "/nonces.new");
  auto sealer = Sealer::open({}, folder.path(), 0);
  ASSERT_TRUE(sealer);
  EXPECT_FALSE((*sealer)->seal({}, 0));
}

}  // namespace
}  // namespace margay::control
