// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the control plane of an SCI is told, and what it wants done. Plain values with the instance's SI-ID in them, so
// that a recorded stream of them can be read and replayed.

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/histogram.h"
#include "common/time_point.h"
#include "control/sci/health.h"
#include "control/sci/metrics.h"
#include "control/sci/report.h"

namespace margay::control {

// ---- events

// The answer to a ProbeRequest. Refused, reset, timed out, a wrong status: kFail. No socket, no route: kError (D-54).
struct CheckResult {
  std::string id;
  CheckKind kind{};
  uint64_t serial = 0;
  Outcome outcome{};
  Nanoseconds latency = 0;
  std::string detail;
  bool silent = false;  // kFail: nothing came within the time limit
  bool operator==(const CheckResult&) const = default;
};
// The answer to a ScrapeRequest.
struct ScrapeResult {
  std::string id;
  uint64_t serial = 0;
  bool ok = false;
  std::vector<Sample> samples;
  bool operator==(const ScrapeResult&) const = default;
};
// The data plane's counters; instances that are not named keep theirs.
struct LedgerCounts {
  uint32_t active = 0;       // slots held
  uint32_t provisional = 0;  // those of them that no proven flow holds
  // What the data plane's operator has set over what a TableChanged told.
  std::optional<uint32_t> max_sessions = {};
  std::optional<Admin> admin = {};
  std::optional<uint32_t> weight = {};
  bool operator==(const LedgerCounts&) const = default;
};
struct LedgerSample {
  struct Entry {
    std::string id;
    LedgerCounts counts;
    // Times from request to first response, since the data plane's start; absent: as in the sample before.
    std::optional<Histogram> responses = {};
    bool operator==(const Entry&) const = default;
  };
  std::vector<Entry> instances;
  // No worker has made progress since the sample before: probes that are under way may fail for that.
  bool stood_still = false;
  bool operator==(const LedgerSample&) const = default;
};
struct DataPlaneLost {  // dead or frozen: GAS is 0, and probes that fail tell nothing
  std::string why;
  bool operator==(const DataPlaneLost&) const = default;
};
struct DataPlaneBack {  // its next LedgerSample counts again
  bool operator==(const DataPlaneBack&) const = default;
};
struct OperatorDrain {
  std::optional<std::string> id;  // absent: the whole SCI
  bool on = true;
  bool operator==(const OperatorDrain&) const = default;
};
struct SecurityNotice {
  std::string what;
  bool operator==(const SecurityNotice&) const = default;
};
struct ConfigChanged {  // of the same CSCI-ID
  SciSpec config;
  bool operator==(const ConfigChanged&) const = default;
};
struct Pull {  // the C-SMA asks
  bool operator==(const Pull&) const = default;
};
struct Stop {
  bool operator==(const Stop&) const = default;
};
struct Tick {
  bool operator==(const Tick&) const = default;
};

using Event = std::variant<CheckResult, ScrapeResult, LedgerSample, DataPlaneLost, DataPlaneBack, OperatorDrain,
                           SecurityNotice, ConfigChanged, Pull, Stop, Tick>;

// ---- actions

struct ProbeRequest {
  std::string id;
  CheckKind kind{};
  uint64_t serial = 0;
  std::string url;  // empty: TCP connect to address and port
  std::string address;
  uint16_t port = 0;
  Nanoseconds deadline = 0;
};
struct ScrapeRequest {
  std::string id;
  uint64_t serial = 0;
  std::string url;
  Nanoseconds deadline = 0;
};
// For the data plane. An instance that is not named stays as it is; one that is removed and changed is another one with
// the same id. What the data plane's operator set is not in here: it stands over this there.
struct TableChanged {
  struct Load {
    double value = 0;          // share of the instance's most wanted resource in use, 0 to 1
    uint32_t active = 0;       // sessions that it had then
    Nanoseconds until = 0;     // from here on it is worth nothing
    Nanoseconds lifetime = 0;  // before that it was measured
    bool operator==(const Load&) const = default;
  };
  struct Entry {
    std::string id;
    HealthState health{};
    Nanoseconds health_since = 0;
    Nanoseconds serves_since = 0;  // HEALTHY or DEGRADED without a break; of an instance that serves
    Admin admin{};
    Nanoseconds drain_deadline = 0;  // of kDraining
    uint32_t limit = 0;              // D-7: for new flows, by health alone
    uint32_t weight = 0;
    std::optional<Load> load = {};  // absent: nothing is known, or nobody asks
    bool operator==(const Entry&) const = default;
  };
  std::vector<Entry> changed;
  std::vector<std::string> removed;
};
struct Transition {
  std::string id;
  HealthChange change;
};
struct ReportReady {
  Report report;
};

using Action = std::variant<ProbeRequest, ScrapeRequest, TableChanged, Transition, ReportReady>;

}  // namespace margay::control
