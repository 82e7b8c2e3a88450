// SPDX-License-Identifier: Apache-2.0
#include "control/cps/core/service_table.h"

#include <gtest/gtest.h>

#include "tests/unit/control/northbound/rig.h"

namespace margay::cps {
namespace {

using northbound::Delta;
using northbound::Digest;
using northbound::NackCode;
using northbound::Row;
using northbound::RowKey;
using northbound::RowVersion;
using northbound::View;
using northbound::Withdrawal;
using northbound::WithdrawReason;
using northbound::test::site_row;
using northbound::test::versioned;

const std::string kA = "c-sma.a", kB = "c-sma.b";

Withdrawal gone(const std::string& csci_id, RowVersion version) {
  return {RowKey{"ARS", csci_id}, version, WithdrawReason::kFailed};
}

struct ServiceTableTest : testing::Test {
  ServiceTableTest() {
    table.begin_session(kA, 7, {"ARS", "LLMS"});
    table.begin_session(kB, 3, {"ARS"});
  }
  std::vector<Refusal> apply(std::vector<Row> rows, std::vector<Withdrawal> withdrawals, RowVersion after,
                             RowVersion through, Nanoseconds now = 0) {
    return table.apply(kA, Delta{{"ARS", std::move(rows), std::move(withdrawals)}, after, through}, nullptr, now);
  }
  // A whole snapshot of these CS-IDs.
  std::vector<Refusal> snapshot(const std::vector<Row>& rows, RowVersion version,
                                std::vector<std::string> cs_ids = {"ARS"}, Nanoseconds now = 0) {
    Staged staged{{1, version, rows.size(), std::move(cs_ids)}, {}, {}, {}};
    for (const Row& r : rows) staged.rows.emplace(r.key, r);
    return table.apply(kA, staged, now);
  }
  std::optional<RowVersion> version_of(const std::string& csci_id, const std::string& c_sma = kA) const {
    const HeldRow* held = table.find(c_sma, RowKey{"ARS", csci_id});
    return held == nullptr ? std::nullopt : std::optional(held->row.version);
  }
  const ServiceTable::Part& part() const { return table.sites().at(kA).parts.at("ARS"); }

