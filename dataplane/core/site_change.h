// SPDX-License-Identifier: Apache-2.0
#pragma once

// From one site table to the next by a snapshot of the control plane: all of it or nothing. SCIs whose hosts and
// endpoints stay as they are cost only themselves; where those change, the layout is built anew. Judges what the codec
// cannot: that the snapshot fits what runs, that indices are free, that hosts can be reached and nothing clashes.
// The table's thread.

#include <functional>
#include <memory>

#include "common/result.h"
#include "dataplane/core/site_table.h"

namespace margay::dp {

struct SiteChange {
  const SiteConfig& config;  // ports and forwarders
  size_t instances_max;      // indices that this process has memory for
  size_t scis_max;
  // Of an instance that went: does a binding, a slot, or a table that a worker may still use name it?
  std::function<bool(InstanceIndex)> in_use;
  std::function<Tick(Nanoseconds)> to_tick;  // of a time of CLOCK_MONOTONIC, for drain deadlines
  bool passed = true;                        // every worker uses the table that is to be changed

  // The error names the SCI and the value. After a table that waits for its first snapshot every index is free.
  Result<std::unique_ptr<SiteTable>> apply(const SiteTable& now, const shared_table::Snapshot& snapshot) const;
};

// What the table was built from, complete (base 0), under its own generation.
shared_table::Snapshot snapshot_of(const SiteTable& table);

}  // namespace margay::dp
