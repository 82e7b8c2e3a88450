// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/northbound_world.h"

#include <algorithm>

namespace margay::test {

using cps::ReceiverSession;
using northbound::Change;
using northbound::Fault;
using northbound::Message;
using northbound::NonceSource;
using northbound::Row;
using northbound::RowKey;
using northbound::RowVersion;
using northbound::SenderConfig;
using northbound::SenderSession;

namespace {

const std::string kCSma = "c-sma.sim";
constexpr size_t kTombstones = 1;  // of four SCIs a CS-ID: they are forgotten all the time

uint64_t take(NonceSource& source, uint64_t& reserved) {
  if (const auto wanted = source.wants()) source.written_down(reserved = *wanted);
  return source.take().value();
}

}  // namespace

World::World(uint64_t seed) : random_(seed), store_(std::make_unique<northbound::RowStore>(epoch_, kTombstones)) {
  store_->end_first_round();
  hosts_.push_back({"cps-all", {"a", "b", "c"}});
  hosts_.push_back({"cps-scoped", {"b"}});
  hosts_.push_back({"cps-small", {"a", "c"}, random_.one_in(2) ? size_t{4} : size_t{100}, true});
  for (CPsHost& host : hosts_) {
    host.table = cps::ServiceTable({host.rows_max, kTombstones});
    start_sender(host);
  }
}

Time World::time_of(const CPsHost* host) const {
  const auto ms = static_cast<int64_t>(now_ / kMillisecond);
  return {now_, start_unix_ms_ + ms + (host != nullptr ? host->clock_ms : 0)};
}

std::string World::challenge() { return "challenge " + std::to_string(1'000'000 + ++challenges_); }

void World::start_sender(CPsHost& host) {
  SenderConfig config{kCSma, host.name, host.scope};
  config.size_limit = northbound::kSizeLimitMin;
  host.sender.emplace(config, random_.next(), now_);
}

void World::connect(CPsHost& host) {
  cut(host);
  host.sender->connected(challenge(), now_);
  if (host.session) host.mismatches += host.session->mismatches();
  cps::ReceiverConfig config{host.name, kCSma, host.scope};
  config.size_limit = northbound::kSizeLimitMin;
  config.persists = host.persists;
  host.session.emplace(config, challenge(), now_);
  host.stands = true;
}

void World::cut(CPsHost& host) {
  host.to_c_ps.clear();
  host.to_c_sma.clear();
  host.stands = false;
  if (host.session) host.mismatches += host.session->mismatches();
  host.session.reset();
  if (host.sender->state() != SenderSession::State::kApart) host.sender->lost(now_);
}

void World::write(CPsHost& host, Message message, bool to_c_ps) {
  message.header.nonce = to_c_ps ? take(nonces_, reserved_) : take(host.nonces, host.reserved);
  Queue& queue = to_c_ps ? host.to_c_ps : host.to_c_sma;
  const Nanoseconds behind = queue.empty() ? 0 : queue.back().arrives;
  const Frame frame{std::move(message), std::max(behind, now_ + host.latency)};
  if (host.overheard.size() < 48) {
    host.overheard.push_back(frame);
  } else if (random_.one_in(4)) {
    host.overheard[random_.below(host.overheard.size())] = frame;
  }
  if (!host.black_hole) queue.push_back(frame);
}

bool World::turn_sender(CPsHost& host) {
  if (host.sender->state() == SenderSession::State::kApart) {
    if (host.sender->connect_at() > now_) return false;
    if (host.frozen || host.black_hole) {
      host.sender->lost(now_);  // cannot be had
    } else {
      connect(host);
    }
    return true;
  }
  if (host.to_c_ps.size() >= in_flight_) {
    if (!host.sender->overdue(now_)) return false;
    cut(host);
    return true;
  }
  auto next = host.sender->next(*store_, time_of(nullptr));
  if (auto* message = std::get_if<Message>(&next)) write(host, std::move(*message), true);
  if (std::holds_alternative<Fault>(next)) cut(host);
  return !std::holds_alternative<std::monostate>(next);
}

bool World::turn_receiver(CPsHost& host) {
  if (!host.session || host.frozen || host.to_c_sma.size() >= in_flight_) return false;
  if (host.persists) host.session->persisted();
  auto next = host.session->next(host.table, host.peers[kCSma], time_of(&host));
  if (auto* message = std::get_if<Message>(&next)) write(host, std::move(*message), false);
  if (std::holds_alternative<Fault>(next)) cut(host);
  return !std::holds_alternative<std::monostate>(next);
}

bool World::deliver(CPsHost& host) {
  if (!host.stands) return false;
  if (!host.to_c_sma.empty() && host.to_c_sma.front().arrives <= now_) {
    const Frame frame = std::move(host.to_c_sma.front());
    host.to_c_sma.pop_front();
    const auto fault = host.sender->received(*store_, frame.message, "k-" + host.name, time_of(nullptr));
    if (fault && ends_session(*fault)) cut(host);
    return true;
  }
  if (host.frozen || host.to_c_ps.empty() || host.to_c_ps.front().arrives > now_) return false;
  const Frame frame = std::move(host.to_c_ps.front());
  host.to_c_ps.pop_front();
  const auto fault = host.session->received(host.table, host.peers[kCSma], frame.message, "k1", time_of(&host));
  ++deliveries_;
  judge(host);
  if (fault && ends_session(*fault)) cut(host);
  return true;
}

bool World::turn(CPsHost& host) { return deliver(host) || turn_receiver(host) || turn_sender(host); }

Nanoseconds World::due_of(const CPsHost& host) const {
  Nanoseconds due = kNever;
  const bool waits = host.to_c_ps.size() >= in_flight_;
  due = std::min(due, waits ? host.sender->overdue_at() : host.sender->next_due(*store_));
  if (host.session && !host.frozen && host.to_c_sma.size() < in_flight_) due = std::min(due, host.session->next_due());
  if (!host.to_c_sma.empty()) due = std::min(due, host.to_c_sma.front().arrives);
  if (!host.to_c_ps.empty() && !host.frozen) due = std::min(due, host.to_c_ps.front().arrives);
  return due;
}

void World::run_until(Nanoseconds end) {
  for (size_t turns = 0; wrong_.empty();) {
    learn_again();
    bool something = false;
    for (CPsHost& host : hosts_) something = turn(host) || something;
    if (something) {
      if (++turns > 100'000) wrong_ = "no end of turns at one time";
      continue;
    }
    Nanoseconds due = end;
    for (const CPsHost& host : hosts_) due = std::min(due, due_of(host));
    if (!to_learn_.empty()) due = std::min(due, to_learn_.begin()->first);
    if (first_round_until_) due = std::min(due, *first_round_until_);
    if (due >= end) break;
    turns = due > now_ ? 0 : turns + 1000;  // who is due and has nothing turns without end
    now_ = std::max(now_, due);
  }
  now_ = std::max(now_, end);
}

void World::commit(Change change, bool critical) {
  const std::string cs_id = change.cs_id;
  const RowVersion version = store_->commit(change, critical);
  for (const Row& row : change.rows) committed_[{row.key, version}] = row.metrics.gas.value_or(0);
  for (const auto& withdrawal : change.withdrawals) withdrawn_[withdrawal.key].push_back(version);
  for (CPsHost& host : hosts_) host.sender->committed(cs_id, now_);
}

void World::restart_c_sma(Nanoseconds first_round) {
  for (CPsHost& host : hosts_) cut(host);
  std::map<RowKey, Row> rows;
  for (const auto& [cs_id, part] : store_->parts()) {
    for (const auto& [id, entry] : part.entries) {
      if (entry.row && (!id || !random_.one_in(4))) rows[entry.row->key] = *entry.row;  // the others died meanwhile
    }
  }
  store_ = std::make_unique<northbound::RowStore>(++epoch_, kTombstones);
  nonces_ = NonceSource(reserved_);
  to_learn_.clear();
  for (const auto& [key, row] : rows) {
    to_learn_[now_ + random_.below(first_round / kMillisecond) * kMillisecond + to_learn_.size()] =
        Change{key.cs_id, {row}};
  }
  first_round_until_ = now_ + first_round;
  for (CPsHost& host : hosts_) start_sender(host);
}

void World::learn_again() {
  while (!to_learn_.empty() && to_learn_.begin()->first <= now_) {
    const auto next = to_learn_.extract(to_learn_.begin());
    commit(next.mapped(), random_.one_in(2));
  }
  if (first_round_until_ && *first_round_until_ <= now_) {
    store_->end_first_round();
    first_round_until_.reset();
  }
}

void World::restart_c_ps(CPsHost& host, bool with_state, bool newest_state) {
  if (newest_state || !host.saved) host.saved = save(host.table, host.peers, time_of(&host));
  const cps::SavedState saved = *host.saved;
  cut(host);
  host.table = cps::ServiceTable({host.rows_max, kTombstones});
  host.peers.clear();
  host.nonces = NonceSource(host.reserved);
  if (!with_state || !newest_state) {  // holds older rows than before, which is no fault
    host.highest.clear();
    host.gone.clear();
  }
  if (!with_state) return;
  const auto restored = restore(saved, time_of(&host), host.table, host.peers);
  if (!restored) wrong_ = restored.error().message;
}

void World::repeat(CPsHost& host) {
  if (host.overheard.empty()) return;
  Frame frame = host.overheard[random_.below(host.overheard.size())];
  frame.arrives = now_;
  const bool to_c_ps = frame.message.header.direction == northbound::Direction::kToCPs;
  Queue& queue = to_c_ps != random_.one_in(20) ? host.to_c_ps : host.to_c_sma;  // or back to who wrote it
  if (host.stands) queue.insert(queue.begin() + random_.below(queue.size() + 1), frame);
}

void World::reorder(CPsHost& host) {
  Queue& queue = random_.one_in(3) ? host.to_c_sma : host.to_c_ps;
  if (queue.size() >= 2) std::swap(queue[0].message, queue[1 + random_.below(queue.size() - 1)].message);
}

void World::drop(CPsHost& host) {
  Queue& queue = random_.one_in(3) ? host.to_c_sma : host.to_c_ps;
  if (!queue.empty()) queue.erase(queue.begin() + random_.below(queue.size()));
}

void World::heal_all() {
  for (CPsHost& host : hosts_) {
    host.frozen = host.black_hole = false;
    host.latency = kMillisecond;
    host.clock_ms = 0;
  }
}

}  // namespace margay::test
