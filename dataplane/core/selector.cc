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
  const bool round_robin = sci_->balance == Balance::kRoundRobin;
  size_t candidates = 0;
  for (const InstanceIndex i : sci_->instances) {
    const Instance& instance = table.instances[i];
    if (!instance.takes_new_flows(wanted)) continue;
    ++candidates;
    if (!round_robin) continue;
    const int64_t share_of_round = weight(instance);
    weights_ += share_of_round;
    credit_[i] += share_of_round;
  }
  return candidates;
}

uint32_t Selector::share(const Instance& instance) const { return instance.share_of_new_flows(sci_->ramp, now_); }

int64_t Selector::weight(const Instance& instance) const { return int64_t{instance.weight} * share(instance); }

uint64_t Selector::free_slots(InstanceIndex i) const {
  const uint64_t limit = shared_.slots.limit(i), active = shared_.active(i);
  return limit > active ? limit - active : 0;
}

inline bool Selector::better(InstanceIndex a, InstanceIndex b) const {
  switch (sci_->balance) {
    case Balance::kRoundRobin:
      return credit_[a] > credit_[b];
    case Balance::kLeastConnections:
      return shared_.active(a) * static_cast<uint64_t>(weight(table_->instances[b])) <
             shared_.active(b) * static_cast<uint64_t>(weight(table_->instances[a]));
    case Balance::kSlotBased:
      return free_slots(a) * share(table_->instances[a]) > free_slots(b) * share(table_->instances[b]);
  }
  return false;
}

// The first offer is the best of all. Once that one was full, the rest come in order: a site that is full costs a
// flow one look at each instance, not one for each pair of them.
InstanceIndex Selector::next() {
  const std::vector<InstanceIndex>& members = sci_->instances;
  // Among equals, workers begin at different instances and each choice at the next one.
  const size_t start = members.empty() ? 0 : (members.size() * self_ / workers_ + choice_ - 1) % members.size();
  const InstanceIndex offer = ranked_ ? another(start) : best(start);
  ranked_ = true;
  if (offer != kNoIndex) offered_[offer] = choice_;
  return offer;
}

InstanceIndex Selector::best(size_t start) {
  const SiteTable& table = *table_;
  const std::span<const InstanceIndex> members = sci_->instances;
  const bool round_robin = sci_->balance == Balance::kRoundRobin;
  const int64_t round = weights_;
  InstanceIndex best = kNoIndex;
  for (size_t k = 0, at = start; k < members.size(); ++k, at = at + 1 < members.size() ? at + 1 : 0) {
    const InstanceIndex i = members[at];
    if (!table.instances[i].takes_new_flows(wanted_)) continue;
    // Credits stay within one round, so that an instance that was full for long does not draw every flow afterwards.
    if (round_robin) credit_[i] = std::min(credit_[i], round);
    if (best == kNoIndex || better(i, best)) best = i;
  }
  return best;
}

InstanceIndex Selector::another(size_t start) {
  const std::span<const InstanceIndex> members = sci_->instances;
  while (position_ < members.size()) {
    const InstanceIndex i = members[(start + position_++) % members.size()];
    if (offered_[i] != choice_ && table_->instances[i].takes_new_flows(wanted_)) return i;
  }
  return kNoIndex;
}

void Selector::chosen(InstanceIndex i) {
  if (sci_->balance == Balance::kRoundRobin) credit_[i] = std::max(credit_[i] - weights_, -weights_);
}

}  // namespace margay::dp
