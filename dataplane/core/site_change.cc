// SPDX-License-Identifier: Apache-2.0
#include "dataplane/core/site_change.h"

#include <algorithm>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "dataplane/core/layout_builder.h"
#include "dataplane/core/rendezvous.h"

namespace margay::dp {

using shared_table::InstanceRecord;
using shared_table::SciRecord;
using shared_table::Snapshot;

namespace {

std::string name_of(const SciRecord& sci) { return "scis[" + sci.policy.csci_id + "]"; }
std::string name_of(const SciRecord& sci, const InstanceRecord& i) {
  return name_of(sci) + ".instances[" + i.config.id + "]";
}

bool same_host(const InstanceRecord& a, const InstanceRecord& b) {
  return a.index == b.index && a.generation == b.generation && a.config.id == b.config.id &&
         a.config.address == b.config.address && a.config.port == b.config.port && a.config.mac == b.config.mac;
}

// Does nothing of the layout change from one record to the other?
bool same_places(const SciRecord& a, const SciRecord& b) {
  return a.policy.endpoints == b.policy.endpoints && a.policy.mode == b.policy.mode && a.policy.gue == b.policy.gue &&
         std::equal(a.instances.begin(), a.instances.end(), b.instances.begin(), b.instances.end(), same_host);
}

class Applier {
 public:
  Applier(const SiteChange& change, const SiteTable& now, const Snapshot& snapshot)
      : change_(change), now_(now), snapshot_(snapshot), next_(now.clone()) {}

  Result<std::unique_ptr<SiteTable>> run() {
    if (auto done = check_generation(); !done) return done.error();
    find_removed();
    if (auto done = check_scis(); !done) return done.error();
    for (const SciIndex s : removed_) remove(s);
    for (const SciRecord& record : snapshot_.scis) put(record);
    if (moved_) {
      if (auto done = build_layout(); !done) return done.error();
    }
    next_->generation = snapshot_.generation;
    return std::move(next_);
  }

 private:
  Result<void> check_generation() const {
    if (snapshot_.generation <= now_.generation) {
      return Error{"generation " + std::to_string(snapshot_.generation) + ", expected above " +
                   std::to_string(now_.generation) + ", which runs"};
    }
    if (snapshot_.base != 0 && snapshot_.base != now_.generation) {
      return Error{"a change of generation " + std::to_string(snapshot_.base) + ", but " +
                   std::to_string(now_.generation) + " runs"};
    }
    return {};
  }

  void find_removed() {
    removed_ = snapshot_.removed;
    if (snapshot_.base != 0) return;
    std::unordered_set<uint32_t> named;
    for (const SciRecord& sci : snapshot_.scis) named.insert(sci.index);
    for (SciIndex s = 0; s < now_.scis.size(); ++s) {
      if (!now_.scis[s].gone() && named.count(s) == 0) removed_.push_back(s);
    }
  }

  Result<void> check_scis() {
    for (const SciIndex s : removed_) {
      if (s >= now_.scis.size() || now_.scis[s].gone()) {
        return Error{"removed: SCI " + std::to_string(s) + " is no part of the site"};
      }
    }
    for (const SciRecord& sci : snapshot_.scis) {
      if (auto done = check_sci(sci); !done) return done;
    }
    return {};
  }

  Result<void> check_sci(const SciRecord& sci) const {
    if (sci.index >= change_.scis_max) {
      return Error{name_of(sci) + ": index " + std::to_string(sci.index) + ", expected below " +
                   std::to_string(change_.scis_max)};
    }
    const bool was_there = sci.index < now_.scis.size() && now_.scis[sci.index].csci_id == sci.policy.csci_id;
    if (!was_there) {
      if (auto done = check_new(sci); !done) return done;
    } else if (now_.scis[sci.index].mode != sci.policy.mode && any_instance(sci.index, change_.in_use)) {
      return Error{name_of(sci) + ": mode cannot change while bindings of the other mode are there"};
    }
    for (const InstanceRecord& i : sci.instances) {
      if (auto done = check_instance(sci, i); !done) return done;
    }
    return {};
  }

  // Its name is at no other index, and nobody has its index.
  Result<void> check_new(const SciRecord& sci) const {
    const auto leaves = [&](SciIndex s) { return std::find(removed_.begin(), removed_.end(), s) != removed_.end(); };
    const SciIndex known = now_.sci_by_name(sci.policy.csci_id);
    if (known != kNoIndex && !leaves(known)) {
      return Error{name_of(sci) + ": index " + std::to_string(sci.index) + ", expected " + std::to_string(known) +
                   ", which it has"};
    }
    if (sci.index >= now_.scis.size()) return {};
    const Sci& old = now_.scis[sci.index];
    const auto named = [this](InstanceIndex i) { return may_be_named(i); };
    if (any_instance(sci.index, named) || (!old.gone() && !leaves(sci.index))) {
      return Error{name_of(sci) + ": index " + std::to_string(sci.index) + " is still in use by " + old.csci_id};
    }
    return {};
  }

