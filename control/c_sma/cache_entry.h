// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the Metric Cache holds of one SCI (CSMA-57..62). Plain values.

#include <memory>
#include <string>

#include "common/health.h"
#include "common/units.h"
#include "control/c_sma/source_state.h"
#include "control/northbound/core/row.h"

namespace margay::c_sma {

struct SourceId {  // hard state (CSMA-72)
  std::string csci_id, cs_id;
  std::string identity;  // that reports for it
  bool operator==(const SourceId&) const = default;
};

struct Ttl {  // by class of metrics (CSMA-68); that of GAS makes a source STALE (D-52)
  Nanoseconds gas = 0, computing_time = 0, optional = 0;
  bool operator==(const Ttl&) const = default;
};

struct CacheEntry {
  std::shared_ptr<const SourceId> id;
  bool known = false;  // it has values: one report of it has been believed
  northbound::Metrics metrics = {};
  HealthSummary health = {};
  Admin admin = Admin::kEnabled;
  SourceState state = SourceState::kActive;
  Nanoseconds state_since = 0;
  bool restored = false;  // values out of a state file, no report confirmed them yet
  bool doubted = false;   // the last report is in quarantine
  // Monotonic: the last sign of life; when its values were last told.
  Nanoseconds heard_at = 0, updated_at = 0;
  uint64_t epoch = 0, sequence = 0;  // of the last report that was not refused
  Nanoseconds reporting_interval = 0;
  Ttl ttl = {};
};

}  // namespace margay::c_sma
