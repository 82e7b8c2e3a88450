// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads the data plane's counters into the events that each SCI's control plane is told. Believes nothing: sums
// saturate, and a worker's counts of another instance at the same index are not this one's. A reading costs what the
// site has, not what there is room for. One thread.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/shared_table/counters.h"
#include "common/shared_table/snapshot.h"
#include "control/sci/events.h"

namespace margay::control {

class LedgerReader {
 public:
  // REQUIRES: what the view looks at outlives the reader.
  explicit LedgerReader(const shared_table::CountersView<const std::byte>& view)
      : view_(view), responses_(view.shape().instances) {}

  const shared_table::CountersShape& shape() const { return view_.shape(); }
  // Every instance of the SCI; histograms where they moved since the last reading, and at the first one.
  // REQUIRES: the indices are within the shape
  LedgerSample read(const shared_table::SciRecord& sci);

  bool in_use(uint32_t instance) const;          // slots or bindings name it
  uint16_t generation(uint32_t instance) const;  // the highest that the data plane knew there

 private:
  struct Responses {
    uint16_t generation = 0;
    uint64_t sum = 0;
  };

  const InstanceCounters& counters(uint32_t worker, uint32_t instance) const {
    return view_.instances()[size_t{worker} * shape().instances + instance];
  }
  LedgerCounts counts_of(const shared_table::InstanceRecord& record) const;
  std::optional<Histogram> responses_of(const shared_table::InstanceRecord& record);

  shared_table::CountersView<const std::byte> view_;
  std::vector<Responses> responses_;  // as last read
};

}  // namespace margay::control