  Result<void> check_instance(const SciRecord& sci, const InstanceRecord& i) const {
    if (i.index >= change_.instances_max) {
      return Error{name_of(sci, i) + ": index " + std::to_string(i.index) + ", expected below " +
                   std::to_string(change_.instances_max)};
    }
    if (i.index >= now_.instances.size() || now_.instances[i.index].si_id.empty()) return {};
    const Instance& old = now_.instances[i.index];
    const bool same = old.sci == sci.index && old.si_id == i.config.id && old.address == i.config.address &&
                      old.port == to_wire16(i.config.port);
    if (i.generation == old.generation && same) return {};
    if (i.generation <= old.generation) {
      return Error{name_of(sci, i) + ": index " + std::to_string(i.index) + " is " + old.si_id + "'s in generation " +
                   std::to_string(old.generation) + ", expected a higher one for another instance"};
    }
    if (may_be_named(i.index)) {
      return Error{name_of(sci, i) + ": index " + std::to_string(i.index) + " is still in use by " + old.si_id};
    }
    return {};
  }

  // By a worker, from now on: it may bind a flow to an instance until it has passed the table without it.
  bool may_be_named(InstanceIndex i) const {
    const bool there = i < now_.instances.size() && !now_.instances[i].si_id.empty() && !now_.instances[i].gone;
    return there || change_.in_use(i);
  }

  // Of an instance that left the SCI earlier, too.
  template <class Test>
  bool any_instance(SciIndex s, const Test& test) const {
    for (InstanceIndex i = 0; i < now_.instances.size(); ++i) {
      if (now_.instances[i].sci == s && test(i)) return true;
    }
    return false;
  }

  void remove(SciIndex s) {
    moved_ = true;
    Sci& sci = next_->scis.edit(s);
    let_go_of(sci.instances, s);
    sci.record = nullptr;  // its instances and frontends stay named until the index is used again
  }

  // Of an SCI that is gone, an index may be another's since.
  void let_go_of(const std::vector<InstanceIndex>& instances, SciIndex s) {
    for (const InstanceIndex i : instances) {
      if (next_->instances[i].sci == s) next_->instances.edit(i).gone = true;
    }
  }

  void put(const SciRecord& record) {
    next_->scis.grow(record.index + 1);
    Sci& sci = next_->scis.edit(record.index);
    const bool stays = sci.record != nullptr && same_places(*sci.record, record);
    if (!stays) {
      moved_ = true;
      let_go_of(sci.instances, record.index);
    }
    static_cast<SciPolicy&>(sci) = record.policy;
    sci.established = ticks_of(record.policy.affinity_timeout);
    sci.embryonic = ticks_of(record.policy.timers.embryonic);
    sci.closing = ticks_of(record.policy.timers.closing);
    sci.time_wait = ticks_of(record.policy.timers.time_wait);
    sci.reset_grace = ticks_of(record.policy.timers.reset_grace);
    sci.unreplied = ticks_of(record.policy.timers.unreplied);
    sci.ramp = ticks_of(record.policy.ramp);
    sci.record = std::make_shared<const SciRecord>(record);
    sci.instances.clear();
    for (const InstanceRecord& i : record.instances) {
      sci.instances.push_back(i.index);
      put(record, i);
    }
    rank(sci);
  }

  // By preference, the highest first, and where the policy says so by price (SCI-78); else as they came.
  static void rank(Sci& sci) {
    const auto& records = sci.record->instances;
    const auto key = [&sci](const InstanceRecord& i) {
      return std::pair(255 - i.config.preference, sci.cheapest_first ? i.config.price : 0);
    };
    std::vector<const InstanceRecord*> order;
    for (const InstanceRecord& i : records) order.push_back(&i);
    std::stable_sort(order.begin(), order.end(), [&](auto* a, auto* b) { return key(*a) < key(*b); });
    sci.by_tier.clear();
    sci.tier_ends.clear();
    sci.rendezvous_names.clear();
    sci.weight_max = 0;
    for (size_t k = 0; k < order.size(); ++k) {
      const InstanceRecord& i = *order[k];
      sci.by_tier.push_back(i.index);
      sci.weight_max = std::max(sci.weight_max, i.config.weight);
      if (sci.balance == Balance::kConsistentHash) {
        sci.rendezvous_names.push_back(rendezvous_name(sci.csci_id, i.config.id));
      }
      const bool ends = k + 1 == order.size() || key(i) < key(*order[k + 1]);
      if (ends) sci.tier_ends.push_back(static_cast<uint32_t>(k + 1));
    }
  }

