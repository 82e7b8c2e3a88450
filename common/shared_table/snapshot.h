// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the control plane tells the data plane: whole SCIs with their instances, their health, limits and policies.
// Sent as bytes through shared memory; the reader copies first and then calls decode() on its own copy, which
// believes nothing: every length, count, word and number is checked, and a snapshot that is wrong anywhere is refused
// whole. What only the data plane can judge (reachability, indices in use) stands in dataplane/core/site_table.h.
//
// Indices are the control plane's to give. An instance keeps its index as long as it is part of the site; a later
// instance may get the index with a higher generation, once no binding names the earlier one.

#include <cstdint>
#include <span>
#include <vector>

#include "common/health.h"
#include "common/sci_config.h"

namespace margay::shared_table {

inline constexpr uint32_t kScisMax = 65'536;
inline constexpr uint32_t kInstancesMax = 65'536;  // of a site
inline constexpr uint32_t kEndpointsMax = 64;      // of an SCI
inline constexpr size_t kSnapshotBytesMax = size_t{16} << 20;

struct InstanceRecord {
  uint32_t index = 0;       // below kInstancesMax, the same in every snapshot
  uint16_t generation = 1;  // rises when an index names another instance
  HealthState health = HealthState::kUnknown;
  Admin admin = Admin::kEnabled;
  Nanoseconds drain_deadline = 0;  // CLOCK_MONOTONIC; of kDraining
  Nanoseconds health_since = 0;    // CLOCK_MONOTONIC: when the health monitor came to this verdict
  Nanoseconds serves_since = 0;    // CLOCK_MONOTONIC: HEALTHY or DEGRADED without a break; 0: has always been
  uint32_t limit = 0;              // for new flows: floor(factor * max_sessions) (D-7)
  // What the instance's own metrics say of it (SCI-21), for balance: resource-aware.
  double load = 0;                // share of its most wanted resource in use
  uint32_t load_active = 0;       // sessions that it had then
  Nanoseconds load_until = 0;     // CLOCK_MONOTONIC: worth nothing from then on; 0: nothing is known
  Nanoseconds load_lifetime = 0;  // before load_until it was measured
  InstanceConfig config;

  friend bool operator==(const InstanceRecord&, const InstanceRecord&) = default;
};

struct SciRecord {
  uint32_t index = 0;  // below kScisMax
  SciPolicy policy;
  std::vector<InstanceRecord> instances;

  friend bool operator==(const SciRecord&, const SciRecord&) = default;
};

struct Snapshot {
  uint64_t generation = 0;  // at least 1; rises with every commit
  uint64_t base = 0;        // the generation that this one changes; 0: it is complete, what it does not name goes
  std::vector<SciRecord> scis;
  std::vector<uint32_t> removed;  // indices of SCIs; none when base is 0

  friend bool operator==(const Snapshot&, const Snapshot&) = default;
};

std::vector<std::byte> encode(const Snapshot& snapshot);

// The error names the record and the value, as "scis[3].instances[1].health: 9, expected at most 3".
Result<Snapshot> decode(std::span<const std::byte> bytes);

// Of all bytes of an encoded snapshot; what a commit message carries beside the length.
uint64_t checksum(std::span<const std::byte> bytes);

}  // namespace margay::shared_table
