// SPDX-License-Identifier: Apache-2.0
// Messages between a C-SMA and a C-PS, as either end takes them: a margay.v1.Signed, its Advertisement, the session's
// core, and at the C-PS the table. Nothing may crash; rows are the sender's to tell, bounded and in order; all that is
// answered can be sealed and opened; what the C-PS then holds can be saved and restored.
// Of `what`, from the low bits: whether the bytes are an envelope (else a payload, and signed here), whether the header
// is mended, a pause before, to whom (set: the C-SMA), whether a new session begins before.

#include <map>

#include "common/check.h"
#include "control/cps/core/receiver_session.h"
#include "control/cps/state_wire.h"
#include "control/northbound/core/sender_session.h"
#include "control/northbound/wire/advertisement.h"
#include "control/northbound/wire/envelope.h"
#include "control/northbound/wire/row_wire.h"
#include "margay/v1/advertisement.pb.h"
#include "margay/v1/envelope.pb.h"
#include "tests/fuzz/messages.h"
#include "tests/fuzz/target.h"

namespace {

using namespace margay;
using northbound::Fault;

constexpr unsigned kEnvelope = 1, kMend = 2, kToCSma = 0x20, kAnew = 0x40;
const std::string kCSma = "edge-1", kCPs = "cps";
constexpr cps::ServiceTable::Limits kLimits{6, 2};

// Stands for Ed25519: no secret, so that a corpus can hold envelopes.
std::string sign(std::string_view bytes) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : bytes) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return std::to_string(hash);
}
const northbound::Signer kSigner{"k1", northbound::Algorithm::kEd25519, sign};

northbound::OpenRules rules() {
  static const northbound::Key kKey{northbound::Algorithm::kEd25519,
                                    [](std::string_view bytes, std::string_view s) { return s == sign(bytes); }};
  northbound::OpenRules rules;
  rules.find_key = [](const std::string& id) { return id == "k1" ? &kKey : nullptr; };
  return rules;
}

// One of the two ends.
template <class Session>
struct End {
  Session session;
  std::string challenge;
  uint64_t expected = 1, nonce = 0;  // the next message's, where it is mended
};

class World {
 public:
  void take(const test::Piece& piece) {
    const Nanoseconds pause = test::pause_of(piece.what);
    now_.monotonic += pause;
    now_.unix_ms += static_cast<int64_t>(pause / kMillisecond);
    if ((piece.what & kToCSma) != 0) {
      if ((piece.what & kAnew) != 0) reconnect();
      to_c_sma(piece);
    } else {
      if ((piece.what & kAnew) != 0) accept();
      to_c_ps(piece);
    }
  }

  void finish() const {
    const auto saved = cps::state_of(cps::bytes_of(cps::save(table_, {}, now_), now_.monotonic), now_.monotonic);
    MARGAY_CHECK(saved.has_value());
    cps::ServiceTable again(kLimits);
    cps::Peers peers;
    MARGAY_CHECK(cps::restore(*saved, now_, again, peers));
    check_table(again);
  }

 private:
  void accept() {
    c_ps_ = {cps::ReceiverSession(receiver_config(), c_ps_.challenge, now_.monotonic), c_ps_.challenge, 1, c_ps_.nonce};
    chunks_ = {};
  }
  void reconnect() {
    c_sma_.session.lost(now_.monotonic);
    c_sma_.session.connected(c_sma_.challenge, now_.monotonic);
    c_sma_.expected = 1;
  }

