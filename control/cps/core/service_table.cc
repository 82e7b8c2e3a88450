// SPDX-License-Identifier: Apache-2.0
#include "control/cps/core/service_table.h"

#include <algorithm>

#include "common/check.h"

namespace margay::cps {

using northbound::Delta;
using northbound::NackCode;
using northbound::Row;
using northbound::RowKey;
using northbound::RowVersion;
using northbound::View;
using northbound::Withdrawal;

bool ServiceTable::begin_session(const std::string& c_sma, uint64_t epoch, const std::set<std::string>& scope) {
  Site& site = sites_[c_sma];
  if (epoch < site.epoch) return false;
  site.epoch = epoch;
  for (auto& [cs_id, part] : site.parts) {
    if (scope.contains(cs_id)) continue;
    for (auto row = part.rows.begin(); row != part.rows.end();) {
      part.floor = std::max(part.floor, row->second.row.version);
      erase(site, part, row++);
    }
    part.position.reset();
    part.refused.clear();
  }
  for (const std::string& cs_id : scope) site.parts[cs_id];
  return true;
}

std::vector<northbound::Position> ServiceTable::resume(std::string_view c_sma) const {
  std::vector<northbound::Position> positions;
  const auto site = sites_.find(c_sma);
  if (site == sites_.end()) return positions;
  for (const auto& [cs_id, part] : site->second.parts) {
    // A floor above means that an old row which is still to come would not be believed; what was refused is asked for
    // once more.
    if (!part.position || part.floor > *part.position || !part.refused.empty()) continue;
    positions.push_back({cs_id, *part.position});
  }
  return positions;
}

bool ServiceTable::is_old(const Part& part, const CsciId& id, const RowVersion& version, bool of_snapshot) {
  if (const auto held = part.rows.find(id); held != part.rows.end()) return version < held->second.row.version;
  if (const auto gone = part.tombstones.find(id); gone != part.tombstones.end()) return version < gone->second.version;
  return !of_snapshot && version <= part.floor;
}

// Of a row that is not old. False: no room.
bool ServiceTable::put(Site& site, Part& part, const Row& row, Nanoseconds now) {
  const CsciId& id = row.key.csci_id;
  const auto held = part.rows.find(id);
  if (held == part.rows.end() && site.rows >= limits_.rows_max) return false;
  if (held != part.rows.end()) {
    part.digest -= northbound::digest_of(row.key, held->second.row.version);
  } else {
    ++site.rows;
  }
  part.rows[id] = HeldRow{row, now};
  part.digest += northbound::digest_of(row.key, row.version);
  if (const auto refused = part.refused.find(id); refused != part.refused.end() && refused->second <= row.version) {
    part.refused.erase(refused);
  }
  if (const auto gone = part.tombstones.find(id); gone != part.tombstones.end()) {
    part.by_version.erase({gone->second.version, id});
    part.tombstones.erase(gone);
  }
  return true;
}

Refusal ServiceTable::refuse(Part& part, const Row& row, NackCode code) {
  RowVersion& newest = part.refused[row.key.csci_id];
  newest = std::max(newest, row.version);
  return {{row.key, row.version}, code};
}

void ServiceTable::erase(Site& site, Part& part, std::map<CsciId, HeldRow>::iterator row) {
  part.digest -= northbound::digest_of(row->second.row.key, row->second.row.version);
  part.rows.erase(row);
  --site.rows;
}

void ServiceTable::withdraw(Site& site, Part& part, const Withdrawal& withdrawal) {
  const CsciId& id = withdrawal.key.csci_id;
  if (is_old(part, id, withdrawal.version, false)) {
    ++ignored_;
    return;
  }
  if (const auto held = part.rows.find(id); held != part.rows.end()) erase(site, part, held);
  part.refused.erase(id);
  const auto [gone, is_new] = part.tombstones.try_emplace(id);
  if (!is_new) part.by_version.erase({gone->second.version, id});
  gone->second = {withdrawal.version, withdrawal.reason};
  part.by_version.insert({withdrawal.version, id});
}

// Not while a delta is taken in: its rows may be older than the tombstones that go.
void ServiceTable::forget_tombstones(Part& part) {
  while (part.by_version.size() > limits_.tombstones_max) {
    const auto [version, id] = *part.by_version.begin();
    part.by_version.erase(part.by_version.begin());
    part.tombstones.erase(id);
    part.floor = std::max(part.floor, version);
  }
}

std::vector<Refusal> ServiceTable::apply(const std::string& c_sma, const Delta& delta, Staged* staged,
                                         Nanoseconds now) {
  Site& site = sites_.at(c_sma);
  Part& part = site.parts.find(delta.change.cs_id)->second;
  std::vector<Refusal> refusals;
  const auto fits = [&](const RowVersion& v) { return v.epoch == site.epoch && v <= delta.through; };
  for (const Withdrawal& withdrawal : delta.change.withdrawals) {
    if (fits(withdrawal.version)) {
      withdraw(site, part, withdrawal);
    } else {
      refusals.push_back({{withdrawal.key, withdrawal.version}, NackCode::kWrongVersion});
    }
  }
  for (const Row& row : delta.change.rows) {
    if (!fits(row.version)) {
      refusals.push_back(refuse(part, row, NackCode::kWrongVersion));
    } else if (is_old(part, row.key.csci_id, row.version, false)) {
      ++ignored_;
    } else if (!put(site, part, row, now)) {
      refusals.push_back(refuse(part, row, NackCode::kTableFull));
    }
  }
  if (staged == nullptr) forget_tombstones(part);  // else the snapshot could still bring what they are of
  const bool joins = part.position && delta.after <= *part.position && delta.after.epoch == part.position->epoch;
  if (staged != nullptr) {
    RowVersion& known = staged->deltas.try_emplace(delta.change.cs_id, staged->begin.version).first->second;
    if (delta.after <= known) known = std::max(known, delta.through);
  } else if (joins) {
    part.position = std::max(*part.position, delta.through);
  }
  return refusals;
}

// What the snapshot does not have and is not newer is gone.
void ServiceTable::sweep(Site& site, Part& part, const std::string& cs_id, const Staged& staged) {
  for (auto row = part.rows.begin(); row != part.rows.end();) {
    const auto next = std::next(row);
    const bool gone =
        row->second.row.version <= staged.begin.version && !staged.rows.contains(RowKey{cs_id, row->first});
    if (gone) erase(site, part, row);
    row = next;
  }
  std::erase_if(part.refused, [&](const auto& refused) { return refused.second <= staged.begin.version; });
}

std::vector<Refusal> ServiceTable::apply(const std::string& c_sma, Staged& staged, Nanoseconds now) {
  Site& site = sites_.at(c_sma);
  const RowVersion& version = staged.begin.version;
  for (const std::string& cs_id : staged.begin.cs_ids) sweep(site, site.parts.find(cs_id)->second, cs_id, staged);
  std::vector<Refusal> refusals;
  for (const auto& [key, row] : staged.rows) {
    Part& part = site.parts.find(key.cs_id)->second;
    if (row.version.epoch != site.epoch || row.version > version) {
      refusals.push_back(refuse(part, row, NackCode::kWrongVersion));
    } else if (is_old(part, key.csci_id, row.version, true)) {
      ++ignored_;
    } else if (!put(site, part, row, now)) {
      refusals.push_back(refuse(part, row, NackCode::kTableFull));
    }
  }
  for (const std::string& cs_id : staged.begin.cs_ids) {
    Part& part = site.parts.find(cs_id)->second;
    while (!part.by_version.empty() && part.by_version.begin()->first <= version) {
      part.tombstones.erase(part.by_version.begin()->second);
      part.by_version.erase(part.by_version.begin());
    }
    part.floor = std::max(part.floor, version);
    forget_tombstones(part);
    const auto later = staged.deltas.find(cs_id);
    part.position = later == staged.deltas.end() ? version : later->second;
    part.renewed_at = now;
  }
  return refusals;
}

bool ServiceTable::renew(const std::string& c_sma, const View& view, bool compare, Nanoseconds now) {
  Part& part = sites_.at(c_sma).parts.find(view.position.cs_id)->second;
  if (part.position != view.position.through) return false;
  if (compare && view.check) {
    View::Check ours{part.rows.size(), part.digest};
    for (const auto& [id, version] : part.refused) {
      const auto held = part.rows.find(id);
      if (held == part.rows.end()) continue;
      --ours.rows;
      ours.digest -= northbound::digest_of(held->second.row.key, held->second.row.version);
    }
    if (ours != *view.check) return false;
  }
  part.renewed_at = now;
  return true;
}

void ServiceTable::forget(std::string_view c_sma) {
  const auto site = sites_.find(c_sma);
  if (site != sites_.end()) sites_.erase(site);
}

const HeldRow* ServiceTable::find(std::string_view c_sma, const RowKey& key) const {
  const auto site = sites_.find(c_sma);
  if (site == sites_.end()) return nullptr;
  const auto part = site->second.parts.find(key.cs_id);
  if (part == site->second.parts.end()) return nullptr;
  const auto row = part->second.rows.find(key.csci_id);
  return row == part->second.rows.end() ? nullptr : &row->second;
}

Nanoseconds ServiceTable::silence(const Part& part, const HeldRow& row, Nanoseconds now) {
  const Nanoseconds received = now - row.received_at;
  return part.renewed_at ? std::min(received, now - *part.renewed_at) : received;
}

bool ServiceTable::is_aged(const Part& part, const HeldRow& row, Nanoseconds now) {
  return silence(part, row, now) > row.row.valid_for;
}

size_t ServiceTable::aged(Nanoseconds now) const {
  size_t count = 0;
  for (const auto& [c_sma, site] : sites_) {
    for (const auto& [cs_id, part] : site.parts) {
      for (const auto& [id, row] : part.rows) count += is_aged(part, row, now) ? 1 : 0;
    }
  }
  return count;
}

}  // namespace margay::cps
