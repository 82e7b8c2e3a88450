// SPDX-License-Identifier: Apache-2.0
// What reports are called and numbered by.
#include <gtest/gtest.h>

#include <limits>

#include "control/sci/reporting.h"

namespace margay::control {
namespace {

TEST(Reporting, TheEpochNeverGoesBack_D14) {
  EXPECT_EQ(next_epoch(std::nullopt, 1'700'000'000'000), 1'700'000'000'000u);
  EXPECT_EQ(next_epoch(1'600'000'000'000, 1'700'000'000'000), 1'700'000'000'000u);
  EXPECT_EQ(next_epoch(1'800'000'000'000, 1'700'000'000'000), 1'800'000'000'001u);  // the clock was set back
  EXPECT_EQ(next_epoch(1'700'000'000'000, 1'700'000'000'000), 1'700'000'000'001u);  // twice in one millisecond
  EXPECT_EQ(next_epoch(5, -1), 6u);
  constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();
  EXPECT_EQ(next_epoch(kMax, 1), kMax);
}

TEST(Reporting, NamesOfTriggersAreTheRequirements_D21) {
  EXPECT_EQ(name_of(Trigger::kAllDown), "ALL_DOWN");
  EXPECT_EQ(name_of(Trigger::kPeriodic), "PERIODIC");
  EXPECT_EQ(name_of(Trigger::kStop), "STOP");
}

}  // namespace
}  // namespace margay::control
