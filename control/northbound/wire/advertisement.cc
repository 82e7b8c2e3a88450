// SPDX-License-Identifier: Apache-2.0
#include "control/northbound/wire/advertisement.h"

#include <string>

#include "control/northbound/wire/row_wire.h"

namespace margay::northbound {
namespace {

using control::enum_to_wire;

static_assert(enum_to_wire<v1::Direction>(Direction::kToCSma) == v1::DIRECTION_TO_C_SMA);
static_assert(enum_to_wire<v1::NackCode>(NackCode::kTableFull) == v1::NACK_CODE_TABLE_FULL);
static_assert(enum_to_wire<v1::SyncReason>(SyncReason::kOperator) == v1::SYNC_REASON_OPERATOR);

void put_header(const Header& header, v1::Header& out) {
  const auto& [direction, sender, receiver, challenge, sequence, seen, nonce, sent_unix_ms] = header;
  out.set_direction(enum_to_wire<v1::Direction>(direction));
  out.set_sender(sender);
  out.set_receiver(receiver);
  out.set_challenge(challenge);
  out.set_sequence(sequence);
  out.set_seen(seen);
  out.set_nonce(nonce);
  control::put_unix_ms(sent_unix_ms, *out.mutable_sent());
}

// Each body into its field of the message.
struct Put {
  Nanoseconds now;
  v1::Advertisement& out;

