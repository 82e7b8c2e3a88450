// SPDX-License-Identifier: Apache-2.0
#include "control/cps/core/select.h"

#include <gtest/gtest.h>

#include "tests/unit/control/northbound/rig.h"

namespace margay::cps {
namespace {

using northbound::Delta;
using northbound::Row;
using northbound::RowKey;
using northbound::test::sci_row;
using northbound::test::site_row;

struct SelectTest : testing::Test {
  void put(const std::string& c_sma, Row row) {
    table.begin_session(c_sma, 1, {"ARS"});
    row.version = {1, ++commit};
    table.apply(c_sma, Delta{{"ARS", {row}}, {1, 0}, {1, commit}}, nullptr, 0);
  }
  static Row sci(const std::string& csci_id, uint32_t gas, uint32_t computing_ms, uint32_t price) {
    Row row = sci_row("ARS", csci_id, gas);
    row.metrics.computing_time_ms = computing_ms;
    row.metrics.price = price;
    return row;
  }
  std::vector<Choice> choose(SelectRequest request, Nanoseconds now = 0) const {
    return select(
        table, request,
        [](const std::string&, const RowKey& key) -> std::optional<uint32_t> {
          if (key.csci_id == "unreached") return std::nullopt;
          return key.csci_id == "far" ? 100 : 10;
        },
        now);
  }
  static std::string text(const std::vector<Choice>& choices) {
    std::string out;
    for (const Choice& c : choices) {
      out += c.row.key.csci_id.value_or("(site)");
      if (c.passed_over != PassedOver::kNot) out += ":" + std::string(name_of(c.passed_over));
      out += " ";
    }
    return out;
  }

  ServiceTable table;
  uint64_t commit = 0;
};

// The workflow of the draft: GAS at least what is asked, Computing Time + network delay at most, cost nearest.
TEST_F(SelectTest, TheCostNearestToWhatIsAskedAmongThoseThatCan) {
  put("a", sci("cheap", 10, 20, 2));
  put("a", sci("near", 10, 20, 5));
  put("b", sci("dear", 10, 20, 7));
  put("b", sci("slow", 10, 80, 5));
  put("b", sci("far", 10, 20, 5));
  put("b", sci("small", 3, 20, 5));
  EXPECT_EQ(text(choose({"ARS", 4, 50, 5})), "near dear cheap small:too_few_slots slow:too_slow far:too_slow ");
}

TEST_F(SelectTest, DelayThenPriceWhereNoCostIsAsked) {
  put("a", sci("slow", 10, 30, 1));
  put("a", sci("dear", 10, 20, 9));
  put("a", sci("good", 10, 20, 2));
  put("a", sci("unreached", 10, 20, 1));
  EXPECT_EQ(text(choose({"ARS"})), "good dear slow unreached ");
  EXPECT_EQ(choose({"ARS"}).front().delay_ms, 30u);
}

TEST_F(SelectTest, TheEdgeOfTheDelayIsWithin) {
  put("a", sci("x", 1, 20, 1));
  EXPECT_EQ(text(choose({"ARS", 1, 30})), "x ");
  EXPECT_EQ(text(choose({"ARS", 1, 29})), "x:too_slow ");
}

TEST_F(SelectTest, EachReasonHasItsName) {
  const auto one = [&](auto change, SelectRequest request = {"ARS"}) {
    table = ServiceTable();
    Row row = sci("x", 10, 20, 1);
    change(row);
    put("a", row);
    return text(choose(request));
  };
  using northbound::SourceState;
  EXPECT_EQ(one([](Row&) {}), "x ");
  EXPECT_EQ(one([](Row& r) { r.source = SourceState::kFailed; }), "x:failed ");
  EXPECT_EQ(one([](Row& r) { r.source = SourceState::kStale; }), "x ");  // D-27: its last values stand
  EXPECT_EQ(one([](Row& r) { r.sci_health = HealthState::kUnhealthy; }), "x:unhealthy ");
  EXPECT_EQ(one([](Row& r) { r.sci_health = HealthState::kDegraded; }), "x ");
  EXPECT_EQ(one([](Row& r) { r.admin = Admin::kDraining; }), "x:draining_or_disabled ");
  EXPECT_EQ(one([](Row& r) { r.metrics.gas = 0; }), "x:no_gas ");
  EXPECT_EQ(one([](Row& r) { r.metrics.gas.reset(); }), "x:no_gas ");  // not known is not enough
  EXPECT_EQ(one([](Row& r) { r.metrics.computing_time_ms.reset(); }), "x ");
  EXPECT_EQ(one([](Row& r) { r.metrics.computing_time_ms.reset(); }, {"ARS", 1, 50}), "x:no_computing_time ");
  EXPECT_EQ(one([](Row& r) { r.key.csci_id = "unreached"; }, {"ARS", 1, 50}), "unreached:no_network_delay ");
  EXPECT_EQ(text(choose({"ARS"}, 181 * kSecond)), "unreached:aged ");
  EXPECT_EQ(text(choose({"LLMS"})), "");
}

TEST_F(SelectTest, ASiteRowCountsWhereTheSiteHasNoOthers) {  // D-40
  put("a", site_row("ARS", 50));
  EXPECT_EQ(text(choose({"ARS"})), "(site) ");
  put("a", sci("x", 10, 20, 1));
  EXPECT_EQ(text(choose({"ARS"})), "x (site):covered_by_its_scis ");
}

TEST_F(SelectTest, OfEqualsTheOneWithMoreSlots) {
  put("a", sci("few", 10, 20, 1));
  put("b", sci("many", 11, 20, 1));
  EXPECT_EQ(text(choose({"ARS"})), "many few ");
}

}  // namespace
}  // namespace margay::cps
