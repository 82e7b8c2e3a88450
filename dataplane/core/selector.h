// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which instance takes a new flow (SCI-76..78): candidates of one health state, best first, by the SCI's policies and
// algorithm. One eligibility rule for all of them (Instance::takes_new_flows). The caller tries to take a slot of each
// one it is offered: choice and charge are one step, and if any candidate has a slot it is found.
//
// Policies make tiers (Sci::tier_ends): by preference, and within one by price where the cheapest go first. A tier is
// offered to its end before the next. Within a tier:
//   round-robin              smooth, by weight
//   weighted-response-time   the same, by weight / response time seen in the path (response_time.h)
//   least-connections        least active sessions / weight
//   slot-based               most free slots * weight
//   resource-aware           least load / weight: what the instance reported, and the slots taken since; as the report
//                            grows old, more and more the slots taken alone
//   consistent-hash          by the flow (rendezvous.h)
// One that serves anew counts a growing share of its weight (Instance::share_of_new_flows), so that a cold one is not
// drowned (l4lb facts, rows 18, 27). Workers begin at different candidates, so that they do not all choose the first
// (l4lb facts, row 20).
//
// A choice looks at each instance of a tier of up to kScanned. Of a longer one it draws kSampled, and the others' turn
// comes when these are full: an instance gets at most kSampled / (instances) of the flows there, and a site that is
// full costs a flow one look at each. consistent-hash draws a number for each, and looks at few.
//
// One worker; counts of other workers are read, never waited for. No allocation, no lock.

#include <array>
#include <span>

#include "dataplane/core/arena.h"
#include "dataplane/core/flow_table.h"
#include "dataplane/core/site_table.h"

namespace margay::dp {

struct SharedState;

class Selector {
 public:
  static constexpr size_t kScanned = 64, kSampled = 16;

  Selector(Arena& arena, const SharedState& shared, WorkerIndex self, size_t workers, size_t instances_max);

  // Starts a choice. False: there is no candidate in this health state.
  bool begin(const SiteTable& table, SciIndex sci, HealthState wanted, Tick now, const FlowKey& flow);
  // The best candidate; after it, any that this choice has not offered yet; kNoIndex at the end.
  InstanceIndex next();
  // The offered instance took the flow.
  void chosen(InstanceIndex i);

 private:
  // What an instance costs: least first. A quotient whose parts are compared, so that nothing is divided by 0.
  struct Cost {
    double amount = 0, per = 0;
    bool operator<(const Cost& other) const { return amount * other.per < other.amount * per; }
  };

  bool enter(size_t tier);
  void look_at_all();
  void sample();
  bool takes(InstanceIndex i) const { return table_->instances[i].takes_new_flows(wanted_); }
  InstanceIndex best();
  InstanceIndex another();
  InstanceIndex by_turns();
  InstanceIndex by_cost() const;
  InstanceIndex by_hash() const;
  void add_turns();
  void scale_by_response_times();
  Cost cost(InstanceIndex i) const;
  double load(InstanceIndex i) const;
  double weight(InstanceIndex i) const;
  uint32_t random_below(size_t n);

  const SharedState& shared_;
  WorkerIndex self_;
  size_t workers_;
  std::span<double> credit_;     // of turns, by instance
  std::span<uint32_t> offered_;  // by instance: the choice that offered it last
  uint64_t random_;

  // Of the choice in hand.
  const SiteTable* table_ = nullptr;
  const Sci* sci_ = nullptr;
  HealthState wanted_ = HealthState::kHealthy;
  Tick now_ = 0;
  uint32_t choice_ = 0;
  uint64_t flow_ = 0;  // consistent-hash: the flow's part of each draw
  size_t tier_ = 0;
  std::span<const InstanceIndex> members_;  // of the tier
  std::span<const uint64_t> names_;         // theirs, of consistent-hash
  size_t start_ = 0;                        // among equals the first one from here
  size_t position_ = 0;                     // of the next offer, once the best were offered
  size_t best_left_ = 0;                    // how many times the best is still looked for
  std::array<InstanceIndex, kScanned> candidates_;
  std::array<double, kScanned> turns_;  // what each of them gains
  size_t candidate_count_ = 0;
  double round_ = 0;  // all turns that were gained: the price of a flow
};

}  // namespace margay::dp
