// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the C-SMA's core is told by the site file: plain values, already checked and with their units taken off. The
// defaults are those of the requirements' Part C, changed where Part D says so.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/share.h"
#include "common/token_bucket.h"
#include "common/units.h"
#include "control/c_sma/metric_definitions.h"

namespace margay::c_sma {

// An SCI that may report (CSMA-187). Hard state (CSMA-72).
struct AcceptedSci {
  std::string csci_id, cs_id;
  std::optional<uint32_t> gas_ceiling = {};  // no report may claim more; it may be reached (D-10, D-48)
  bool operator==(const AcceptedSci&) const = default;
};

// A change of more than `change` of the older value and of at least the floor, seen over the whole window (D-48).
struct GasAnomaly {
  Share change{0.5};
  Nanoseconds within = kSecond;
  uint32_t floor = 5;  // slots
  bool operator==(const GasAnomaly&) const = default;
};
struct ComputingTimeAnomaly {
  Share change{1.0};
  Nanoseconds within = kSecond;
  Nanoseconds floor = 5 * kMillisecond;
  bool operator==(const ComputingTimeAnomaly&) const = default;
};
struct Flapping {  // more than so many transitions of the SCI's health
  uint32_t transitions = 3;
  Nanoseconds within = 10 * kSecond;
  bool operator==(const Flapping&) const = default;
};

enum class Anomalous : uint8_t { kQuarantine, kFlag };
enum class Consistency : uint8_t { kSite, kCsId };

struct ValidationConfig {
  Ranges ranges = registered_ranges();
  GasAnomaly gas_anomaly = {};
  ComputingTimeAnomaly computing_time_anomaly = {};
  Flapping flapping = {};
  Anomalous anomalous = Anomalous::kQuarantine;
  Nanoseconds skew_alarm = 10 * kSecond, skew_refuse = 30 * kSecond;  // D-15, D-28
  Consistency consistency = Consistency::kSite;                       // D-3
  bool operator==(const ValidationConfig&) const = default;
};

enum class AtLimit : uint8_t { kEvict, kRefuse };  // FAILED entries give way with either
enum class Stale : uint8_t { kStand, kDecay };     // what a STALE entry's GAS is worth until its grace ends (D-27)

struct CacheConfig {
  uint32_t max_entries = 100'000;
  AtLimit at_limit = AtLimit::kEvict;
  // Of max_entries, at least one entry; FAILED ones do not count (D-19).
  Share quota_per_identity{0.1};  // by authenticated identity
  Share quota_per_cs_id{1.0};
  // Absent: twice the reporting interval that the SCI tells (CSMA-66), 120 s where it tells none.
  std::optional<Nanoseconds> ttl_gas = {}, ttl_computing_time = {}, ttl_optional = {};
  Nanoseconds grace = 10 * kSecond;
  Stale stale = Stale::kStand;
  bool operator==(const CacheConfig&) const = default;
};

struct SelfDoubtConfig {  // D-29, D-51
  Share share{0.5};
  Nanoseconds hold = 30 * kSecond;
  bool operator==(const SelfDoubtConfig&) const = default;
};

enum class Aggregate : uint8_t { kGasWeightedMean, kMin, kMax, kMean, kP95 };  // D-17

struct Smoothing {  // D-35, D-49
  Share alpha{0.3};
  Nanoseconds period = 5 * kSecond;
  bool operator==(const Smoothing&) const = default;
};

struct TransformConfig {
  Share safety_margin{1.0};  // off, D-8
  uint32_t computing_time_min_ms = 1, computing_time_max_ms = 10'000;
  Aggregate computing_time = Aggregate::kGasWeightedMean;
  std::optional<Smoothing> gas_smoothing = {};
  bool operator==(const TransformConfig&) const = default;
};

enum class Advertise : uint8_t { kPerSci, kPerSite, kBoth };  // D-40

struct UpdateConfig {
  Share gas_change{0.1};
  uint32_t gas_absolute = 50;
  Share computing_time_change{0.2};
  Nanoseconds heartbeat = 60 * kSecond;
  Nanoseconds minimum_interval = 5 * kSecond;  // D-50
  TokenRate rate{kSecond / 10, 20};            // of routine messages, per C-PS
  TokenRate critical{kSecond / 50, 100};       // D-11
  Nanoseconds backoff_initial = kSecond, backoff_max = 60 * kSecond;
  Advertise advertise = Advertise::kBoth;
  Nanoseconds valid_for = 180 * kSecond;
  bool operator==(const UpdateConfig&) const = default;
};

struct CSmaConfig {
  std::string identity;
  std::vector<AcceptedSci> accept = {};
  ValidationConfig validation = {};
  CacheConfig cache = {};
  SelfDoubtConfig self_doubt = {};
  TransformConfig transform = {};
  UpdateConfig updates = {};
  bool operator==(const CSmaConfig&) const = default;
};

}  // namespace margay::c_sma
