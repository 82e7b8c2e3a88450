// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a C-SMA advertises to its C-PSes and a C-PS keeps: rows, one an SCI and one a CS-ID's whole site. Plain values.
// docs/northbound.md has the protocol that carries them.

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/health.h"
#include "common/units.h"

namespace margay::northbound {

// Which of two rows with the same key is newer, on whatever channel they came (CSMA-102). One number space for all
// C-PSes of a C-SMA; (0, 0) is older than any.
struct RowVersion {
  uint64_t epoch = 0;   // of the C-SMA; rises from start to start (D-14)
  uint64_t commit = 0;  // rises within an epoch
  constexpr auto operator<=>(const RowVersion&) const = default;
};

// Within one C-SMA.
struct RowKey {
  std::string cs_id;
  std::optional<std::string> csci_id = {};  // absent: the row of the site itself (D-47)
  auto operator<=>(const RowKey&) const = default;
};

// Of an SCI as a source of reports (CSMA-77..81). Not the health of an instance (D-5).
enum class SourceState : uint8_t { kActive, kHealthy, kStale, kFailed };
std::string_view name_of(SourceState s);  // "ACTIVE"

enum class WithdrawReason : uint8_t {
  kFailed,
  kEvicted,
  kDeregistered,
  kRevoked,
  kUnauthorised,
  kAdmin,
  kScope
};                                           // D-39
std::string_view name_of(WithdrawReason r);  // "FAILED"

// Absent is not known, which is not 0.
struct Metrics {
  std::optional<uint32_t> gas = {};
  std::optional<uint32_t> computing_time_ms = {};
  std::optional<uint32_t> computing_time_minimum_ms = {}, computing_time_maximum_ms = {};
  std::optional<uint32_t> price = {}, reputation = {}, security_level = {};
  bool operator==(const Metrics&) const = default;
};

// Always whole.
struct Row {
  RowKey key;
  RowVersion version = {};
  Metrics metrics = {};
  HealthSummary health = {};                         // of instances; a site row: over all its SCIs
  HealthState sci_health = HealthState::kUnhealthy;  // D-4
  Admin admin = Admin::kEnabled;                     // of an SCI
  std::optional<SourceState> source = {};            // of an SCI's row; absent: a site row
  uint32_t scis = 0;                                 // of a site row: SCIs that contribute to it
  bool restored = false;                             // out of a state file, no report confirmed it yet
  Nanoseconds measured_at = 0;                       // monotonic, of this process; on the wire it is an age
  Nanoseconds valid_for = 0;                         // D-41, from when it was received
  bool operator==(const Row&) const = default;
};

// Idempotent.
struct Withdrawal {
  RowKey key;
  RowVersion version = {};
  WithdrawReason reason{};
  bool operator==(const Withdrawal&) const = default;
};

// What is applied as one, whole or not at all: of one CS-ID. A withdrawal stands together with the CS-ID's new site
// row, where site rows are advertised (D-1).
struct Change {
  std::string cs_id;
  std::vector<Row> rows = {};
  std::vector<Withdrawal> withdrawals = {};
  bool operator==(const Change&) const = default;
};

}  // namespace margay::northbound