  ServiceTable table{{4, 2}};
};

TEST_F(ServiceTableTest, TheNewerVersionStands) {  // CSMA-102
  apply({versioned("x", {7, 5})}, {}, {7, 0}, {7, 5});
  apply({versioned("x", {7, 4})}, {}, {7, 0}, {7, 5});
  EXPECT_EQ(version_of("x"), (RowVersion{7, 5}));
  EXPECT_EQ(table.ignored(), 1u);
  apply({versioned("x", {7, 6})}, {}, {7, 5}, {7, 6});
  EXPECT_EQ(version_of("x"), (RowVersion{7, 6}));
  EXPECT_EQ(part().digest, digest_of(RowKey{"ARS", "x"}, {7, 6}));
}

TEST_F(ServiceTableTest, NothingOldRevivesAWithdrawnRow) {
  apply({versioned("x", {7, 1})}, {}, {7, 0}, {7, 1});
  apply({}, {gone("x", {7, 2})}, {7, 1}, {7, 2});
  apply({versioned("x", {7, 1})}, {}, {7, 0}, {7, 1});
  EXPECT_EQ(version_of("x"), std::nullopt);
  apply({}, {gone("x", {7, 2})}, {7, 1}, {7, 2});  // idempotent
  apply({versioned("x", {7, 3})}, {}, {7, 2}, {7, 3});
  EXPECT_EQ(version_of("x"), (RowVersion{7, 3}));
  apply({}, {gone("x", {7, 2})}, {7, 1}, {7, 2});  // an old withdrawal takes nothing new
  EXPECT_EQ(version_of("x"), (RowVersion{7, 3}));
}

// Two tombstones are kept: the third pushes the first one below the floor, which is as good.
TEST_F(ServiceTableTest, NothingOldRevivesWhatIsForgotten) {
  for (uint64_t n = 1; n <= 3; ++n) apply({}, {gone("x" + std::to_string(n), {7, n})}, {7, n - 1}, {7, n});
  EXPECT_EQ(part().tombstones.size(), 2u);
  EXPECT_EQ(part().floor, (RowVersion{7, 1}));
  apply({versioned("x1", {7, 1})}, {}, {7, 0}, {7, 1});
  EXPECT_EQ(version_of("x1"), std::nullopt);
  apply({versioned("x1", {7, 4})}, {}, {7, 3}, {7, 4});
  EXPECT_EQ(version_of("x1"), (RowVersion{7, 4}));
}

// Rows of one delta are older than withdrawals of it: what these push out must not hide them.
TEST_F(ServiceTableTest, TombstonesOfADeltaDoNotHideItsRows) {
  apply({versioned("y", {7, 1})}, {gone("a", {7, 2}), gone("b", {7, 3}), gone("c", {7, 4})}, {7, 0}, {7, 4});
  EXPECT_EQ(version_of("y"), (RowVersion{7, 1}));
}

TEST_F(ServiceTableTest, PositionMovesByWhatJoinsIt) {
  EXPECT_TRUE(table.resume(kA).empty());
  apply({versioned("x", {7, 1})}, {}, {7, 0}, {7, 1});  // before any snapshot: what it joins is not known
  EXPECT_TRUE(table.resume(kA).empty());
  snapshot({versioned("x", {7, 1})}, {7, 1});
  EXPECT_EQ(part().position, (RowVersion{7, 1}));
  apply({versioned("x", {7, 2})}, {}, {7, 1}, {7, 2});
  EXPECT_EQ(part().position, (RowVersion{7, 2}));
  apply({versioned("x", {7, 9})}, {}, {7, 5}, {7, 9});  // 3 to 5 are missing
  EXPECT_EQ(part().position, (RowVersion{7, 2}));
  EXPECT_EQ(table.resume(kA), (std::vector<northbound::Position>{{"ARS", {7, 2}}}));
}

// Withdrawals behind a gap: what lies in the gap would not be believed any more, so nobody asks for it.
TEST_F(ServiceTableTest, PositionBelowTheFloorIsNoResumePoint) {
  snapshot({}, {7, 1});
  apply({}, {gone("a", {7, 7}), gone("b", {7, 8}), gone("c", {7, 9})}, {7, 5}, {7, 9});
  EXPECT_EQ(part().position, (RowVersion{7, 1}));
  EXPECT_EQ(part().floor, (RowVersion{7, 7}));
  EXPECT_TRUE(table.resume(kA).empty());
}

TEST_F(ServiceTableTest, ASnapshotDeletesOnlyWhatIsItsOwn) {
  apply({versioned("x", {7, 1}), versioned("y", {7, 3})}, {}, {7, 0}, {7, 3});
  table.apply(kA, Delta{{"LLMS", {versioned("x", {7, 1}, "LLMS")}}, {7, 0}, {7, 1}}, nullptr, 0);
  table.apply(kB, Delta{{"ARS", {versioned("x", {3, 1})}}, {3, 0}, {3, 1}}, nullptr, 0);
  snapshot({versioned("z", {7, 2})}, {7, 2});
  EXPECT_EQ(version_of("x"), std::nullopt);        // not in it
  EXPECT_EQ(version_of("y"), (RowVersion{7, 3}));  // newer than it
  EXPECT_EQ(version_of("z"), (RowVersion{7, 2}));
  EXPECT_NE(table.find(kA, RowKey{"LLMS", "x"}), nullptr);  // another CS-ID
  EXPECT_EQ(version_of("x", kB), (RowVersion{3, 1}));       // another C-SMA
  apply({versioned("x", {7, 1})}, {}, {7, 0}, {7, 1});
  EXPECT_EQ(version_of("x"), std::nullopt);  // nothing old revives what it deleted
}

TEST_F(ServiceTableTest, DeltasBetweenASnapshotsMessagesStand) {
  apply({versioned("x", {7, 1}), versioned("y", {7, 2})}, {}, {7, 0}, {7, 2});
  Staged staged{{1, {7, 2}, 2, {"ARS"}}, {}, {}, {}};
  table.apply(kA, Delta{{"ARS", {versioned("y", {7, 3})}, {gone("x", {7, 3})}}, {7, 2}, {7, 3}}, &staged, 0);
  EXPECT_EQ(part().position, std::nullopt);
  for (const Row& r : {versioned("x", {7, 1}), versioned("y", {7, 2})}) staged.rows.emplace(r.key, r);
  table.apply(kA, staged, 0);
  EXPECT_EQ(version_of("x"), std::nullopt);
  EXPECT_EQ(version_of("y"), (RowVersion{7, 3}));
  EXPECT_EQ(part().position, (RowVersion{7, 3}));
}

// More withdrawals than tombstones are kept, of rows that the snapshot still brings.
TEST_F(ServiceTableTest, TombstonesStandUntilTheSnapshotsEnd) {
  Staged staged{{1, {7, 5}, 3, {"ARS"}}, {}, {}, {}};
  std::vector<Withdrawal> withdrawals{gone("a", {7, 6}), gone("b", {7, 7}), gone("c", {7, 8})};
  table.apply(kA, Delta{{"ARS", {}, withdrawals}, {7, 5}, {7, 8}}, &staged, 0);
  for (const char* id : {"a", "b", "c"}) staged.rows.emplace(RowKey{"ARS", id}, versioned(id, {7, 5}));
  table.apply(kA, staged, 0);
  EXPECT_TRUE(part().rows.empty());
  EXPECT_EQ(part().tombstones.size(), 2u);
}

TEST_F(ServiceTableTest, RefusesBeyondItsRoomAndAppliesTheRest) {
  const auto refused = apply({versioned("a", {7, 1}), versioned("b", {7, 1}), versioned("c", {7, 1}),
                              versioned("d", {7, 1}), versioned("e", {7, 1})},
                             {gone("z", {7, 1})}, {7, 0}, {7, 1});
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_EQ(refused[0].code, NackCode::kTableFull);
  EXPECT_EQ(refused[0].row.key, (RowKey{"ARS", "e"}));
  EXPECT_EQ(part().rows.size(), 4u);
  EXPECT_TRUE(part().tombstones.contains("z"));
  EXPECT_TRUE(apply({versioned("a", {7, 2})}, {}, {7, 1}, {7, 2}).empty());  // no new place
  EXPECT_TRUE(apply({versioned("e", {7, 3})}, {gone("a", {7, 3})}, {7, 2}, {7, 3}).empty());
  EXPECT_TRUE(part().refused.empty());
}

TEST_F(ServiceTableTest, RefusesVersionsThatCannotBe) {
  EXPECT_EQ(apply({versioned("x", {8, 1})}, {}, {7, 0}, {7, 1}).at(0).code, NackCode::kWrongVersion);  // another epoch
  EXPECT_EQ(apply({versioned("x", {7, 2})}, {}, {7, 0}, {7, 1}).at(0).code,
            NackCode::kWrongVersion);  // above `through`
  EXPECT_EQ(snapshot({versioned("x", {7, 3})}, {7, 2}).at(0).code, NackCode::kWrongVersion);
  EXPECT_EQ(version_of("x"), std::nullopt);
}

TEST_F(ServiceTableTest, AResumePointIsNotClaimedOverWhatWasRefused) {
  snapshot({}, {7, 1});
  EXPECT_EQ(table.resume(kA).size(), 1u);
  apply({versioned("a", {7, 2}), versioned("b", {7, 2}), versioned("c", {7, 2}), versioned("d", {7, 2}),
         versioned("e", {7, 2})},
        {}, {7, 1}, {7, 2});
  EXPECT_TRUE(table.resume(kA).empty());
}

TEST_F(ServiceTableTest, AViewIsComparedWithoutWhatWasRefused) {
  snapshot({}, {7, 1});
  apply({versioned("a", {7, 2}), versioned("b", {7, 2}), versioned("c", {7, 2}), versioned("d", {7, 2}),
         versioned("e", {7, 2})},
        {}, {7, 1}, {7, 2});
  Digest digest;
  for (const char* id : {"a", "b", "c", "d"}) digest += digest_of(RowKey{"ARS", id}, {7, 2});
  EXPECT_TRUE(table.renew(kA, {{"ARS", {7, 2}}, View::Check{4, digest}}, true, 0));
  EXPECT_FALSE(table.renew(kA, {{"ARS", {7, 3}}, View::Check{4, digest}}, true, 0));  // not that far
  EXPECT_FALSE(table.renew(kA, {{"ARS", {7, 2}}, View::Check{5, digest}}, true, 0));
  EXPECT_FALSE(table.renew(kA, {{"ARS", {7, 2}}, View::Check{4, {}}}, true, 0));
  EXPECT_TRUE(table.renew(kA, {{"ARS", {7, 2}}, View::Check{4, {}}}, false, 0));
  EXPECT_TRUE(table.renew(kA, {{"ARS", {7, 2}}, {}}, true, 0));
}

TEST_F(ServiceTableTest, RowsAgeUnlessTheyAreRenewed) {  // D-41: 180 s
  snapshot({versioned("x", {7, 1})}, {7, 1}, {"ARS"}, 10 * kSecond);
  EXPECT_EQ(table.aged(190 * kSecond), 0u);
  EXPECT_EQ(table.aged(190 * kSecond + 1), 1u);
  EXPECT_TRUE(table.renew(kA, {{"ARS", {7, 1}}, {}}, true, 100 * kSecond));
  EXPECT_EQ(table.aged(280 * kSecond), 0u);
  EXPECT_EQ(table.aged(280 * kSecond + 1), 1u);
  EXPECT_NE(table.find(kA, RowKey{"ARS", "x"}), nullptr);  // it is shown
}

TEST_F(ServiceTableTest, ANewScopeTakesTheRowsOfTheOthersAway) {  // D-39: SCOPE
  apply({versioned("x", {7, 1})}, {}, {7, 0}, {7, 1});
  EXPECT_TRUE(table.begin_session(kA, 7, {"LLMS"}));
  EXPECT_EQ(version_of("x"), std::nullopt);
  EXPECT_EQ(table.sites().at(kA).rows, 0u);
  EXPECT_TRUE(table.begin_session(kA, 7, {"ARS", "LLMS"}));
  apply({versioned("x", {7, 1})}, {}, {7, 0}, {7, 1});
  EXPECT_EQ(version_of("x"), std::nullopt);  // nothing old revives it, a snapshot does
  snapshot({versioned("x", {7, 1})}, {7, 1});
  EXPECT_EQ(version_of("x"), (RowVersion{7, 1}));
}

TEST_F(ServiceTableTest, EpochsDoNotGoBack) {
  EXPECT_FALSE(table.begin_session(kA, 6, {"ARS"}));
  EXPECT_TRUE(table.begin_session(kA, 8, {"ARS"}));
  table.forget(kA);
  EXPECT_TRUE(table.begin_session(kA, 6, {"ARS"}));
}

}  // namespace
}  // namespace margay::cps
