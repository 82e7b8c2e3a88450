// SPDX-License-Identifier: Apache-2.0
#pragma once

// What survives a restart of the C-SMA, so that a C-PS sees no dip: which reports have been seen (D-14), and the last
// good values, which are advertised as restored until a report confirms them. Plain values.

#include <cstdint>
#include <string>
#include <vector>

#include "common/health.h"
#include "common/units.h"
#include "control/c_sma/validator.h"
#include "control/northbound/core/row.h"

namespace margay::c_sma {

struct SavedOrder {
  std::string csci_id;
  ReportOrder order;
  bool operator==(const SavedOrder&) const = default;
};

struct SavedEntry {
  std::string csci_id, cs_id, identity;
  northbound::Metrics metrics;
  HealthSummary health;
  Admin admin = Admin::kEnabled;
  Nanoseconds reporting_interval = 0;
  Nanoseconds age = 0;  // of the values, when they were saved
  bool operator==(const SavedEntry&) const = default;
};

struct SavedState {
  int64_t saved_ms = 0;  // Unix
  std::vector<SavedOrder> orders = {};
  std::vector<SavedEntry> entries = {};  // of sources that were not FAILED
  bool operator==(const SavedState&) const = default;
};

}  // namespace margay::c_sma
