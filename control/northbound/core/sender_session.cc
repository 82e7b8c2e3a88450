// SPDX-License-Identifier: Apache-2.0
#include "control/northbound/core/sender_session.h"

#include <algorithm>

#include "common/check.h"

namespace margay::northbound {
namespace {

// What both sides want of a hello, before anything else of it is believed.
bool is_good(const Hello& hello) {
  const size_t challenge = hello.challenge.size();
  return challenge >= kChallengeMin && challenge <= kChallengeMax && hello.size_limit >= kSizeLimitMin &&
         hello.cs_ids.size() <= kCsIdsMax;
}

// Phases of many C-SMAs differ, so that their heartbeats do not come to a C-PS at once (D-30).
Nanoseconds phase_of(const std::string& identity, Nanoseconds period) {
  return digest_of(RowKey{identity}, {}).low % std::max<Nanoseconds>(period, 1);
}

// Not more than half a heartbeat: with its jitter, and an ack that was waited for before, a C-PS that is there again
// has everything within one.
Nanoseconds longest_wait(const SenderConfig& config) {
  return std::min(config.backoff_max, std::max(config.backoff_initial, config.heartbeat / 2));
}

}  // namespace

SenderSession::SenderSession(SenderConfig config, uint64_t seed, Nanoseconds now)
    : config_(std::move(config)),
      backoff_(config_.backoff_initial, longest_wait(config_), seed),
      connect_at_(now + backoff_.next()),
      routine_(config_.rate),
      critical_(config_.critical) {
  MARGAY_CHECK(config_.size_limit >= kSizeLimitMin && config_.cs_ids.size() <= kCsIdsMax && config_.heartbeat > 0);
}

void SenderSession::connected(std::string challenge, Nanoseconds now) {
  MARGAY_CHECK(state_ == State::kApart);
  state_ = State::kAwaitsHello;
  hello_by_ = now + config_.hello_timeout;
  challenge_ = std::move(challenge);
  verifier_.emplace(
      Verifier::Expected{Direction::kToCSma, config_.c_ps, config_.identity, challenge_, true, config_.window_ms});
}

void SenderSession::lost(Nanoseconds now) {
  state_ = State::kApart;
  connect_at_ = now + backoff_.next();
  verifier_.reset();
  challenge_.clear();
  their_challenge_.clear();
  greeted_ = answered_ = false;
  sequence_ = 0;
  unacked_.clear();
  parts_.clear();
  changed_.clear();
  want_snapshot_.clear();
  snapshot_.reset();
  snapshots_ = 0;
  keepalive_from_.reset();
}

void SenderSession::committed(const std::string& cs_id, Nanoseconds now) {
  const auto part = parts_.find(cs_id);
  if (part != parts_.end() && changed_.insert(cs_id).second) part->second.changed_at = now;
}

std::optional<Fault> SenderSession::received(const RowStore& store, const Message& message, std::string_view key_id,
                                             Time now) {
  if (!verifier_) return std::nullopt;
  auto fault = verifier_->judge(message.header, key_id, now.unix_ms, peer_.nonces);
  if (!fault) fault = take(store, message, now.monotonic);
  if (fault) peer_.faults.count(*fault);
  return fault;
}

std::optional<Fault> SenderSession::take(const RowStore& store, const Message& message, Nanoseconds now) {
  if (const auto* hello = std::get_if<Hello>(&message.body)) return take_hello(store, *hello, now);
  if (state_ != State::kEstablished) return Fault::kUnexpected;
  if (const auto* ack = std::get_if<Ack>(&message.body)) return take_ack(*ack);
  if (const auto* nack = std::get_if<Nack>(&message.body)) return take_nack(store, *nack);
  if (const auto* request = std::get_if<SyncRequest>(&message.body)) {
    take_sync_request(*request);
    return std::nullopt;
  }
  return Fault::kUnexpected;
}

std::optional<Fault> SenderSession::take_hello(const RowStore& store, const Hello& hello, Nanoseconds now) {
  if (state_ != State::kAwaitsHello) return Fault::kUnexpected;
  if (!is_good(hello)) return Fault::kBadHello;
  const auto& versions = hello.versions;
  if (std::find(versions.begin(), versions.end(), kProtocolVersion) == versions.end()) return Fault::kNoCommonVersion;
  std::set<std::string> scope;
  for (const std::string& cs_id : config_.cs_ids) {
    const bool asked = std::find(hello.cs_ids.begin(), hello.cs_ids.end(), cs_id) != hello.cs_ids.end();
    if (asked || hello.cs_ids.empty()) scope.insert(cs_id);
  }
  if (scope.empty()) return Fault::kNoCommonCsId;
  state_ = State::kEstablished;
  their_challenge_ = hello.challenge;
  takes_digests_ = hello.takes_digests;
  size_limit_ = std::min(hello.size_limit, config_.size_limit);
  heartbeat_at_ = now + phase_of(config_.identity, config_.heartbeat);
  enter_scope(store, hello, scope, now);
  return std::nullopt;
}

// The C-PS's resume point holds where it is one of this epoch, and no withdrawal above it is forgotten (CSMA-159).
void SenderSession::enter_scope(const RowStore& store, const Hello& hello, const std::set<std::string>& scope,
                                Nanoseconds now) {
  for (const std::string& cs_id : scope) parts_.emplace(cs_id, Part{});
  for (const auto& [cs_id, through] : hello.resume) {
    const auto part = parts_.find(cs_id);
    if (part == parts_.end() || through.epoch != store.epoch() || through.commit > store.newest().commit) continue;
    if (through.commit < store.part(cs_id).low_water) continue;
    part->second.sent = through.commit;
    part->second.in_step = true;
  }
  for (auto& [cs_id, part] : parts_) {
    if (!part.in_step) want_snapshot_.insert(cs_id);
    if (store.part(cs_id).newest > part.sent) {
      changed_.insert(cs_id);
      part.changed_at = now - std::min(now, config_.gather);  // what gathered while we were apart waits no longer
    }
  }
}

std::optional<Fault> SenderSession::take_ack(const Ack& ack) {
  if (ack.sequence > sequence_) return Fault::kUnexpected;
  while (!unacked_.empty() && unacked_.front().sequence <= ack.sequence) unacked_.pop_front();
  if (!answered_ && ack.sequence > 0) {
    answered_ = true;
    backoff_.reset();
  }
  return std::nullopt;
}

std::optional<Fault> SenderSession::take_nack(const RowStore& store, const Nack& nack) {
  if (nack.sequence == 0 || nack.sequence > sequence_) return Fault::kUnexpected;
  for (const RefusedRow& row : nack.rows) {
    const auto& entries = store.part(row.key.cs_id).entries;
    const auto entry = entries.find(row.key.csci_id);
    const bool current = entry != entries.end() && entry->second.row && entry->second.row->version == row.version;
    const auto part = parts_.find(row.key.cs_id);
    // What was refused before a snapshot is judged anew in it.
    if (!current || part == parts_.end() || nack.sequence < part->second.begun) continue;
    refused_[row.key] = {row.version, false};
  }
  if (!nack.rows.empty()) return std::nullopt;
  for (const Unacked& message : unacked_) {
    if (message.sequence != nack.sequence) continue;
    for (const RowPtr& row : message.rows) refused_[row->key] = {row->version, true};
  }
  return std::nullopt;
}

void SenderSession::take_sync_request(const SyncRequest& request) {
  for (const auto& [cs_id, part] : parts_) {
    const auto& wanted = request.cs_ids;
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), cs_id) == wanted.end()) continue;
    want_snapshot_.insert(cs_id);
    if (request.reason == SyncReason::kOperator) forget_refused(cs_id, true);
  }
}

