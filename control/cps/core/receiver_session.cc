// SPDX-License-Identifier: Apache-2.0
#include "control/cps/core/receiver_session.h"

#include <algorithm>

namespace margay::cps {

using northbound::Ack;
using northbound::Batch;
using northbound::Body;
using northbound::Direction;
using northbound::Header;
using northbound::Hello;
using northbound::Keepalive;
using northbound::Message;
using northbound::Nack;
using northbound::NackCode;
using northbound::Peer;
using northbound::Row;
using northbound::SnapshotBegin;
using northbound::SnapshotChunk;
using northbound::SnapshotEnd;
using northbound::SyncReason;
using northbound::SyncRequest;

namespace {

constexpr size_t kRowsANack = 64;  // keeps it far below any size limit

bool contains(const std::vector<std::string>& list, const std::string& text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

}  // namespace

ReceiverSession::ReceiverSession(ReceiverConfig config, std::string challenge, Nanoseconds now)
    : config_(std::move(config)),
      challenge_(std::move(challenge)),
      verifier_({Direction::kToCPs, config_.c_sma, config_.identity, challenge_, false, config_.window_ms}),
      deadline_(now + config_.hello_timeout) {}

std::optional<northbound::Fault> ReceiverSession::received(ServiceTable& table, Peer& peer, const Message& message,
                                                           std::string_view key_id, Time now) {
  if (broken_) return std::nullopt;
  auto fault = verifier_.judge(message.header, key_id, now.unix_ms, peer.nonces);
  if (!fault) fault = take(table, message, now.monotonic);
  if (fault) peer.faults.count(*fault);
  return fault;
}

void ReceiverSession::malformed(Peer& peer, std::string detail) {
  peer.faults.count(Fault::kMalformed);
  nacks_.push_back({verifier_.last_sequence() + 1, NackCode::kMalformed, std::move(detail), {}});
  broken_ = true;
}

ReceiverSession::Result ReceiverSession::take(ServiceTable& table, const Message& message, Nanoseconds now) {
  const auto& [header, body] = message;
  if (const auto* hello = std::get_if<Hello>(&body)) {
    if (established()) return Fault::kUnexpected;
    const Result fault = take(table, *hello);
    deadline_ = now + heartbeat_ / 2 * 5;
    return fault;
  }
  if (!established()) return Fault::kUnexpected;
  if (header.sequence - acked_ > northbound::kUnackedMax) return Fault::kTooManyUnacked;
  deadline_ = now + heartbeat_ / 2 * 5;
  if (const auto* batch = std::get_if<Batch>(&body)) return take(table, *batch, header.sequence, now);
  if (const auto* begin = std::get_if<SnapshotBegin>(&body)) return take(table, *begin);
  if (const auto* chunk = std::get_if<SnapshotChunk>(&body)) return take(*chunk);
  if (const auto* end = std::get_if<SnapshotEnd>(&body)) return take(table, *end, header.sequence, now);
  if (const auto* keepalive = std::get_if<Keepalive>(&body)) return take(table, *keepalive, header.seen, now);
  return Fault::kUnexpected;
}

ReceiverSession::Result ReceiverSession::take(ServiceTable& table, const Hello& hello) {
  if (hello.challenge.size() < northbound::kChallengeMin || hello.challenge.size() > northbound::kChallengeMax ||
      hello.epoch == 0 || hello.heartbeat == 0 || hello.size_limit < northbound::kSizeLimitMin) {
    return Fault::kBadHello;
  }
  if (hello.versions != std::vector{northbound::kProtocolVersion}) return Fault::kNoCommonVersion;
  if (hello.cs_ids.empty()) return Fault::kNoCommonCsId;
  for (const std::string& cs_id : hello.cs_ids) {
    if (!contains(config_.cs_ids, cs_id)) return Fault::kOutOfScope;
  }
  scope_ = std::set<std::string>(hello.cs_ids.begin(), hello.cs_ids.end());
  if (!table.begin_session(config_.c_sma, hello.epoch, scope_)) return Fault::kEpochWentBack;
  their_challenge_ = hello.challenge;
  heartbeat_ = hello.heartbeat;
  return std::nullopt;
}

ReceiverSession::Result ReceiverSession::take(ServiceTable& table, const Batch& batch, uint64_t sequence,
                                              Nanoseconds now) {
  for (const auto& delta : batch.deltas) {
    if (!scope_.contains(delta.change.cs_id)) {
      std::vector<Refusal> all;
      for (const Row& row : delta.change.rows) all.push_back({{row.key, row.version}, NackCode::kOutOfScope});
      nack(sequence, all);
      continue;
    }
    const bool under_way = staged_ && contains(staged_->begin.cs_ids, delta.change.cs_id);
    nack(sequence, table.apply(config_.c_sma, delta, under_way ? &*staged_ : nullptr, now));
    if (table.too_many(config_.c_sma, delta.change.cs_id)) return Fault::kTooManyRows;
  }
  return std::nullopt;
}

ReceiverSession::Result ReceiverSession::take(const ServiceTable& table, const SnapshotBegin& begin) {
  if (staged_) return Fault::kSnapshotBroken;
  if (table.too_many(begin.rows)) return Fault::kTooManyRows;
  for (const std::string& cs_id : begin.cs_ids) {
    if (!scope_.contains(cs_id)) return Fault::kOutOfScope;
  }
  staged_.emplace().begin = begin;
  return std::nullopt;
}

ReceiverSession::Result ReceiverSession::take(const SnapshotChunk& chunk) {
  if (!staged_ || staged_->begin.id != chunk.id) return Fault::kSnapshotBroken;
  const std::string* last = nullptr;  // rows of one CS-ID come together
  for (const Row& row : chunk.rows) {
    const std::string& cs_id = row.key.cs_id;
    const bool belongs = (last != nullptr && *last == cs_id) || contains(staged_->begin.cs_ids, cs_id);
    last = &cs_id;
    if (!belongs || !staged_->rows.emplace(row.key, row).second) return Fault::kSnapshotBroken;
    if (staged_->rows.size() > staged_->begin.rows) return Fault::kSnapshotBroken;
    staged_->digest += northbound::digest_of(row.key, row.version);
  }
  return std::nullopt;
}

ReceiverSession::Result ReceiverSession::take(ServiceTable& table, const SnapshotEnd& end, uint64_t sequence,
                                              Nanoseconds now) {
  const bool whole = staged_ && staged_->begin.id == end.id && staged_->rows.size() == staged_->begin.rows &&
                     staged_->digest == end.digest;
  if (!whole) return Fault::kSnapshotBroken;
  nack(sequence, table.apply(config_.c_sma, *staged_, now));
  for (const std::string& cs_id : staged_->begin.cs_ids) awaited_.erase(cs_id);
  staged_.reset();
  ++snapshots_;
  return std::nullopt;
}

ReceiverSession::Result ReceiverSession::take(ServiceTable& table, const Keepalive& keepalive, uint64_t seen,
                                              Nanoseconds now) {
  for (const auto& view : keepalive.views) {
    const std::string& cs_id = view.position.cs_id;
    if (!scope_.contains(cs_id)) return Fault::kOutOfScope;
    const bool knows_what_we_refused = nacks_.empty() && seen >= nack_sequence_;
    if (awaited_.contains(cs_id) || table.renew(config_.c_sma, view, knows_what_we_refused, now)) continue;
    ++mismatches_;
    wanted_.insert(cs_id);
    wanted_because_ = SyncReason::kMismatch;
  }
  return std::nullopt;
}

void ReceiverSession::nack(uint64_t sequence, const std::vector<Refusal>& refusals) {
  for (const auto& [row, code] : refusals) {
    const bool fits = !nacks_.empty() && nacks_.back().sequence == sequence && nacks_.back().code == code &&
                      nacks_.back().rows.size() < kRowsANack;
    if (!fits) nacks_.push_back({sequence, code});
    nacks_.back().rows.push_back(row);
  }
}

void ReceiverSession::request_sync(const std::vector<std::string>& cs_ids) {
  for (const std::string& cs_id : scope_) {
    if (cs_ids.empty() || contains(cs_ids, cs_id)) wanted_.insert(cs_id);
  }
  wanted_because_ = SyncReason::kOperator;
}

Message ReceiverSession::make(Body body, Time now) {
  return Message{Header{Direction::kToCSma, config_.identity, config_.c_sma, their_challenge_, ++sequence_,
                        verifier_.last_sequence(), 0, now.unix_ms},
                 std::move(body)};
}

Message ReceiverSession::hello(const ServiceTable& table, Time now) {
  greeted_ = true;
  Hello hello{{northbound::kProtocolVersion}, config_.size_limit, config_.cs_ids, challenge_};
  hello.takes_digests = config_.takes_digests;
  hello.persists = config_.persists;
  hello.resume = table.resume(config_.c_sma);
  std::erase_if(hello.resume, [&](const auto& position) { return !contains(config_.cs_ids, position.cs_id); });
  return make(std::move(hello), now);
}

std::optional<northbound::Fault> ReceiverSession::overdue(Peer& peer, Nanoseconds now) {
  if (now < deadline_) return std::nullopt;
  const Fault fault = established() ? Fault::kSilent : Fault::kHelloTimeout;
  peer.faults.count(fault);
  return fault;
}

ReceiverSession::Next ReceiverSession::next(const ServiceTable& table, Peer& peer, Time now) {
  if (!greeted_) return hello(table, now);
  // Before the ack, so that who has the ack has the nack.
  if (!nacks_.empty() && (established() || broken_)) {
    Nack nack = std::move(nacks_.front());
    nacks_.pop_front();
    nack_sequence_ = sequence_ + 1;
    return make(std::move(nack), now);
  }
  if (broken_) return Fault::kMalformed;
  if (const auto fault = overdue(peer, now.monotonic)) return *fault;
  if (!established()) return {};
  if (!wanted_.empty()) {
    SyncRequest request{{wanted_.begin(), wanted_.end()}, wanted_because_};
    awaited_.merge(wanted_);
    wanted_.clear();
    return make(std::move(request), now);
  }
  if (ackable() > acked_) {
    acked_ = ackable();
    return make(Ack{acked_}, now);
  }
  return {};
}

Nanoseconds ReceiverSession::next_due() const {
  const bool something = !greeted_ || broken_ || !nacks_.empty() || !wanted_.empty() || ackable() > acked_;
  return something ? 0 : deadline_;
}

}  // namespace margay::cps
