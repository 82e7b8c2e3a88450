// SPDX-License-Identifier: Apache-2.0
#include "dataplane/core/selector.h"

#include <algorithm>

#include "dataplane/core/shared_state.h"

namespace margay::dp {

Selector::Selector(Arena& arena, const SharedState& shared, WorkerIndex self, size_t workers, size_t instances_max)
    : shared_(shared),
      self_(self),
      workers_(workers),
      credit_(arena.make<int64_t>(instances_max)),
      offered_(arena.make<uint32_t>(instances_max)) {}

size_t Selector::begin(const SiteTable& table, SciIndex sci, HealthState wanted, Tick now) {
  ++choice_;
  position_ = 0;
  ranked_ = false;
  table_ = &table;
  sci_ = &table.scis[sci];
  wanted_ = wanted;
  now_ = now;
  weights_ = 0;
  size_t candidates = 0;
  for (const InstanceIndex i : sci_->instances) {
    if (!table.instances[i].takes_new_flows(wanted)) continue;
    ++candidates;
    weights_ += weight(i);
  }
  if (sci_->balance != Balance::kRoundRobin) return candidates;
  for (const InstanceIndex i : sci_->instances) {
    // Credits stay within one round, so that an instance that was full for long does not draw every flow afterwards.
    if (table.instances[i].takes_new_flows(wanted)) credit_[i] = std::min(credit_[i] + weight(i), weights_);
  }
  return candidates;
}

uint32_t Selector::share(InstanceIndex i) const { return table_->instances[i].share_of_new_flows(sci_->ramp, now_); }

int64_t Selector::weight(InstanceIndex i) const { return int64_t{table_->instances[i].weight} * share(i); }

uint64_t Selector::free_slots(InstanceIndex i) const {
  const uint64_t limit = shared_.slots.limit(i), active = shared_.active(i);
  return limit > active ? limit - active : 0;
}

bool Selector::better(InstanceIndex a, InstanceIndex b) const {
  switch (sci_->balance) {
    case Balance::kRoundRobin:
      return credit_[a] > credit_[b];
    case Balance::kLeastConnections:
      return shared_.active(a) * static_cast<uint64_t>(weight(b)) <
             shared_.active(b) * static_cast<uint64_t>(weight(a));
    case Balance::kSlotBased:
      return free_slots(a) * share(a) > free_slots(b) * share(b);
  }
  return false;
}

// The first offer is the best of all. Once that one was full, the rest come in order: a site that is full costs a
// flow one look at each instance, not one for each pair of them.
InstanceIndex Selector::next() {
  const auto& members = sci_->instances;
  const bool ranked = !ranked_;
  ranked_ = true;
  // Among equals, workers begin at different instances and each choice at the next one.
  const size_t start = members.empty() ? 0 : (members.size() * self_ / workers_ + choice_ - 1) % members.size();
  InstanceIndex best = kNoIndex;
  for (size_t k = ranked ? 0 : position_; k < members.size(); ++k) {
    const InstanceIndex i = members[start + k < members.size() ? start + k : start + k - members.size()];
    if (offered_[i] == choice_ || !table_->instances[i].takes_new_flows(wanted_)) continue;
    if (best == kNoIndex || better(i, best)) best = i;
    if (ranked) continue;
    position_ = k + 1;
    break;
  }
  if (best != kNoIndex) offered_[best] = choice_;
  return best;
}

void Selector::chosen(InstanceIndex i) {
  if (sci_->balance == Balance::kRoundRobin) credit_[i] = std::max(credit_[i] - weights_, -weights_);
}

}  // namespace margay::dp
