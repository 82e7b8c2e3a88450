// SPDX-License-Identifier: Apache-2.0
#include "control/agent/collection_port.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace margay::control {
namespace {

TEST(CollectionPort, ReportsOfMoreThanNumbersAreUrgent) {  // CSMA-152
  const std::set<int> urgent{v1::TRIGGER_HEALTH,   v1::TRIGGER_ADMIN,    v1::TRIGGER_RECOVERY,
                             v1::TRIGGER_ALL_DOWN, v1::TRIGGER_SECURITY, v1::TRIGGER_STOP};
  for (int trigger = v1::Trigger_MIN; trigger <= v1::Trigger_MAX; ++trigger) {
    v1::Report report;
    report.set_csci_id("192.0.2.10:80");
    report.set_cs_id(std::string(255, 'c'));
    report.mutable_timestamp()->set_seconds(1'700'000'000);
    report.set_epoch(~uint64_t{0});
    report.set_trigger(static_cast<v1::Trigger>(trigger));
    report.set_gas(7);
    EXPECT_EQ(is_urgent(report.SerializeAsString()), urgent.contains(trigger)) << trigger;
  }
}

TEST(CollectionPort, WhatIsNoReportIsNotUrgent) {
  for (const std::string& bytes : {std::string(), std::string("\x38"), std::string("\x38\xff"),
                                   std::string(5000, '\xff'), std::string("\x0a\x7f")}) {
    EXPECT_FALSE(is_urgent(bytes));
  }
  // Behind so many bytes nobody looks for it.
  v1::Report report;
  report.set_csci_id(std::string(100'000, 'c'));
  report.set_trigger(v1::TRIGGER_HEALTH);
  EXPECT_FALSE(is_urgent(report.SerializeAsString()));
}

TEST(CollectionPort, HasRoomForAStreamOfEachSci) {  // CSMA-178
  EXPECT_EQ(CollectionPort::limits_for(100'000).streams, 131'072u);
  EXPECT_EQ(CollectionPort::limits_for(100'000).memory, 131'072u * 8192);
  EXPECT_EQ(CollectionPort::limits_for(1'000'000).streams, 1'250'000u);
  EXPECT_EQ(CollectionPort::limits_for(1'000'000).memory, 1'250'000u * size_t{8192});
}

}  // namespace
}  // namespace margay::control
