// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which instance takes a new flow (SCI-76, SCI-77): candidates of one health state, best first, by the SCI's
// algorithm. One eligibility rule for all of them (Instance::takes_new_flows). The caller tries to take a slot of
// each one it is offered: choice and charge are one step, and if any candidate has a slot it is found.
//
//   round-robin: smooth weighted; least-connections: fewest active sessions for its weight; slot-based: most free
//   slots. One that serves anew gets a growing share of what its number says (Instance::share_of_new_flows), so that a
//   cold one is not drowned (l4lb facts, rows 18, 27). Workers begin at different candidates, so that they do not all
//   choose the first (l4lb facts, row 20).
//
// One worker; counts of other workers are read, never waited for. A scan over the SCI's instances a choice.

#include <span>

#include "dataplane/core/arena.h"
#include "dataplane/core/site_table.h"

namespace margay::dp {

struct SharedState;

class Selector {
 public:
  Selector(Arena& arena, const SharedState& shared, WorkerIndex self, size_t workers, size_t instances_max);

  // Starts a choice. Returns how many candidates there are; 0: none in this health state.
  size_t begin(const SiteTable& table, SciIndex sci, HealthState wanted, Tick now);
  // The best candidate; after it, any that this choice has not offered yet; kNoIndex at the end.
  InstanceIndex next();
  // The offered instance took the flow.
  void chosen(InstanceIndex i);

 private:
  InstanceIndex best(size_t start);
  InstanceIndex another(size_t start);
  bool better(InstanceIndex a, InstanceIndex b) const;
  uint64_t free_slots(InstanceIndex i) const;
  uint32_t share(const Instance& instance) const;
  int64_t weight(const Instance& instance) const;

  const SharedState& shared_;
  WorkerIndex self_;
  size_t workers_;
  std::span<int64_t> credit_;    // round-robin, by instance
  std::span<uint32_t> offered_;  // by instance: the choice that offered it last
  uint32_t choice_ = 0;
  size_t position_ = 0;  // of the next offer, once the best was offered
  bool ranked_ = false;
  int64_t weights_ = 0;  // of the candidates
  const SiteTable* table_ = nullptr;
  const Sci* sci_ = nullptr;
  HealthState wanted_ = HealthState::kHealthy;
  Tick now_ = 0;
};

}  // namespace margay::dp
