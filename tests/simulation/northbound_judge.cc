// SPDX-License-Identifier: Apache-2.0
// What a C-PS may hold at any time, and what it must hold in the end.
#include <algorithm>

#include "tests/simulation/northbound_world.h"

namespace margay::test {

using northbound::Row;
using northbound::RowKey;
using northbound::RowVersion;

namespace {

std::string text_of(const RowKey& key) { return key.cs_id + "/" + key.csci_id.value_or("(site)"); }
std::string text_of(const RowVersion& v) { return std::to_string(v.epoch) + "." + std::to_string(v.commit); }

}  // namespace

void World::say(const CPsHost& host, const RowKey& key, const std::string& what) {
  if (wrong_.empty()) wrong_ = host.name + " at " + std::to_string(now_) + ": " + text_of(key) + ": " + what;
}

void World::judge(CPsHost& host) {
  for (const auto& [c_sma, site] : host.table.sites()) {
    for (const auto& [cs_id, part] : site.parts) {
      for (const auto& [id, held] : part.rows) judge_row(host, held.row);
    }
  }
  for (const auto& [key, version] : host.highest) {
    if (host.table.find("c-sma.sim", key) == nullptr) judge_absence(host, key, version);
  }
}

void World::judge_row(CPsHost& host, const Row& row) {
  const auto original = committed_.find({row.key, row.version});
  if (original == committed_.end()) return say(host, row.key, "never committed " + text_of(row.version));
  if (original->second != row.metrics.gas) return say(host, row.key, "another content at " + text_of(row.version));
  if (std::find(host.scope.begin(), host.scope.end(), row.key.cs_id) == host.scope.end()) {
    return say(host, row.key, "out of scope");
  }
  RowVersion& highest = host.highest[row.key];
  if (row.version < highest) return say(host, row.key, text_of(highest) + " went back to " + text_of(row.version));
  const auto gone = host.gone.find(row.key);
  if (gone != host.gone.end()) {
    if (row.version <= gone->second) return say(host, row.key, "revived at " + text_of(row.version));
    host.gone.erase(gone);
  }
  highest = row.version;
}

// A row that goes by a withdrawal goes together with its site row (D-1); in a snapshot, which has both, too.
void World::judge_absence(CPsHost& host, const RowKey& key, const RowVersion& version) {
  if (!host.gone.try_emplace(key, version).second) return;
  const std::vector<RowVersion>& versions = withdrawn_[key];
  // D-55: until then a C-SMA that died does not know who lives.
  const bool by_ignorance = !store_->first_round_over() && (versions.empty() || versions.back().epoch != epoch_);
  if (by_ignorance && version.epoch != epoch_) return say(host, key, "gone before the first round is over");
  if (!key.csci_id || versions.empty() || host.rows_max < 100) return;
  const auto by = std::upper_bound(versions.begin(), versions.end(), version);
  // A C-SMA that died between learns the two apart.
  if (by == versions.end() || by->epoch != version.epoch || version.epoch != epoch_) return;
  const cps::HeldRow* site = host.table.find("c-sma.sim", RowKey{key.cs_id});
  if (site == nullptr || site->row.version < *by) say(host, key, "withdrawn without its site row");
}

// What this C-PS has of a CS-ID: "", or what is wrong. `rows`: how many it should hold.
std::string World::difference(const CPsHost& host, const std::string& cs_id, size_t& rows) const {
  const auto& parts = host.table.sites().at("c-sma.sim").parts;
  const auto part = parts.find(cs_id);
  if (part == parts.end()) return host.name + ": nothing of " + cs_id;
  for (const auto& [id, entry] : store_->part(cs_id).entries) {
    if (!entry.row) continue;
    const auto held = part->second.rows.find(id);
    rows += held != part->second.rows.end() ? 1 : 0;
    if (held != part->second.rows.end() && held->second.row.version == entry.row->version) continue;
    const auto refused = part->second.refused.find(id);
    const bool had_no_room = host.rows_max < 100 && refused != part->second.refused.end();
    if (!had_no_room || refused->second != entry.row->version) {
      return host.name + ": " + text_of(RowKey{cs_id, id}) + " not at " + text_of(entry.row->version);
    }
  }
  return "";
}

std::string World::difference() const {
  for (const CPsHost& host : hosts_) {
    const auto site = host.table.sites().find("c-sma.sim");
    if (site == host.table.sites().end()) return host.name + ": no C-SMA";
    size_t rows = 0;
    for (const std::string& cs_id : host.scope) {
      if (std::string wrong = difference(host, cs_id, rows); !wrong.empty()) return wrong;
    }
    if (rows != site->second.rows) {
      return host.name + ": " + std::to_string(site->second.rows) + " rows, not " + std::to_string(rows);
    }
    if (host.mismatches + (host.session ? host.session->mismatches() : 0) > 0) return host.name + ": digests differed";
  }
  return "";
}

}  // namespace margay::test