  void operator()(const Hello& body) const {
    v1::Hello& hello = *out.mutable_hello();
    for (const uint32_t version : body.versions) hello.add_versions(version);
    hello.set_size_limit(body.size_limit);
    for (const std::string& cs_id : body.cs_ids) hello.add_cs_ids(cs_id);
    hello.set_challenge(body.challenge);
    if (body.epoch == 0) {  // a C-PS's
      hello.set_takes_digests(body.takes_digests);
      hello.set_persists(body.persists);
      for (const Position& position : body.resume) put(position, *hello.add_resume());
      return;
    }
    hello.set_epoch(body.epoch);
    control::put(body.heartbeat, *hello.mutable_heartbeat());
  }
  void operator()(const Batch& body) const {
    v1::Batch& batch = *out.mutable_batch();
    for (const auto& [change, after, through] : body.deltas) {
      v1::Delta& delta = *batch.add_deltas();
      delta.set_cs_id(change.cs_id);
      put(after, *delta.mutable_after());
      put(through, *delta.mutable_through());
      for (const Row& row : change.rows) to_wire(row, now, *delta.add_rows());
      for (const Withdrawal& withdrawal : change.withdrawals) put(withdrawal, *delta.add_withdrawals());
    }
  }
  void operator()(const SnapshotBegin& body) const {
    v1::SnapshotBegin& begin = *out.mutable_snapshot_begin();
    begin.set_id(body.id);
    put(body.version, *begin.mutable_version());
    begin.set_rows(body.rows);
    for (const std::string& cs_id : body.cs_ids) begin.add_cs_ids(cs_id);
  }
  void operator()(const SnapshotChunk& body) const {
    v1::SnapshotChunk& chunk = *out.mutable_snapshot_chunk();
    chunk.set_id(body.id);
    for (const Row& row : body.rows) to_wire(row, now, *chunk.add_rows());
  }
  void operator()(const SnapshotEnd& body) const {
    out.mutable_snapshot_end()->set_id(body.id);
    out.mutable_snapshot_end()->set_digest(bytes_of(body.digest));
  }
  void operator()(const Keepalive& body) const {
    v1::Keepalive& keepalive = *out.mutable_keepalive();
    for (const auto& [position, check] : body.views) {
      v1::View& view = *keepalive.add_views();
      put(position, *view.mutable_position());
      if (!check) continue;
      view.mutable_check()->set_rows(check->rows);
      view.mutable_check()->set_digest(bytes_of(check->digest));
    }
  }
  void operator()(const Ack& body) const { out.mutable_ack()->set_sequence(body.sequence); }
  void operator()(const Nack& body) const {
    v1::Nack& nack = *out.mutable_nack();
    nack.set_sequence(body.sequence);
    nack.set_code(enum_to_wire<v1::NackCode>(body.code));
    nack.set_detail(control::utf8(body.detail));
    for (const auto& [key, version] : body.rows) {
      v1::RefusedRow& row = *nack.add_rows();
      put(key, *row.mutable_key());
      put(version, *row.mutable_version());
    }
  }
  void operator()(const SyncRequest& body) const {
    v1::SyncRequest& request = *out.mutable_sync_request();
    for (const std::string& cs_id : body.cs_ids) request.add_cs_ids(cs_id);
    request.set_reason(enum_to_wire<v1::SyncReason>(body.reason));
  }
};

Header take_header(WireReader& reader, const v1::Header& in) {
  Header out;
  out.direction = reader.enumerated("header.direction", in.direction(), Direction::kToCSma);
  out.sender = take_id(reader, "header.sender", in.sender());
  out.receiver = take_id(reader, "header.receiver", in.receiver());
  if (in.challenge().size() > kChallengeMax) reader.fail("header.challenge", "at most 64 bytes");
  out.challenge = in.challenge();
  if (in.sequence() == 0) reader.fail("header.sequence", "1 or more");
  out.sequence = in.sequence();
  out.seen = in.seen();
  out.nonce = in.nonce();
  if (!in.has_sent()) reader.fail("header.sent", "a time");
  out.sent_unix_ms = control::unix_ms_of(in.sent());
  return out;
}

// Lists of CS-IDs are no longer than a session's scope.
template <class List>
std::vector<std::string> take_cs_ids(WireReader& reader, const List& in) {
  if (in.size() > static_cast<int>(kCsIdsMax)) reader.fail("cs_ids", "at most 1024");
  std::vector<std::string> out;
  for (const std::string& cs_id : in) out.push_back(take_id(reader, "cs_ids", cs_id));
  return out;
}

Hello take_hello(WireReader& reader, const v1::Hello& in) {
  Hello out;
  out.versions.assign(in.versions().begin(), in.versions().end());
  out.size_limit = in.size_limit();
  out.cs_ids = take_cs_ids(reader, in.cs_ids());
  out.challenge = in.challenge();
  out.takes_digests = in.takes_digests();
  out.persists = in.persists();
  for (const v1::Position& position : in.resume()) out.resume.push_back(take(reader, position));
  out.epoch = in.epoch();
  out.heartbeat = reader.duration("hello.heartbeat", in.heartbeat());
  return out;
}

Batch take_batch(WireReader& reader, const v1::Batch& in, Nanoseconds now) {
  Batch out;
  for (const v1::Delta& delta : in.deltas()) {
    Delta& to = out.deltas.emplace_back();
    to.change.cs_id = take_id(reader, "delta.cs_id", delta.cs_id());
    to.after = take(reader, "delta.after", delta.after());
    to.through = take(reader, "delta.through", delta.through());
    for (const v1::Row& row : delta.rows()) to.change.rows.push_back(take(reader, row, now));
    for (const v1::Withdrawal& w : delta.withdrawals()) to.change.withdrawals.push_back(take(reader, w));
    for (const Row& row : to.change.rows) {
      if (row.key.cs_id != to.change.cs_id) reader.fail("delta.rows.key.cs_id", "the delta's");
    }
    for (const Withdrawal& w : to.change.withdrawals) {
      if (w.key.cs_id != to.change.cs_id) reader.fail("delta.withdrawals.key.cs_id", "the delta's");
    }
  }
  return out;
}

Keepalive take_keepalive(WireReader& reader, const v1::Keepalive& in) {
  Keepalive out;
  for (const v1::View& view : in.views()) {
    View& to = out.views.emplace_back(View{take(reader, view.position()), std::nullopt});
    if (view.has_check()) to.check = View::Check{view.check().rows(), take_digest(reader, view.check().digest())};
  }
  return out;
}

Nack take_nack(WireReader& reader, const v1::Nack& in) {
  Nack out{in.sequence(), reader.enumerated("nack.code", in.code(), NackCode::kTableFull), in.detail(), {}};
  for (const v1::RefusedRow& row : in.rows()) {
    out.rows.push_back({take(reader, row.key()), take(reader, "nack.rows.version", row.version())});
  }
  return out;
}

Body take_body(WireReader& reader, const v1::Advertisement& in, Nanoseconds now) {
  switch (in.body_case()) {
    case v1::Advertisement::kHello:
      return take_hello(reader, in.hello());
    case v1::Advertisement::kBatch:
      return take_batch(reader, in.batch(), now);
    case v1::Advertisement::kSnapshotBegin: {
      const v1::SnapshotBegin& begin = in.snapshot_begin();
      return SnapshotBegin{begin.id(), take(reader, "snapshot_begin.version", begin.version()), begin.rows(),
                           take_cs_ids(reader, begin.cs_ids())};
    }
    case v1::Advertisement::kSnapshotChunk: {
      SnapshotChunk chunk{in.snapshot_chunk().id(), {}};
      for (const v1::Row& row : in.snapshot_chunk().rows()) chunk.rows.push_back(take(reader, row, now));
      return chunk;
    }
    case v1::Advertisement::kSnapshotEnd:
      return SnapshotEnd{in.snapshot_end().id(), take_digest(reader, in.snapshot_end().digest())};
    case v1::Advertisement::kKeepalive:
      return take_keepalive(reader, in.keepalive());
    case v1::Advertisement::kAck:
      return Ack{in.ack().sequence()};
    case v1::Advertisement::kNack:
      return take_nack(reader, in.nack());
    case v1::Advertisement::kSyncRequest:
      return SyncRequest{take_cs_ids(reader, in.sync_request().cs_ids()),
                         reader.enumerated("sync_request.reason", in.sync_request().reason(), SyncReason::kOperator)};
    case v1::Advertisement::BODY_NOT_SET:
      break;
  }
  reader.fail("body", "one that is known");
  return Ack{};
}

}  // namespace

void to_wire(const Message& message, Nanoseconds now, v1::Advertisement& out) {
  put_header(message.header, *out.mutable_header());
  std::visit(Put{now, out}, message.body);
}

Result<Message> message_of(const v1::Advertisement& in, Nanoseconds now) {
  WireReader reader;
  Message out{take_header(reader, in.header()), take_body(reader, in, now)};
  if (!reader.fault().empty()) return Error{reader.fault()};
  return out;
}

}  // namespace margay::northbound