  std::optional<northbound::Opened> open(const test::Piece& piece, northbound::Direction direction, uint64_t sequence,
                                         uint64_t nonce, const std::string& challenge) {
    v1::Signed envelope;
    if ((piece.what & kEnvelope) != 0) {
      if (!envelope.ParseFromString(piece.bytes)) return std::nullopt;
    } else {
      envelope.set_payload(piece.bytes);
      v1::Advertisement message;
      if ((piece.what & kMend) != 0 && message.ParseFromString(piece.bytes)) {
        mend(direction, sequence, nonce, challenge, message);
        message.SerializeToString(envelope.mutable_payload());
      }
      envelope.set_key_id("k1");
      envelope.set_algorithm(v1::ALGORITHM_ED25519);
      envelope.set_signature(sign(northbound::signed_bytes(envelope.payload())));
    }
    auto opened = northbound::open(envelope, rules(), now_.monotonic);
    if (auto* good = std::get_if<northbound::Opened>(&opened)) return std::move(*good);
    MARGAY_CHECK(!std::get<northbound::Unopened>(opened).detail.empty());
    return std::nullopt;
  }

  void mend(northbound::Direction direction, uint64_t sequence, uint64_t nonce, const std::string& challenge,
            v1::Advertisement& message) {
    const bool to_c_ps = direction == northbound::Direction::kToCPs;
    v1::Header& header = *message.mutable_header();
    header.set_direction(to_c_ps ? v1::DIRECTION_TO_C_PS : v1::DIRECTION_TO_C_SMA);
    header.set_sender(to_c_ps ? kCSma : kCPs);
    header.set_receiver(to_c_ps ? kCPs : kCSma);
    header.set_challenge(challenge);
    header.set_sequence(sequence);
    header.set_nonce(nonce);
    control::put_unix_ms(now_.unix_ms, *header.mutable_sent());
    if (message.has_snapshot_begin()) chunks_ = {};
    for (const v1::Row& wire : message.snapshot_chunk().rows()) {
      if (const auto row = northbound::row_of(wire, now_.monotonic)) {
        chunks_ += northbound::digest_of(row->key, row->version);
      }
    }
    if (message.has_snapshot_end()) message.mutable_snapshot_end()->set_digest(northbound::bytes_of(chunks_));
  }

  void to_c_ps(const test::Piece& piece) {
    auto& [session, challenge, expected, nonce] = c_ps_;
    const auto before = versions();
    const auto opened = open(piece, northbound::Direction::kToCPs, expected, ++nonce, challenge);
    bool ends = !opened;
    if (opened) {
      const auto fault = session.received(table_, peer_, opened->message, opened->key_id, now_);
      if (!fault) expected = opened->message.header.sequence + 1;
      ends = fault && ends_session(*fault);
    } else {
      session.malformed(peer_, "a fuzzer's");
    }
    check_table(table_);
    for (const auto& [key, version] : versions()) {
      const auto old = before.find(key);
      MARGAY_CHECK(old == before.end() || old->second <= version);
    }
    drain([this] { return c_ps_.session.next(table_, peer_, now_); }, northbound::Direction::kToCSma);
    if (ends) accept();
  }

  void to_c_sma(const test::Piece& piece) {
    auto& [session, challenge, expected, nonce] = c_sma_;
    const std::string bound = expected == 1 ? "" : challenge;  // a hello is from before it could be known
    if (const auto opened = open(piece, northbound::Direction::kToCSma, expected, ++nonce, bound)) {
      const auto fault = session.received(store_, opened->message, opened->key_id, now_);
      if (!fault) expected = opened->message.header.sequence + 1;
      if (fault && ends_session(*fault)) return reconnect();
    }
    drain([this] { return c_sma_.session.next(store_, now_); }, northbound::Direction::kToCPs);
    MARGAY_CHECK(session.unacked() <= northbound::kUnackedMax);
  }

