// SPDX-License-Identifier: Apache-2.0
#include "control/cps/core/saved_state.h"

#include <algorithm>

namespace margay::cps {
namespace {

using northbound::RowKey;

SavedPart save(const std::string& cs_id, const ServiceTable::Part& part, Nanoseconds now) {
  SavedPart out{cs_id, part.floor, part.position, {}, {}};
  if (!part.refused.empty()) out.position.reset();  // so that it is sent once more
  for (const auto& [id, held] : part.rows) {
    SavedRow row{held.row, ServiceTable::silence(part, held, now)};
    row.row.measured_at = now - held.row.measured_at;
    out.rows.push_back(std::move(row));
  }
  for (const auto& [id, gone] : part.tombstones) {
    out.tombstones.push_back({RowKey{cs_id, id}, gone.version, gone.reason});
  }
  return out;
}

Result<ServiceTable::Site> site_of(const SavedSite& saved, Nanoseconds now, Nanoseconds apart) {
  ServiceTable::Site site{saved.epoch, {}, 0};
  for (const SavedPart& from : saved.parts) {
    const auto [place, is_new] = site.parts.try_emplace(from.cs_id);
    if (!is_new) return Error{saved.c_sma + ": CS-ID " + from.cs_id + " stands twice"};
    ServiceTable::Part& part = place->second;
    part.floor = from.floor;
    part.position = from.position;
    for (const auto& [row, received_ago] : from.rows) {
      HeldRow held{row, now - received_ago - apart};
      held.row.measured_at = now - row.measured_at - apart;
      const bool good = row.key.cs_id == from.cs_id && row.version.epoch <= saved.epoch;
      if (!good || !part.rows.emplace(row.key.csci_id, held).second) {
        return Error{saved.c_sma + ": CS-ID " + from.cs_id + ": a row that stands twice or is not its own"};
      }
      part.digest += northbound::digest_of(row.key, row.version);
      ++site.rows;
    }
    for (const auto& [key, version, reason] : from.tombstones) {
      const bool good = key.cs_id == from.cs_id && !part.rows.contains(key.csci_id);
      if (!good || !part.tombstones.emplace(key.csci_id, ServiceTable::Tombstone{version, reason}).second) {
        return Error{saved.c_sma + ": CS-ID " + from.cs_id + ": a withdrawal that stands twice or is not its own"};
      }
      part.by_version.insert({version, key.csci_id});
    }
  }
  return site;
}

}  // namespace

SavedState save(const ServiceTable& table, const Peers& peers, Time now) {
  SavedState out{now.unix_ms, {}};
  for (const auto& [c_sma, site] : table.sites()) {
    SavedSite saved{c_sma, site.epoch, {}, {}};
    for (const auto& [cs_id, part] : site.parts) saved.parts.push_back(save(cs_id, part, now.monotonic));
    if (const auto peer = peers.find(c_sma); peer != peers.end()) {
      for (const auto& [key, window] : peer->second.nonces) saved.nonces.emplace_back(key.second, window.highest());
    }
    out.sites.push_back(std::move(saved));
  }
  return out;
}

Result<void> restore(const SavedState& saved, Time now, ServiceTable& table, Peers& peers) {
  const int64_t apart_ms = std::max<int64_t>(0, now.unix_ms - saved.unix_ms);
  const Nanoseconds apart = static_cast<Nanoseconds>(apart_ms) * kMillisecond;
  ServiceTable filled = table;
  Peers known = peers;
  for (const SavedSite& site : saved.sites) {
    Result<ServiceTable::Site> made = site_of(site, now.monotonic, apart);
    if (!made) return made.error();
    filled.adopt(site.c_sma, std::move(*made));
    for (const auto& [key_id, highest] : site.nonces) {
      known[site.c_sma].nonces[{site.c_sma, key_id}] = northbound::NonceWindow::used_up_to(highest);
    }
  }
  table = std::move(filled);
  peers = std::move(known);
  return {};
}

}  // namespace margay::cps
