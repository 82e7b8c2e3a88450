// SPDX-License-Identifier: Apache-2.0
#include "control/cps/core/saved_state.h"

#include <gtest/gtest.h>

#include "tests/unit/control/northbound/rig.h"

namespace margay::cps {
namespace {

using northbound::Delta;
using northbound::NonceWindow;
using northbound::Row;
using northbound::RowKey;
using northbound::RowVersion;
using northbound::test::sci_row;

constexpr int64_t kUnixMs = 1'700'000'000'000;

struct SavedStateTest : testing::Test {
  SavedStateTest() {
    table.begin_session("a", 7, {"ARS"});
    Staged staged{{1, {7, 1}, 1, {"ARS"}}, {}, {}, {}};
    Row row = sci_row("ARS", "x");
    row.version = {7, 1};
    row.measured_at = 90 * kSecond;
    staged.rows.emplace(row.key, row);
    table.apply("a", staged, 100 * kSecond);
    table.apply(
        "a", Delta{{"ARS", {}, {{RowKey{"ARS", "y"}, {7, 2}, northbound::WithdrawReason::kRevoked}}}, {7, 1}, {7, 2}},
        nullptr, 100 * kSecond);
    peers["a"].nonces[{"a", "k1"}].use(55);
  }
  SavedState saved() const { return save(table, peers, {110 * kSecond, kUnixMs}); }

  ServiceTable table;
  Peers peers;
};

// The next process' monotonic clock began anew; 20 s went by. Rows age through that.
TEST_F(SavedStateTest, RowsKeepTheirVersionsAndGrowOlder) {
  ServiceTable next;
  Peers known;
  ASSERT_TRUE(restore(saved(), {5 * kSecond, kUnixMs + 20'000}, next, known));
  const HeldRow* held = next.find("a", RowKey{"ARS", "x"});
  ASSERT_NE(held, nullptr);
  EXPECT_EQ(held->row.version, (RowVersion{7, 1}));
  EXPECT_EQ(5 * kSecond - held->row.measured_at, 40 * kSecond);  // 20 s old when saved
  EXPECT_EQ(5 * kSecond - held->received_at, 30 * kSecond);
  const ServiceTable::Part& part = next.sites().at("a").parts.at("ARS");
  EXPECT_EQ(part.digest, digest_of(RowKey{"ARS", "x"}, {7, 1}));
  EXPECT_EQ(part.tombstones.at("y"), (ServiceTable::Tombstone{{7, 2}, northbound::WithdrawReason::kRevoked}));
  EXPECT_EQ(next.resume("a"), (std::vector<northbound::Position>{{"ARS", {7, 2}}}));
  EXPECT_EQ(known.at("a").nonces.at({"a", "k1"}).judge(55), NonceWindow::Verdict::kRepeated);
  EXPECT_EQ(known.at("a").nonces.at({"a", "k1"}).judge(54), NonceWindow::Verdict::kRepeated);
}

TEST_F(SavedStateTest, RowsAgeAcrossTheRestart) {
  ServiceTable next;
  Peers known;
  // Received 10 s before it was saved; 180 s later it is 190 s: aged.
  ASSERT_TRUE(restore(saved(), {5 * kSecond, kUnixMs + 180'000}, next, known));
  EXPECT_EQ(next.aged(5 * kSecond), 1u);
  ServiceTable sooner;
  ASSERT_TRUE(restore(saved(), {5 * kSecond, kUnixMs + 160'000}, sooner, known));
  EXPECT_EQ(sooner.aged(5 * kSecond), 0u);
  EXPECT_EQ(sooner.aged(16 * kSecond), 1u);
}

TEST_F(SavedStateTest, AClockThatWentBackMakesNothingYounger) {
  ServiceTable next;
  Peers known;
  ASSERT_TRUE(restore(saved(), {5 * kSecond, kUnixMs - 3'600'000}, next, known));
  EXPECT_EQ(5 * kSecond - next.find("a", RowKey{"ARS", "x"})->received_at, 10 * kSecond);
}

TEST_F(SavedStateTest, WhatContradictsItselfIsRefusedWhole) {
  const auto error_of = [&](auto change) {
    SavedState state = saved();
    change(state.sites[0].parts[0]);
    ServiceTable next;
    Peers known;
    const auto done = restore(state, {5 * kSecond, kUnixMs}, next, known);
    EXPECT_TRUE(next.sites().empty());
    return done ? "" : done.error().message;
  };
  EXPECT_EQ(error_of([](SavedPart& p) { p.rows.push_back(p.rows[0]); }),
            "a: CS-ID ARS: a row that stands twice or is not its own");
  EXPECT_EQ(error_of([](SavedPart& p) { p.rows[0].row.key.cs_id = "LLMS"; }),
            "a: CS-ID ARS: a row that stands twice or is not its own");
  EXPECT_EQ(error_of([](SavedPart& p) { p.rows[0].row.version.epoch = 8; }),
            "a: CS-ID ARS: a row that stands twice or is not its own");
  EXPECT_EQ(error_of([](SavedPart& p) { p.tombstones[0].key.csci_id = "x"; }),
            "a: CS-ID ARS: a withdrawal that stands twice or is not its own");
}

}  // namespace
}  // namespace margay::cps
