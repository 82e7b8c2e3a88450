// SPDX-License-Identifier: Apache-2.0
#include "dataplane/core/live_site.h"

#include <algorithm>
#include <set>
#include <utility>

#include "dataplane/core/site_change.h"

namespace margay::dp {

using shared_table::InstanceRecord;
using shared_table::SciRecord;
using shared_table::Snapshot;

namespace {

const InstanceRecord& record_of(const SiteTable& table, InstanceIndex i) {
  const auto& records = table.scis[table.instances[i].sci].record->instances;
  return *std::find_if(records.begin(), records.end(), [&](const InstanceRecord& r) { return r.index == i; });
}

// The word of an instance that nothing is set for.
uint64_t unset(const Instance& instance) {
  return shared_table::OperatorSetting{.generation = instance.generation, .admin = {}, .max_sessions = {}, .weight = {}}
      .pack();
}

// Those that a snapshot may have changed.
std::set<InstanceIndex> touched_by(const Snapshot& snapshot, const SiteTable& before, const SiteTable& after) {
  std::set<InstanceIndex> touched;
  const auto add = [&](const SiteTable& table, SciIndex s) {
    if (s < table.scis.size()) touched.insert(table.scis[s].instances.begin(), table.scis[s].instances.end());
  };
  const auto add_both = [&](SciIndex s) { add(before, s), add(after, s); };
  for (const SciRecord& sci : snapshot.scis) add_both(sci.index);
  for (const SciIndex s : snapshot.removed) add_both(s);
  if (snapshot.base == 0) {
    for (SciIndex s = 0; s < before.scis.size(); ++s) add(before, s);
  }
  return touched;
}

}  // namespace

std::optional<Override> LiveSite::override_of(InstanceIndex i) const {
  const auto found = overrides_.find(i);
  return found == overrides_.end() ? std::nullopt : std::optional(found->second);
}

void LiveSite::publish(std::unique_ptr<SiteTable> next) {
  next->version = current_->version + 1;
  std::shared_ptr<const SiteTable> before = std::exchange(current_, std::move(next));
  owner_.publish(*current_, std::move(before));
}

void LiveSite::change(const std::function<void(SiteTable&)>& edit) {
  std::unique_ptr<SiteTable> next = current_->clone();
  edit(*next);
  publish(std::move(next));
}

void LiveSite::set(InstanceIndex i, const std::function<void(Override&)>& edit) {
  change([&](SiteTable& next) {
    if (next.instances[i].gone) return;  // went meanwhile
    Override& set = overrides_[i];
    set.generation = next.instances[i].generation;
    edit(set);
    if (set.admin && *set.admin == record_of(next, i).admin && *set.admin == Admin::kEnabled) set.admin.reset();
    settle(next, i);
    shared_.settings[i].set(set.empty() ? unset(next.instances[i]) : set.pack());
    if (set.empty()) overrides_.erase(i);
    charge(next, i);
  });
}

// What holds for an instance: the record, with what the operator has set over it.
void LiveSite::settle(SiteTable& next, InstanceIndex i) const {
  const auto found = overrides_.find(i);
  const Override set = found == overrides_.end() ? Override{} : found->second;
  const InstanceRecord& record = record_of(next, i);
  Instance& instance = next.instances.edit(i);
  instance.admin = set.admin.value_or(record.admin);
  if (instance.admin != Admin::kDraining) {
    instance.drain_deadline = 0;
  } else {
    instance.drain_deadline = set.admin ? set.drain_deadline : owner_.tick_at(record.drain_deadline);
  }
  instance.weight = set.weight.value_or(record.config.weight);
  if (instance.weight > next.scis[instance.sci].weight_max) next.scis.edit(instance.sci).weight_max = instance.weight;
  instance.max_sessions = set.max_sessions.value_or(record.config.max_sessions);
  instance.limit = record.limit;
  if (!set.max_sessions && !set.admin) return;
  // The control plane reckons without what the operator sets.
  const Share factor(next.scis[instance.sci].degradation_factor);
  instance.limit = limit_of(record.health, instance.max_sessions, factor);
}

// The ledger follows the table that is about to be published: limits hold from here on, whichever table a worker has.
void LiveSite::charge(const SiteTable& next, InstanceIndex i) {
  const Instance& instance = next.instances[i];
  if (instance.gone) {
    if (!instance.si_id.empty()) shared_.set_limit(next, i, 0);
    if (!current_->instances[i].gone) left_[i] = current_->version + 1;
    return;
  }
  const bool is_new = i >= current_->instances.size() || current_->instances[i].si_id.empty() ||
                      current_->instances[i].generation != instance.generation;
  if (is_new) {
    left_.erase(i);
    shared_.settings[i].set(unset(instance));
    return shared_.open(next, i);
  }
  shared_.set_limit(next, i, instance.limit);
}

Result<void> LiveSite::apply(const Snapshot& snapshot) {
  const SiteChange change{config_,
                          shared_.instances_max,
                          shared_.scis_max,
                          [this](InstanceIndex i) { return in_use(i); },
                          [this](Nanoseconds t) { return owner_.tick_at(t); },
                          owner_.passed() == current_->version};
  auto next = change.apply(*current_, snapshot);
  if (!next) return next.error();
  for (const InstanceIndex i : touched_by(snapshot, *current_, **next)) {
    const auto set = overrides_.find(i);
    const Instance& instance = (*next)->instances[i];
    if (set != overrides_.end() && (instance.gone || set->second.generation != instance.generation)) {
      shared_.settings[i].set(unset(instance));
      overrides_.erase(set);
    } else if (set != overrides_.end()) {
      settle(**next, i);
    }
    charge(**next, i);
  }
  publish(std::move(*next));
  return {};
}

// May a binding, a slot, or a worker that has an older table still name it?
bool LiveSite::in_use(InstanceIndex i) const {
  const auto left = left_.find(i);
  if ((left != left_.end() && owner_.passed() < left->second) || shared_.bindings(i) > 0) return true;
  return !shared_.slots.reclaim(i) || !shared_.provisional.reclaim(i);
}

}  // namespace margay::dp
