// SPDX-License-Identifier: Apache-2.0
#include "dataplane/core/selector.h"

#include <algorithm>
#include <cmath>

#include "dataplane/core/rendezvous.h"
#include "dataplane/core/shared_state.h"

namespace margay::dp {
namespace {

// Of a flow whose instances were full: so many more are found by its hash, then they come in their order.
constexpr size_t kHashedAgain = 3;

bool by_turn(Balance b) { return b == Balance::kRoundRobin || b == Balance::kWeightedResponseTime; }

}  // namespace

Selector::Selector(Arena& arena, const SharedState& shared, WorkerIndex self, size_t workers, size_t instances_max)
    : shared_(shared),
      self_(self),
      workers_(workers),
      credit_(arena.make<double>(instances_max)),
      offered_(arena.make<uint32_t>(instances_max)),
      random_(0x9e3779b97f4a7c15 * (uint64_t{self} + 1)) {}

bool Selector::begin(const SiteTable& table, SciIndex sci, HealthState wanted, Tick now, const FlowKey& flow) {
  ++choice_;
  table_ = &table;
  sci_ = &table.scis[sci];
  wanted_ = wanted;
  now_ = now;
  round_ = 0;
  if (sci_->balance == Balance::kConsistentHash) flow_ = rendezvous_flow(flow);
  for (size_t tier = 0; tier < sci_->tier_ends.size(); ++tier) {
    if (enter(tier)) return true;
  }
  return false;
}

// Finds the tier's candidates; false: it has none.
bool Selector::enter(size_t tier) {
  tier_ = tier;
  const size_t first = tier == 0 ? 0 : sci_->tier_ends[tier - 1], size = sci_->tier_ends[tier] - first;
  members_ = std::span(sci_->by_tier).subspan(first, size);
  position_ = candidate_count_ = 0;
  best_left_ = 1;
  if (sci_->balance == Balance::kConsistentHash) {
    names_ = std::span(sci_->rendezvous_names).subspan(first, size);
    start_ = flow_ % size;
    best_left_ += kHashedAgain;
    return std::any_of(members_.begin(), members_.end(), [this](InstanceIndex i) { return takes(i); });
  }
  // Among equals, workers begin at different instances and each choice at the next one.
  start_ = (size * self_ / workers_ + choice_ - 1) % size;
  size <= kScanned ? look_at_all() : sample();
  if (by_turn(sci_->balance)) add_turns();
  return candidate_count_ > 0;
}

void Selector::look_at_all() {
  for (size_t k = 0, at = start_; k < members_.size(); ++k, at = at + 1 < members_.size() ? at + 1 : 0) {
    if (takes(members_[at])) candidates_[candidate_count_++] = members_[at];
  }
}

// Where few are eligible, draws may find none of them: then the first ones from the start on.
void Selector::sample() {
  constexpr size_t kDraws = 4 * kSampled;
  for (size_t k = 0; k < kDraws && candidate_count_ < kSampled; ++k) {
    const InstanceIndex i = members_[random_below(members_.size())];
    const auto end = candidates_.begin() + static_cast<ptrdiff_t>(candidate_count_);
    if (takes(i) && std::find(candidates_.begin(), end, i) == end) candidates_[candidate_count_++] = i;
  }
  if (candidate_count_ > 0) return;
  for (size_t k = 0; k < members_.size() && candidate_count_ < kSampled; ++k) {
    const InstanceIndex i = members_[(start_ + k) % members_.size()];
    if (takes(i)) candidates_[candidate_count_++] = i;
  }
}

// The first offer is the best of all. Once that one was full, the rest come in order: a site that is full costs a
// flow one look at each instance, not one for each pair of them.
InstanceIndex Selector::next() {
  for (;;) {
    InstanceIndex offer = best_left_ > 0 ? best() : another();
    if (offer != kNoIndex) {
      offered_[offer] = choice_;
      return offer;
    }
    do {
      if (tier_ + 1 >= sci_->tier_ends.size()) return kNoIndex;
    } while (!enter(tier_ + 1));
  }
}

InstanceIndex Selector::best() {
  --best_left_;
  switch (sci_->balance) {
    case Balance::kRoundRobin:
    case Balance::kWeightedResponseTime:
      return by_turns();
    case Balance::kLeastConnections:
    case Balance::kSlotBased:
    case Balance::kResourceAware:
      return by_cost();
    case Balance::kConsistentHash:
      return by_hash();
  }
  return kNoIndex;
}

InstanceIndex Selector::another() {
  while (position_ < members_.size()) {
    const InstanceIndex i = members_[(start_ + position_++) % members_.size()];
    if (offered_[i] != choice_ && takes(i)) return i;
  }
  return kNoIndex;
}

void Selector::chosen(InstanceIndex i) {
  if (by_turn(sci_->balance)) credit_[i] = std::max(credit_[i] - round_, -round_);
}

double Selector::weight(InstanceIndex i) const {
  const Instance& instance = table_->instances[i];
  return static_cast<double>(instance.weight) * instance.share_of_new_flows(sci_->ramp, now_) / Instance::kFullShare;
}

uint32_t Selector::random_below(size_t n) {  // xorshift64* (Vigna, 2016)
  random_ ^= random_ >> 12;
  random_ ^= random_ << 25;
  random_ ^= random_ >> 27;
  return static_cast<uint32_t>((random_ * 0x2545f4914f6cdd1d >> 32) * n >> 32);
}

void Selector::add_turns() {
  for (size_t k = 0; k < candidate_count_; ++k) turns_[k] = weight(candidates_[k]);
  if (sci_->balance == Balance::kWeightedResponseTime) scale_by_response_times();
  round_ = 0;
  for (size_t k = 0; k < candidate_count_; ++k) {
    round_ += turns_[k];
    credit_[candidates_[k]] += turns_[k];
  }
}

// The usual time stands for what is not known, and comes nearer as what is known grows old; where nothing is known of
// any, weights alone count. Bounded, so that nobody is starved of the requests that would show it well again.
void Selector::scale_by_response_times() {
  constexpr double kRatioMax = 64;
  std::array<ResponseTime::Estimate, kScanned> seen;
  double sum = 0, worths = 0;
  for (size_t k = 0; k < candidate_count_; ++k) {
    seen[k] = shared_.response_time(candidates_[k], now_);
    sum += seen[k].worth * seen[k].microseconds;
    worths += seen[k].worth;
  }
  if (worths <= 0) return;
  const double usual = sum / worths;
  for (size_t k = 0; k < candidate_count_; ++k) {
    const double time = seen[k].worth * seen[k].microseconds + (1 - seen[k].worth) * usual;
    turns_[k] *= std::clamp(usual / time, 1 / kRatioMax, kRatioMax);
  }
}

// Credits stay within one round, so that an instance that was full for long does not draw every flow afterwards.
InstanceIndex Selector::by_turns() {
  InstanceIndex best = kNoIndex;
  for (size_t k = 0; k < candidate_count_; ++k) {
    const InstanceIndex i = candidates_[k];
    credit_[i] = std::min(credit_[i], round_);
    if (best == kNoIndex || credit_[i] > credit_[best]) best = i;
  }
  return best;
}

InstanceIndex Selector::by_cost() const {
  InstanceIndex best = kNoIndex;
  Cost least;
  for (size_t k = 0; k < candidate_count_; ++k) {
    const Cost its = cost(candidates_[k]);
    if (best != kNoIndex && !(its < least)) continue;
    best = candidates_[k];
    least = its;
  }
  return best;
}

Selector::Cost Selector::cost(InstanceIndex i) const {
  switch (sci_->balance) {
    case Balance::kLeastConnections:
      return {static_cast<double>(shared_.active(i)), weight(i)};
    case Balance::kSlotBased: {
      const uint64_t limit = shared_.slots.limit(i), active = shared_.active(i);
      return {1, static_cast<double>(limit > active ? limit - active : 0) * weight(i)};
    }
    case Balance::kResourceAware:
      return {load(i), weight(i)};
    case Balance::kRoundRobin:
    case Balance::kWeightedResponseTime:
    case Balance::kConsistentHash:
      break;
  }
  return {};
}

// With one more session, as a share of what it can do. A session is worth a slot of it: what began since the report is
// in no report yet (l4lb facts, rows 31 to 31c).
double Selector::load(InstanceIndex i) const {
  const Instance& instance = table_->instances[i];
  const double slot = 1.0 / std::max(shared_.slots.limit(i), 1u);
  const auto active = static_cast<double>(shared_.active(i));
  const double worth = instance.worth_of_load(now_);
  const double reported = std::max(instance.load + (active - instance.load_active) * slot, 0.0);
  return worth * reported + (1 - worth) * active * slot + slot;
}

// Only what draws more than the best so far could need is looked at, a few of them all.
InstanceIndex Selector::by_hash() const {
  InstanceIndex best = kNoIndex;
  double least = 0, needed = 0;
  for (size_t k = 0; k < members_.size(); ++k) {
    const double draw = rendezvous_draw(flow_, names_[k]);
    if (draw < needed) continue;
    const InstanceIndex i = members_[k];
    if (offered_[i] == choice_ || !takes(i)) continue;
    const double its = -std::log(draw) / weight(i);
    if (best != kNoIndex && its >= least) continue;
    best = i;
    least = its;
    needed = std::exp(-least * sci_->weight_max) * (1 - 0x1p-40);  // a little less than rounding could need
  }
  return best;
}

}  // namespace margay::dp