  // All that an end has to write.
  template <class Next>
  void drain(Next next, northbound::Direction direction) const {
    for (int n = 0;; ++n) {
      MARGAY_CHECK(n < 10'000);
      const auto what = next();
      const auto* message = std::get_if<northbound::Message>(&what);
      if (message == nullptr) return;
      v1::Signed envelope;
      northbound::seal(*message, now_.monotonic, &kSigner, envelope);
      MARGAY_CHECK(envelope.payload().size() <= northbound::kSizeLimit);
      const auto opened = northbound::open(envelope, rules(), now_.monotonic);
      const auto* good = std::get_if<northbound::Opened>(&opened);
      MARGAY_CHECK(good != nullptr && good->message.header.direction == direction);
      MARGAY_CHECK(good->message.body == message->body);
      if (const auto* batch = std::get_if<northbound::Batch>(&message->body)) {
        for (const auto& delta : batch->deltas)
          MARGAY_CHECK(delta.change.cs_id == "WEB" || delta.change.cs_id == "VRS");
      }
    }
  }

  std::map<northbound::RowKey, northbound::RowVersion> versions() const {
    std::map<northbound::RowKey, northbound::RowVersion> all;
    for (const auto& [c_sma, site] : table_.sites()) {
      for (const auto& [cs_id, part] : site.parts) {
        for (const auto& [id, held] : part.rows) all[held.row.key] = held.row.version;
      }
    }
    return all;
  }

  static void check_table(const cps::ServiceTable& table) {
    for (const auto& [c_sma, site] : table.sites()) {
      size_t rows = 0;
      for (const auto& [cs_id, part] : site.parts) {
        MARGAY_CHECK(cs_id == "WEB" || cs_id == "VRS");
        northbound::Digest digest;
        for (const auto& [id, held] : part.rows) {
          MARGAY_CHECK((held.row.key == northbound::RowKey{cs_id, id}) && !part.tombstones.contains(id));
          MARGAY_CHECK(held.row.version.epoch <= site.epoch);
          digest += northbound::digest_of(held.row.key, held.row.version);
        }
        MARGAY_CHECK(digest == part.digest && part.by_version.size() == part.tombstones.size());
        rows += part.rows.size();
      }
      MARGAY_CHECK(c_sma == kCSma && rows == site.rows && rows <= kLimits.rows_max);
    }
  }

  static cps::ReceiverConfig receiver_config() {
    cps::ReceiverConfig config;
    config.identity = kCPs;
    config.c_sma = kCSma;
    config.cs_ids = {"WEB", "VRS"};
    return config;
  }
  static northbound::SenderConfig sender_config() {
    northbound::SenderConfig config;
    config.identity = kCSma;
    config.c_ps = kCPs;
    config.cs_ids = {"WEB", "VRS"};
    return config;
  }
  // Of a C-PS's scope and beside it.
  static northbound::RowStore rows() {
    northbound::RowStore store(7);
    for (const std::string cs_id : {"WEB", "VRS", "ARS"}) {
      northbound::Change change{cs_id};
      for (const std::string port : {"80", "81", "82"}) {
        northbound::Row& row = change.rows.emplace_back();
        row.key = {cs_id, "192.0.2.21:" + port};
        row.source = northbound::SourceState::kHealthy;
        row.metrics.gas = 60;
        row.valid_for = 180 * kSecond;
      }
      store.commit(change, false);
      store.commit({cs_id, {}, {{change.rows.back().key, {}, northbound::WithdrawReason::kFailed}}}, true);
    }
    store.end_first_round();
    return store;
  }

  Time now_{1000 * kSecond, 1'700'000'000'000};
  cps::ServiceTable table_{kLimits};
  northbound::Peer peer_;
  northbound::RowStore store_ = rows();
  northbound::Digest chunks_;
  End<cps::ReceiverSession> c_ps_{{receiver_config(), "challenge of c-ps!", now_.monotonic}, "challenge of c-ps!"};
  End<northbound::SenderSession> c_sma_ = [this] {
    End<northbound::SenderSession> end{{sender_config(), 1, now_.monotonic}, "challenge of c-sma"};
    end.session.connected(end.challenge, now_.monotonic);
    return end;
  }();
};

}  // namespace

FUZZ_TARGET(advertisement) {
  World world;
  for (const test::Piece& piece : test::pieces_of(data, size)) world.take(piece);
  world.finish();
  return 0;
}
