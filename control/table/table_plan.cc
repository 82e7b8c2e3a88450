// SPDX-License-Identifier: Apache-2.0
#include "control/table/table_plan.h"

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <utility>

#include "common/check.h"

namespace margay::control {

using shared_table::InstanceRecord;
using shared_table::kSnapshotBytesMax;
using shared_table::SciRecord;
using shared_table::Snapshot;

namespace {

constexpr uint32_t kNoPlace = std::numeric_limits<uint32_t>::max();

using ById = std::unordered_map<std::string_view, const InstanceRecord*>;

ById by_id(const SciRecord& sci) {
  ById map;
  for (const InstanceRecord& i : sci.instances) map[i.config.id] = &i;
  return map;
}
const InstanceRecord* find(const ById& map, const std::string& id) {
  const auto found = map.find(id);
  return found == map.end() ? nullptr : found->second;
}

// The same instance, whatever its limit and weight.
bool same(const InstanceConfig& a, const InstanceConfig& b) {
  return a.id == b.id && a.address == b.address && a.port == b.port;
}

SciRecord record_of(const SciConfig& sci) {
  SciRecord record{.index = kNoPlace, .policy = sci, .instances = {}};
  for (const InstanceConfig& i : sci.instances) {
    InstanceRecord& instance = record.instances.emplace_back();
    instance.index = kNoPlace;
    instance.config = i;
  }
  return record;
}

void take_load(InstanceRecord& to, const TableChanged::Load& from) {
  to.load = from.value;
  to.load_active = from.active;
  to.load_until = from.until;
  to.load_lifetime = from.lifetime;
}

void take_health(InstanceRecord& to, const InstanceRecord& from) {
  to.health = from.health;
  to.admin = from.admin;
  to.drain_deadline = from.drain_deadline;
  to.health_since = from.health_since;
  to.serves_since = from.serves_since;
  take_load(to, {from.load, from.load_active, from.load_until, from.load_lifetime});
  to.limit = std::min(from.limit, to.config.max_sessions);
}

void take_place(InstanceRecord& to, const InstanceRecord& from) {
  to.index = from.index;
  to.generation = from.generation;
}

void inherit(SciRecord& next, const SciRecord& now, bool health) {
  const bool stays = next.policy.mode == now.policy.mode;
  if (stays) next.index = now.index;
  const ById earlier = by_id(now);
  for (InstanceRecord& i : next.instances) {
    const InstanceRecord* before = find(earlier, i.config.id);
    if (before == nullptr || !same(before->config, i.config)) continue;
    if (health) take_health(i, *before);
    if (stays) take_place(i, *before);
  }
}

bool same_place(const InstanceRecord& a, const InstanceRecord& b) {
  return a.index == b.index && a.generation == b.generation;
}

// Nothing differs but what health monitor and operator say.
bool same_structure(const SciRecord& a, const SciRecord& b) {
  return a.index == b.index && a.policy == b.policy &&
         std::equal(a.instances.begin(), a.instances.end(), b.instances.begin(), b.instances.end(),
                    [](const auto& x, const auto& y) { return same_place(x, y) && x.config == y.config; });
}

Result<void> check_size(const std::map<std::string, SciRecord>& scis) {
  const size_t empty = encode(Snapshot{.generation = 1, .base = 0, .scis = {}, .removed = {}}).size();
  size_t bytes = empty;
  for (const auto& [name, sci] : scis) {
    bytes += encode(Snapshot{.generation = 1, .base = 0, .scis = {sci}, .removed = {}}).size() - empty;
    if (bytes > kSnapshotBytesMax) {
      return Error{"scis[" + name + "]: with it the table for the data plane would be longer than " +
                   std::to_string(kSnapshotBytesMax) + " bytes"};
    }
  }
  return {};
}

Nanoseconds age_of(Nanoseconds since, Nanoseconds now) { return now > since ? now - since : 0; }

}  // namespace

Result<void> TablePlan::configure(const std::vector<SciConfig>& scis) {
  Scis next;
  for (const SciConfig& sci : scis) {
    SciRecord& record = next[sci.csci_id] = record_of(sci);
    const auto now = wanted_.find(sci.csci_id);
    if (now != wanted_.end()) inherit(record, now->second, true);
  }
  if (auto done = check_size(next); !done) return done;
  if (attached_) {
    IndexPool pool = pool_;
    if (auto done = place(next, pool); !done) return done;
    pool_ = std::move(pool);
    placed_ = true;
  }
  for (const auto& [name, sci] : next) {
    const auto now = wanted_.find(name);
    if (now == wanted_.end() || now->second != sci) changed_.insert(name);
  }
  for (const auto& [name, sci] : wanted_) {
    if (next.count(name) == 0) changed_.insert(name);
  }
  wanted_ = std::move(next);
  if (held_) retry();
  return {};
}

Result<void> TablePlan::place(Scis& scis, IndexPool& pool) const {
  pool.forget();
  for (const auto& [name, sci] : scis) {
    if (sci.index != kNoPlace) pool.keep_sci(sci.index);
    for (const InstanceRecord& i : sci.instances) {
      if (i.index != kNoPlace) pool.keep_instance(i.index);
    }
  }
  for (auto& [name, sci] : scis) {
    if (sci.index == kNoPlace) {
      const auto index = pool.take_sci();
      if (!index) {
        return Error{"scis[" + name + "]: the data plane has room for " + std::to_string(pool.capacity().scis) +
                     " SCIs, and none is left"};
      }
      sci.index = *index;
    }
    for (InstanceRecord& i : sci.instances) {
      if (i.index != kNoPlace) continue;
      const auto where = pool.take_instance(sci.index);
      if (!where) {
        return Error{"scis[" + name + "].instances[" + i.config.id + "]: the data plane has room for " +
                     std::to_string(pool.capacity().instances) + " instances, and none is left"};
      }
      i.index = where->index;
      i.generation = where->generation;
    }
  }
  return {};
}

void TablePlan::apply(const std::string& csci_id, const TableChanged& change) {
  const auto found = wanted_.find(csci_id);
  if (found == wanted_.end()) return;
  std::unordered_map<std::string_view, const TableChanged::Entry*> entries;
  for (const TableChanged::Entry& e : change.changed) entries[e.id] = &e;
  for (InstanceRecord& i : found->second.instances) {
    const auto entry = entries.find(i.config.id);
    if (entry == entries.end()) continue;
    const TableChanged::Entry& e = *entry->second;
    i.health = e.health;
    i.health_since = e.health_since;
    i.serves_since = e.serves_since;
    i.admin = e.admin;
    i.drain_deadline = e.drain_deadline;
    take_load(i, e.load.value_or(TableChanged::Load{}));
    i.limit = std::min(e.limit, i.config.max_sessions);
    i.config.weight = static_cast<uint16_t>(std::min<uint32_t>(e.weight, std::numeric_limits<uint16_t>::max()));
    changed_.insert(csci_id);
  }
}

Result<void> TablePlan::adopt(const std::optional<Snapshot>& running, IndexPool::Counts counts) {
  attached_ = true;
  placed_ = held_ = false;
  flying_.reset();
  base_ = 0;
  taken_.clear();
  taken_by_name_.clear();
  pool_.connect(std::move(counts));
  std::map<std::string_view, const SciRecord*> found;
  if (running) {
    generation_ = std::max(generation_, running->generation);
    for (const SciRecord& sci : running->scis) {
      enter(sci);
      found[sci.policy.csci_id] = &sci;
    }
  }
  for (auto& [name, sci] : wanted_) {
    sci.index = kNoPlace;
    for (InstanceRecord& i : sci.instances) i.index = kNoPlace;
    const auto before = found.find(name);
    if (before != found.end()) inherit(sci, *before->second, false);
  }
  auto done = place(wanted_, pool_);
  placed_ = done.has_value();
  return done;
}

bool TablePlan::pending() const { return placed() && !flying_ && (base_ == 0 || !changed_.empty()); }

// What the data plane took of an SCI, with the newest of the instances that still are as it knows them.
SciRecord TablePlan::held_back(const SciRecord& taken) const {
  const auto found = wanted_.find(taken.policy.csci_id);
  if (found == wanted_.end()) return taken;
  if (same_structure(found->second, taken)) return found->second;
  SciRecord record = taken;
  const ById wanted = by_id(found->second);
  for (InstanceRecord& i : record.instances) {
    const InstanceRecord* now = find(wanted, i.config.id);
    if (now != nullptr && same_place(*now, i)) take_health(i, *now);
  }
  return record;
}

Snapshot TablePlan::next() const {
  Snapshot snapshot{.generation = generation_ + 1, .base = base_, .scis = {}, .removed = {}};
  if (base_ == 0 && held_) {
    for (const auto& [index, sci] : taken_) snapshot.scis.push_back(held_back(sci));
  } else if (base_ == 0) {
    for (const auto& [name, sci] : wanted_) snapshot.scis.push_back(sci);
  } else {
    for (const std::string& name : changed_) add_change(name, snapshot);
  }
  return snapshot;
}

void TablePlan::add_change(const std::string& name, Snapshot& snapshot) const {
  const auto taken = taken_by_name_.find(name);
  const bool has = taken != taken_by_name_.end();
  if (held_) {
    if (has) snapshot.scis.push_back(held_back(taken_.at(taken->second)));
    return;
  }
  const auto wanted = wanted_.find(name);
  const bool stays = wanted != wanted_.end();
  if (stays) snapshot.scis.push_back(wanted->second);
  if (has && (!stays || wanted->second.index != taken->second)) snapshot.removed.push_back(taken->second);
}

void TablePlan::committed(Snapshot snapshot) {
  generation_ = snapshot.generation;
  flying_ = std::move(snapshot);
  changed_.clear();
}

void TablePlan::taken() {
  MARGAY_CHECK(flying_.has_value());
  const Snapshot now = std::move(*std::exchange(flying_, std::nullopt));
  std::set<uint32_t> gone(now.removed.begin(), now.removed.end());
  if (now.base == 0) {
    for (const auto& [index, sci] : taken_) gone.insert(index);
  }
  for (const SciRecord& sci : now.scis) gone.insert(sci.index);  // as it was
  for (const uint32_t index : gone) {
    const auto found = taken_.find(index);
    if (found == taken_.end()) continue;
    pool_.left(found->second, now.generation);
    taken_by_name_.erase(found->second.policy.csci_id);
    taken_.erase(found);
  }
  for (const SciRecord& sci : now.scis) enter(sci);
  base_ = now.generation;
}

void TablePlan::enter(const SciRecord& sci) {
  pool_.entered(sci);
  taken_[sci.index] = sci;
  taken_by_name_[sci.policy.csci_id] = sci.index;
}

void TablePlan::refused() {
  MARGAY_CHECK(flying_.has_value());
  flying_.reset();
  base_ = 0;
  if (held_) return;
  place_anew();
  held_ = !taken_.empty();
}

void TablePlan::retry() {
  held_ = false;
  base_ = 0;
}

void TablePlan::place_anew() {
  Scis next = wanted_;
  for (auto& [name, sci] : next) {
    const auto found = taken_.find(sci.index);
    const bool known = found != taken_.end() && found->second.policy.csci_id == name;
    if (!known) sci.index = kNoPlace;
    const ById before = known ? by_id(found->second) : ById{};
    for (InstanceRecord& i : sci.instances) {
      const InstanceRecord* same_one = find(before, i.config.id);
      if (same_one == nullptr || !same_place(*same_one, i)) i.index = kNoPlace;
    }
  }
  IndexPool pool = pool_;
  if (!place(next, pool)) return;
  pool_ = std::move(pool);
  wanted_ = std::move(next);
}

std::vector<Sci::Known> known_of(const Snapshot& running, const SciConfig& sci, Nanoseconds now) {
  std::vector<Sci::Known> known;
  const auto found = std::find_if(running.scis.begin(), running.scis.end(),
                                  [&](const SciRecord& r) { return r.policy.csci_id == sci.csci_id; });
  if (found == running.scis.end()) return known;
  const ById records = by_id(*found);
  for (const InstanceConfig& i : sci.instances) {
    const InstanceRecord* r = find(records, i.id);
    if (r == nullptr || !same(r->config, i)) continue;
    Sci::Known& k = known.emplace_back();
    k.id = i.id;
    k.health = {.state = r->health,
                .age = age_of(r->health_since, now),
                .serves_age = serves(r->health) ? age_of(r->serves_since, now) : 0};
    if (r->admin == Admin::kDraining) k.drain_deadline = r->drain_deadline;
  }
  return known;
}

}  // namespace margay::control
