// SPDX-License-Identifier: Apache-2.0
#include "control/northbound/core/row_store.h"

#include <gtest/gtest.h>

#include "tests/unit/control/northbound/rig.h"

namespace margay::northbound {
namespace {

using test::gone;
using test::sci_row;
using test::site_row;

TEST(RowStore, OneVersionForAllOfAChange) {
  RowStore store(7);
  EXPECT_EQ(store.commit({"ARS", {sci_row("ARS", "x"), site_row("ARS")}, {gone("ARS", "y")}}, true),
            (RowVersion{7, 1}));
  EXPECT_EQ(store.commit({"LLMS", {site_row("LLMS")}}, false), (RowVersion{7, 2}));
  const RowStore::Part& part = store.part("ARS");
  EXPECT_EQ(part.entries.at("x").row->version, (RowVersion{7, 1}));
  EXPECT_EQ(part.entries.at(std::nullopt).row->version, (RowVersion{7, 1}));
  EXPECT_EQ(part.entries.at("y").row, nullptr);
  EXPECT_EQ(part.entries.at("y").commit, 1u);
  EXPECT_EQ(part.rows, 2u);
  EXPECT_EQ(part.newest, 1u);
  EXPECT_EQ(part.newest_critical, 1u);
  EXPECT_EQ(store.part("LLMS").newest_critical, 0u);
  EXPECT_EQ(store.newest(), (RowVersion{7, 2}));
}

// D-13, CSMA-172: bounded by the keys, whatever comes.
TEST(RowStore, RowsMeetByTheirKey) {
  RowStore store(7);
  for (uint32_t gas = 1; gas <= 1000; ++gas) store.commit({"ARS", {sci_row("ARS", "x", gas)}}, false);
  const RowStore::Part& part = store.part("ARS");
  EXPECT_EQ(part.entries.size(), 1u);
  EXPECT_EQ(part.log.size(), 1u);
  EXPECT_EQ(part.entries.at("x").row->metrics.gas, 1000u);
  EXPECT_EQ(*part.log.begin(), std::pair(uint64_t{1000}, RowStore::CsciId("x")));
}

TEST(RowStore, DigestIsThatOfTheRowsThatAreThere) {
  RowStore store(7);
  store.commit({"ARS", {sci_row("ARS", "x"), sci_row("ARS", "y")}}, false);
  store.commit({"ARS", {sci_row("ARS", "x")}}, false);
  store.commit({"ARS", {}, {gone("ARS", "y")}}, true);
  EXPECT_EQ(store.part("ARS").digest, digest_of(RowKey{"ARS", "x"}, {7, 2}));
  store.commit({"ARS", {}, {gone("ARS", "x")}}, true);
  EXPECT_EQ(store.part("ARS").digest, Digest{});
  EXPECT_EQ(store.part("ARS").rows, 0u);
}

TEST(RowStore, TombstonesAreBoundedAndTheLowWaterTells) {
  RowStore store(7, 2);
  for (const char* id : {"a", "b", "c"}) store.commit({"ARS", {}, {gone("ARS", id)}}, true);
  const RowStore::Part& part = store.part("ARS");
  EXPECT_EQ(part.low_water, 1u);
  EXPECT_EQ(part.tombstones.size(), 2u);
  EXPECT_EQ(part.log.size(), 2u);
  EXPECT_FALSE(part.entries.contains("a"));
  store.commit({"ARS", {sci_row("ARS", "b")}}, false);  // back: no tombstone any more
  EXPECT_EQ(part.tombstones.size(), 1u);
  EXPECT_EQ(part.low_water, 1u);
}

}  // namespace
}  // namespace margay::northbound