  void put(const SciRecord& sci, const InstanceRecord& record) {
    next_->instances.grow(record.index + 1);
    Instance& i = next_->instances.edit(record.index);
    i.sci = sci.index;
    i.address = record.config.address;
    i.port = to_wire16(record.config.port);
    i.generation = record.generation;
    i.weight = record.config.weight;
    i.health = record.health;
    i.admin = record.admin;
    i.drain_deadline = record.admin == Admin::kDraining ? change_.to_tick(record.drain_deadline) : 0;
    i.on_unhealthy = sci.policy.on_unhealthy;
    i.ramp_end = change_.to_tick(record.serves_since == 0 ? 0 : record.serves_since + sci.policy.ramp);
    i.gone = false;
    i.max_sessions = record.config.max_sessions;
    i.limit = record.limit;
    i.barred = record.config.security_level < sci.policy.security_level_min;
    i.load = static_cast<float>(record.load);
    i.load_active = record.load_active;
    i.load_until = change_.to_tick(record.load_until);
    i.load_lifetime = record.load_until == 0 ? 0 : ticks_of(record.load_lifetime);
    i.si_id = record.config.id;
    const IpAddress source = i.tunnel.source;  // the layout's
    i.tunnel = tunnel_of(sci.policy, i.address);
    i.tunnel.source = source;
    i.bytes_added = i.tunnel.bytes;
  }

  Result<void> build_layout() {
    size_t keys = 0;
    for (const Sci& sci : next_->scis) keys += sci.endpoints.size() * 2 + sci.instances.size() * 2;
    std::vector<MacAddress> macs;
    for (const TablePort& port : now_.ports) macs.push_back(port.mac);
    LayoutBuilder builder(change_.config, macs, &now_.layout(), keys);
    keep_what_is_in_use(builder);
    for (SciIndex s = 0; s < next_->scis.size(); ++s) {
      if (next_->scis[s].gone()) continue;
      if (auto done = place_frontends(builder, s); !done) return done;
    }
    for (SciIndex s = 0; s < next_->scis.size(); ++s) {
      if (next_->scis[s].gone()) continue;
      if (auto done = place_instances(builder, s); !done) return done;
    }
    next_->set_layout(builder.finish());
    return {};
  }

  // Instances that went, and every frontend by which bindings of its SCI may be found: also one that its SCI has no
  // longer.
  void keep_what_is_in_use(LayoutBuilder& builder) const {
    std::unordered_set<SciIndex> scis;
    for (InstanceIndex i = 0; i < next_->instances.size(); ++i) {
      const Instance& instance = next_->instances[i];
      if (change_.in_use(i)) scis.insert(instance.sci);
      if (instance.gone && may_be_named(i)) builder.keep_instance(i, instance.endpoint);
    }
    for (FrontendIndex f = 0; f < now_.frontends.size(); ++f) {
      const SciIndex s = now_.frontends[f].sci;
      if (s == kNoIndex) continue;
      const auto& listed = now_.scis[s].frontends;
      const bool there = !now_.scis[s].gone() && std::find(listed.begin(), listed.end(), f) != listed.end();
      if (there || !change_.passed || scis.count(s) > 0) builder.keep_frontend(f);
    }
  }

  Result<void> place_frontends(LayoutBuilder& builder, SciIndex s) {
    const Sci& sci = next_->scis[s];
    std::vector<FrontendIndex> frontends;
    for (const Endpoint& e : sci.endpoints) {
      auto frontend = builder.add_frontend(e, s);
      if (!frontend) return in(name_of(*sci.record) + ".endpoints", frontend.error());
      frontends.push_back(*frontend);
    }
    if (sci.frontends != frontends) next_->scis.edit(s).frontends = std::move(frontends);
    return {};
  }

  Result<void> place_instances(LayoutBuilder& builder, SciIndex s) {
    const Sci& sci = next_->scis[s];
    for (const InstanceRecord& record : sci.record->instances) {
      auto place = builder.add_instance(record.index, record.config, sci);
      if (!place) return in(name_of(*sci.record, record) + ".address", place.error());
      const Instance& i = next_->instances[record.index];
      const bool same_source = i.tunnel.source == place->source;
      if (i.next_hop == place->next_hop && i.endpoint == place->endpoint && same_source) continue;
      Instance& moved = next_->instances.edit(record.index);
      moved.next_hop = place->next_hop;
      moved.endpoint = place->endpoint;
      moved.tunnel.source = place->source;
    }
    return {};
  }

  const SiteChange& change_;
  const SiteTable& now_;
  const Snapshot& snapshot_;
  std::unique_ptr<SiteTable> next_;
  std::vector<SciIndex> removed_;
  bool moved_ = false;  // hosts or endpoints are not where they were
};

}  // namespace

Result<std::unique_ptr<SiteTable>> SiteChange::apply(const SiteTable& now, const Snapshot& snapshot) const {
  if (!now.waiting) return Applier(*this, now, snapshot).run();
  SiteChange first = *this;
  first.in_use = [](InstanceIndex) { return false; };
  first.passed = true;
  return Applier(first, *now.without_scis(), snapshot).run();
}

Snapshot snapshot_of(const SiteTable& table) {
  Snapshot snapshot;
  snapshot.generation = table.generation;
  for (const Sci& sci : table.scis) {
    if (!sci.gone()) snapshot.scis.push_back(*sci.record);
  }
  return snapshot;
}

}  // namespace margay::dp
