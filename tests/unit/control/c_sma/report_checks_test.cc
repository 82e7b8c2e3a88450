// SPDX-License-Identifier: Apache-2.0
#include "control/c_sma/report_checks.h"

#include <gtest/gtest.h>

#include "tests/unit/control/c_sma/c_sma_rig.h"

namespace margay::c_sma {
namespace {

using test::report_of;
using test::Said;

control::Report good() { return report_of("a", "ARS", 1, Said{}); }
std::optional<Refusal> format(const control::Report& r) {
  const auto judgement = check_format(r);
  return judgement ? judgement->refusal : std::nullopt;
}
bool in_range(const Said& said, const Ranges& ranges = registered_ranges()) {
  const auto judgement = check_ranges(report_of("a", "ARS", 1, said), ranges);
  EXPECT_TRUE(!judgement || judgement->refusal == Refusal::kOutOfRange);
  return !judgement;
}

TEST(MetricDefinitions, HoldTheRegistrysFieldsForEachMetric_D26) {
  for (size_t i = 0; i < kServiceMetrics; ++i) {
    const MetricDefinition& d = definition_of(static_cast<ServiceMetric>(i));
    for (const std::string_view field : {d.name, d.type, d.format, d.unit, d.source, d.statistics}) {
      EXPECT_FALSE(field.empty()) << i;
    }
    EXPECT_EQ(d.length, 4);
    EXPECT_EQ(registered_ranges()[i], d.range);
  }
  EXPECT_EQ(definition_of(ServiceMetric::kComputingTime).unit, "ms");
  EXPECT_EQ(definition_of(ServiceMetric::kSecurityLevel).name, "security_level");
}

TEST(Ranges, GasAndPriceTakeEvery32BitNumber_CSMA38_CSMA40) {
  EXPECT_TRUE(in_range({.gas = 0, .price = 0}));
  EXPECT_TRUE(in_range({.gas = 4294967295, .price = 4294967295}));
}

TEST(Ranges, ComputingTimeIsAtMostAnHour_CSMA39_CSMA43) {
  EXPECT_TRUE(in_range({.computing_time = 0}));
  EXPECT_TRUE(in_range({.computing_time = 3600000}));
  EXPECT_FALSE(in_range({.computing_time = 3600001}));
  for (auto bound : {&control::ComputingTime::minimum, &control::ComputingTime::maximum}) {
    control::Report r = good();
    r.state.computing_time.*bound = 3600001;
    EXPECT_TRUE(check_ranges(r, registered_ranges()));
  }
}

TEST(Ranges, ReputationAndSecurityLevelAreAtMostTen_CSMA41_CSMA42) {
  EXPECT_TRUE(in_range({.reputation = 10, .security_level = 10}));
  EXPECT_FALSE(in_range({.reputation = 11}));
  EXPECT_FALSE(in_range({.security_level = 11}));
}

TEST(Ranges, AbsentIsNotOutOfRange_D42) {
  Ranges ranges = registered_ranges();
  ranges[static_cast<size_t>(ServiceMetric::kGas)] = {1, 10};
  EXPECT_TRUE(in_range({.gas = {}}, ranges));
}

TEST(Ranges, AreConfigurable_CSMA36_CSMA44) {
  Ranges ranges = registered_ranges();
  ranges[static_cast<size_t>(ServiceMetric::kGas)] = {1, 10};
  EXPECT_FALSE(in_range({.gas = 0}, ranges));
  EXPECT_TRUE(in_range({.gas = 1}, ranges));
  EXPECT_TRUE(in_range({.gas = 10}, ranges));
  EXPECT_FALSE(in_range({.gas = 11}, ranges));
  ranges[static_cast<size_t>(ServiceMetric::kPrice)] = {0, 5};
  EXPECT_FALSE(in_range({.gas = 5, .price = 6}, ranges));
}

TEST(Ranges, TheRefusalNamesMetricValueAndRange_CSMA43) {
  const auto judgement = check_ranges(report_of("a", "ARS", 1, {.reputation = 11}), registered_ranges());
  EXPECT_EQ(judgement->detail, "reputation 11, expected 0 to 10");
}

TEST(Format, IdsHaveOneTo255Bytes_D25_CSMA55) {
  control::Report r = good();
  EXPECT_FALSE(format(r));
  r.csci_id = "";
  EXPECT_EQ(format(r), Refusal::kMalformed);
  r.csci_id = std::string(255, 'x');
  EXPECT_FALSE(format(r));
  r.csci_id = std::string(256, 'x');
  EXPECT_EQ(format(r), Refusal::kMalformed);
  r = good();
  r.cs_id = std::string(256, 'x');
  EXPECT_EQ(format(r), Refusal::kMalformed);
}

TEST(Format, SequenceTriggerIntervalAndBoundsMustBePossible_CSMA55) {
  control::Report r = good();
  r.sequence = 0;
  EXPECT_EQ(format(r), Refusal::kMalformed);
  r = good();
  r.trigger = static_cast<control::Trigger>(10);
  EXPECT_EQ(format(r), Refusal::kMalformed);
  r = good();
  r.reporting_interval = 86400 * kSecond;
  EXPECT_FALSE(format(r));
  r.reporting_interval += 1;
  EXPECT_EQ(format(r), Refusal::kMalformed);
  r = good();
  r.state.computing_time.minimum = 10;
  r.state.computing_time.maximum = 10;
  EXPECT_FALSE(format(r));
  r.state.computing_time.maximum = 9;
  EXPECT_EQ(format(r), Refusal::kMalformed);
}

TEST(Format, UnknownInstancesAreAmongTheUnhealthyOnes_D6) {
  control::Report r = good();
  r.state.health = {1, 0, 2, 2};
  EXPECT_FALSE(format(r));
  r.state.health = {1, 0, 2, 3};
  EXPECT_EQ(format(r), Refusal::kInconsistentCounts);
}

TEST(Format, AFullReportsDetailsAreWhatItsSummaryCounts_SCI118_SCI120) {
  control::Report r = good();
  r.state.health = {1, 1, 1, 1};
  r.state.instances = {{"a", HealthState::kHealthy, Admin::kEnabled, 1, 0},
                       {"b", HealthState::kDegraded, Admin::kEnabled, 1, 0},
                       {"c", HealthState::kUnknown, Admin::kEnabled, 1, 0}};
  EXPECT_FALSE(format(r));
  r.state.instances[2].health = HealthState::kUnhealthy;
  EXPECT_EQ(format(r), Refusal::kInconsistentCounts);  // none is unknown
  r.state.instances.pop_back();
  EXPECT_EQ(format(r), Refusal::kInconsistentCounts);
  r.full = false;  // a delta leaves out what is as it was
  EXPECT_FALSE(format(r));
  r.state.instances[1].health = HealthState::kHealthy;
  EXPECT_EQ(format(r), Refusal::kInconsistentCounts);  // two healthy ones of one
  r.full = true;
  r.state.instances.clear();  // details are optional
  EXPECT_FALSE(format(r));
}

TEST(Format, AnInstanceComesOnceAndHasAName_SCI120) {
  control::Report r = good();
  r.state.health = {2, 0, 0, 0};
  r.state.instances = {{"a", HealthState::kHealthy, Admin::kEnabled, 1, 0},
                       {"a", HealthState::kHealthy, Admin::kEnabled, 1, 0}};
  EXPECT_EQ(format(r), Refusal::kMalformed);
  r.state.instances[1].id = "";
  EXPECT_EQ(format(r), Refusal::kMalformed);
  r.state.instances[1].id = "b";
  EXPECT_FALSE(format(r));
}

}  // namespace
}  // namespace margay::c_sma