void SenderSession::forget_refused(const std::string& cs_id, bool malformed_too) {
  std::erase_if(refused_, [&](const auto& refused) {
    return refused.first.cs_id == cs_id && (malformed_too || !refused.second.malformed);
  });
}

bool SenderSession::is_refused(const Row& row) const {
  const auto refused = refused_.find(row.key);
  return refused != refused_.end() && refused->second.version == row.version;
}

Nanoseconds SenderSession::overdue_at() const {
  if (state_ == State::kAwaitsHello) return hello_by_;
  return unacked_.empty() ? kNever : unacked_.front().at + config_.ack_timeout;
}

std::optional<Fault> SenderSession::overdue(Nanoseconds now) {
  if (now < overdue_at()) return std::nullopt;
  const Fault fault = state_ == State::kAwaitsHello ? Fault::kHelloTimeout : Fault::kAckTimeout;
  peer_.faults.count(fault);
  return fault;
}

SenderSession::Next SenderSession::next(const RowStore& store, Time now) {
  if (const auto fault = overdue(now.monotonic)) return *fault;
  if (state_ != State::kEstablished) return {};
  if (!greeted_) return hello(store, now);
  if (unacked_.size() >= kUnackedMax) return {};
  if (auto message = batch(store, Kind::kCritical, now)) return std::move(*message);
  if (auto message = heartbeat(store, now)) return std::move(*message);
  if (auto message = batch(store, Kind::kRoutine, now)) return std::move(*message);
  if (auto message = snapshot(store, now)) return std::move(*message);
  return {};
}

Nanoseconds SenderSession::next_due(const RowStore& store) const {
  if (state_ == State::kApart) return connect_at_;
  if (state_ == State::kAwaitsHello) return hello_by_;
  if (!greeted_) return 0;
  if (unacked_.size() >= kUnackedMax) return overdue_at();
  if (keepalive_from_ || snapshot_) return 0;
  Nanoseconds due = std::min(overdue_at(), heartbeat_at_);
  for (const std::string& cs_id : changed_) due = std::min(due, due_of(store, cs_id, parts_.at(cs_id)));
  if (!want_snapshot_.empty() && store.first_round_over()) due = std::min(due, routine_.next());
  return due;
}

}  // namespace margay::northbound
