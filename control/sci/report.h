// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a report to the C-SMA says (SCI-112..120, D-21, D-42). Plain values; how they are written down is the
// transport's business. An absent metric is not 0.

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control/sci/aggregate.h"
#include "control/sci/computing_time.h"

namespace margay::control {

// Why a report goes out. Ascending: where several reasons meet in one report, the last of them is its trigger.
enum class Trigger : uint8_t {
  kPeriodic,
  kThreshold,
  kPulled,
  kHealth,
  kAdmin,
  kRecovery,
  kAllDown,
  kSecurity,
  kStart,
  kStop,
};
inline constexpr size_t kTriggers = 10;
std::string_view name_of(Trigger t);  // "ALL_DOWN"

// A set of triggers.
class Triggers {
 public:
  constexpr Triggers() = default;
  constexpr Triggers(std::initializer_list<Trigger> list) {
    for (const Trigger t : list) add(t);
  }
  constexpr void add(Trigger t) { bits_ = static_cast<uint16_t>(bits_ | 1u << static_cast<unsigned>(t)); }
  constexpr void remove(Trigger t) { bits_ = static_cast<uint16_t>(bits_ & ~(1u << static_cast<unsigned>(t))); }
  constexpr bool has(Trigger t) const { return (bits_ >> static_cast<unsigned>(t) & 1u) != 0; }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr bool meets(Triggers other) const { return (bits_ & other.bits_) != 0; }
  // REQUIRES: !empty()
  Trigger foremost() const;
  constexpr bool operator==(const Triggers&) const = default;

 private:
  uint16_t bits_ = 0;
};

struct InstanceDetail {  // SCI-120
  std::string id;
  HealthState health{};
  Admin admin{};
  uint32_t limit = 0, active = 0;
  bool operator==(const InstanceDetail&) const = default;
};

struct SecurityEvent {
  std::string what;
  int64_t unix_ms = 0;  // of the event
  bool operator==(const SecurityEvent&) const = default;
};

// What the SCI is worth at a time.
struct SciState {
  std::optional<Gas> gas;
  ComputingTime computing_time;
  HealthSummary health;
  Admin admin = Admin::kEnabled;
  bool data_plane_lost = false;
  std::optional<uint32_t> price, reputation, security_level;
  std::vector<InstanceDetail> instances;
  std::optional<Nanoseconds> ledger_at;  // when the data plane's counters were read
};

struct Report {
  std::string csci_id, cs_id;
  int64_t timestamp_ms = 0;  // Unix epoch; the one number here that comes from the wall clock
  uint64_t epoch = 0;        // compared before the sequence (D-14)
  uint64_t sequence = 0;
  // A delta leaves out the details of instances with the health, condition and limit that they had, and unchanged
  // optional metrics.
  bool full = false;
  Trigger trigger{};
  Triggers reasons = {};  // all that met here
  Nanoseconds reporting_interval = 0;
  std::optional<Nanoseconds> ledger_age = {};
  SciState state = {};
  std::vector<SecurityEvent> security_events = {};
  uint64_t security_events_dropped = 0;  // for want of space: kSecurityEventsMax
};
inline constexpr size_t kSecurityEventsMax = 32;  // a report

}  // namespace margay::control
