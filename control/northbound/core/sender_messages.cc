// SPDX-License-Identifier: Apache-2.0
// What a SenderSession sends: which changes are due, and the messages.
#include <algorithm>

#include "control/northbound/core/sender_session.h"

namespace margay::northbound {

// Before the first collection round is over there is no snapshot, and what this epoch has committed goes without one
// (D-55). Later it would only repeat what the snapshot brings.
bool SenderSession::may_send(const RowStore& store, const Part& part) const {
  return !part.too_large && (part.in_step || !store.first_round_over());
}

bool SenderSession::due(const RowStore& store, const std::string& cs_id, const Part& part, Kind kind,
                        Nanoseconds now) const {
  if (!may_send(store, part)) return false;
  switch (kind) {
    case Kind::kCritical:
      return store.part(cs_id).newest_critical > part.sent;
    case Kind::kHeartbeat:
      return part.changed_at <= heartbeat_at_;
    case Kind::kRoutine:
      return now >= std::max(part.changed_at + config_.gather, part.routine_at);
  }
  return false;
}

Nanoseconds SenderSession::due_of(const RowStore& store, const std::string& cs_id, const Part& part) const {
  if (!may_send(store, part)) return kNever;
  const Nanoseconds routine = std::max({part.changed_at + config_.gather, part.routine_at, routine_.next()});
  return due(store, cs_id, part, Kind::kCritical, 0) ? std::min(routine, critical_.next()) : routine;
}

Message SenderSession::make(Body body, Time now, std::vector<RowPtr> rows) {
  Message message{Header{Direction::kToCPs, config_.identity, config_.c_ps, their_challenge_, ++sequence_,
                         verifier_->last_sequence(), 0, now.unix_ms},
                  std::move(body)};
  unacked_.push_back({sequence_, now.monotonic, std::move(rows)});
  return message;
}

Message SenderSession::hello(const RowStore& store, Time now) {
  greeted_ = true;
  Hello hello{{kProtocolVersion}, config_.size_limit};
  for (const auto& [cs_id, part] : parts_) hello.cs_ids.push_back(cs_id);
  hello.challenge = challenge_;
  hello.epoch = store.epoch();
  hello.heartbeat = config_.heartbeat;
  return make(std::move(hello), now);
}

std::optional<Message> SenderSession::batch(const RowStore& store, Kind kind, Time now) {
  const Nanoseconds at = now.monotonic;
  if (kind != Kind::kHeartbeat && !(kind == Kind::kCritical ? critical_ : routine_).has(at)) return std::nullopt;
  const size_t whole_room = size_limit_ - kEnvelopeSize;
  size_t room = whole_room;
  Batch batch;
  std::vector<RowPtr> rows;
  const std::vector<std::string> changed(changed_.begin(), changed_.end());
  for (const std::string& cs_id : changed) {
    Part& part = parts_.at(cs_id);
    if (!due(store, cs_id, part, kind, at)) continue;
    const bool withdrawals_forgotten = part.in_step && part.sent < store.part(cs_id).low_water;
    Collected collected = collect(store, cs_id, part, room);
    if (withdrawals_forgotten || (!collected.whole && room == whole_room && part.in_step)) {
      part.in_step = false;  // a snapshot of it instead, which is applied as one too
      want_snapshot_.insert(cs_id);
      continue;
    }
    if (!collected.whole && room < whole_room) continue;  // has more room in a message of its own
    if (!collected.whole && collected.delta.through.commit <= part.sent) {
      part.too_large = true;
      continue;
    }
    room -= collected.size;
    part.sent = collected.delta.through.commit;
    if (collected.whole) changed_.erase(cs_id);
    if (kind == Kind::kRoutine) part.routine_at = at + config_.minimum_interval;
    batch.deltas.push_back(std::move(collected.delta));
    rows.insert(rows.end(), collected.rows.begin(), collected.rows.end());
  }
  if (batch.deltas.empty()) return std::nullopt;
  if (kind != Kind::kHeartbeat) (kind == Kind::kCritical ? critical_ : routine_).take(at);
  return make(std::move(batch), now, std::move(rows));
}

// Whole commits, from the oldest one on. A withdrawal goes with the site row, where there is one (D-1, D-40).
SenderSession::Collected SenderSession::collect(const RowStore& store, const std::string& cs_id, const Part& part,
                                                size_t room) {
  const RowStore::Part& rows = store.part(cs_id);
  const RowKey site_key{cs_id};
  Collected out;
  out.delta.change.cs_id = cs_id;
  out.delta.after = {store.epoch(), std::max(part.sent, part.in_step ? 0 : rows.low_water)};
  out.delta.through = {store.epoch(), rows.newest};
  out.size = kDeltaSize + size_of(Row{site_key});  // with a site row, whether one comes or not
  for (auto it = rows.log.lower_bound({part.sent + 1, std::nullopt}); it != rows.log.end();) {
    const uint64_t commit = it->first;
    const auto first = it;
    size_t size = 0;
    for (; it != rows.log.end() && it->first == commit; ++it) size += size_of(Row{RowKey{cs_id, it->second}});
    if (out.size + size > room) {
      out.whole = false;
      out.delta.through.commit = first == rows.log.begin() ? part.sent : std::max(part.sent, std::prev(first)->first);
      break;
    }
    out.size += size;
    for (auto key = first; key != it; ++key) {
      add(RowKey{cs_id, key->second}, commit, rows.entries.at(key->second), store.epoch(), out);
    }
  }
  const auto site = rows.entries.find(std::nullopt);
  const auto is_site = [](const Row& row) { return !row.key.csci_id; };
  const auto& sent = out.delta.change.rows;
  if (!out.delta.change.withdrawals.empty() && site != rows.entries.end() && site->second.row != nullptr &&
      std::none_of(sent.begin(), sent.end(), is_site)) {
    add(site_key, site->second.commit, site->second, store.epoch(), out);
  }
  return out;
}

void SenderSession::add(const RowKey& key, uint64_t commit, const RowStore::Entry& entry, uint64_t epoch,
                        Collected& out) {
  if (entry.row == nullptr) {
    out.delta.change.withdrawals.push_back({key, {epoch, commit}, entry.reason});
  } else if (!is_refused(*entry.row)) {
    out.delta.change.rows.push_back(*entry.row);
    out.rows.push_back(entry.row);
  }
}

// Changes that wait go first, however lately the last went (D-50), so that what the C-PS compares is what we hold.
std::optional<Message> SenderSession::heartbeat(const RowStore& store, Time now) {
  if (now.monotonic < heartbeat_at_) return std::nullopt;
  if (takes_digests_) {
    if (!keepalive_from_) {
      if (auto message = batch(store, Kind::kHeartbeat, now)) return message;
      keepalive_from_ = "";
    }
    return keepalive(store, now);
  }
  for (const auto& [cs_id, part] : parts_) want_snapshot_.insert(cs_id);
  while (heartbeat_at_ <= now.monotonic) heartbeat_at_ += config_.heartbeat;
  return std::nullopt;
}

Message SenderSession::keepalive(const RowStore& store, Time now) {
  Keepalive keepalive;
  size_t room = size_limit_ - kEnvelopeSize;
  for (auto part = parts_.lower_bound(*keepalive_from_); part != parts_.end(); ++part) {
    if (!part->second.in_step || part->second.under_way || want_snapshot_.contains(part->first)) continue;
    View of_part = view(store, part->first, part->second);
    if (size_of(of_part) > room) {
      keepalive_from_ = part->first;
      return make(std::move(keepalive), now);
    }
    room -= size_of(of_part);
    keepalive.views.push_back(std::move(of_part));
  }
  keepalive_from_.reset();
  while (heartbeat_at_ <= now.monotonic) heartbeat_at_ += config_.heartbeat;
  return make(std::move(keepalive), now);
}

View SenderSession::view(const RowStore& store, const std::string& cs_id, const Part& part) const {
  View out{{cs_id, {store.epoch(), part.sent}}};
  if (changed_.contains(cs_id)) return out;
  const RowStore::Part& rows = store.part(cs_id);
  out.check = View::Check{rows.rows, rows.digest};
  for (auto refused = refused_.lower_bound(RowKey{cs_id}); refused != refused_.end(); ++refused) {
    if (refused->first.cs_id != cs_id) break;
    const auto entry = rows.entries.find(refused->first.csci_id);
    if (entry == rows.entries.end() || !entry->second.row || !is_refused(*entry->second.row)) continue;
    --out.check->rows;
    out.check->digest -= digest_of(refused->first, refused->second.version);
  }
  return out;
}

std::optional<Message> SenderSession::snapshot(const RowStore& store, Time now) {
  if (snapshot_) return snapshot_->next < snapshot_->rows.size() ? chunk(now) : end_snapshot(now);
  if (want_snapshot_.empty() || !store.first_round_over() || !routine_.take(now.monotonic)) return std::nullopt;
  return begin_snapshot(store, now);
}

Message SenderSession::begin_snapshot(const RowStore& store, Time now) {
  snapshot_ = Snapshot{};
  SnapshotBegin& begin = snapshot_->begin;
  begin.id = ++snapshots_;
  begin.version = store.newest();
  size_t room = size_limit_ - kEnvelopeSize;
  while (!want_snapshot_.empty() && size_of(RowKey{*want_snapshot_.begin()}) <= room) {
    const std::string cs_id = want_snapshot_.extract(want_snapshot_.begin()).value();
    room -= size_of(RowKey{cs_id});
    Part& part = parts_.at(cs_id);
    part = Part{store.newest().commit, true, true, sequence_ + 1, false, 0, part.routine_at};
    changed_.erase(cs_id);
    forget_refused(cs_id, false);
    for (const auto& [id, entry] : store.part(cs_id).entries) {
      if (entry.row && !is_refused(*entry.row)) snapshot_->rows.push_back(entry.row);
    }
    begin.cs_ids.push_back(cs_id);
  }
  begin.rows = snapshot_->rows.size();
  return make(begin, now);
}

Message SenderSession::chunk(Time now) {
  SnapshotChunk chunk{snapshot_->begin.id};
  std::vector<RowPtr> rows;
  size_t room = size_limit_ - kEnvelopeSize;
  for (size_t& next = snapshot_->next; next < snapshot_->rows.size(); ++next) {
    const RowPtr& row = snapshot_->rows[next];
    if (size_of(*row) > room) break;
    room -= size_of(*row);
    snapshot_->digest += digest_of(row->key, row->version);
    chunk.rows.push_back(*row);
    rows.push_back(row);
  }
  return make(std::move(chunk), now, std::move(rows));
}

Message SenderSession::end_snapshot(Time now) {
  SnapshotEnd end{snapshot_->begin.id, snapshot_->digest};
  for (const std::string& cs_id : snapshot_->begin.cs_ids) parts_.at(cs_id).under_way = false;
  snapshot_.reset();
  return make(end, now);
}

}  // namespace margay::northbound
