// SPDX-License-Identifier: Apache-2.0
#pragma once

// A C-PS's side of one session with one C-SMA, from the stream's beginning to its end: what the messages do to the
// table, and what is answered. Pure: the adapter tells what came and the time, and asks for the next message whenever
// one can be written. Of two sessions with one C-SMA the newer lives; the adapter ends the other. One thread.

#include <deque>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "common/time_point.h"
#include "control/cps/core/service_table.h"
#include "control/northbound/core/messages.h"
#include "control/northbound/core/verifier.h"

namespace margay::cps {

struct ReceiverConfig {
  std::string identity, c_sma;      // ours, and the C-SMA's
  std::vector<std::string> cs_ids;  // that this C-SMA may speak of; at most kCsIdsMax
  uint32_t size_limit = northbound::kSizeLimit;
  bool takes_digests = true;
  bool persists = false;  // acks wait for persisted()
  Nanoseconds hello_timeout = 10 * kSecond;
  int64_t window_ms = 30'000;  // CSMA-145
};

class ReceiverSession {
 public:
  // `nonce` of the header is left to whoever signs the message.
  using Next =
      std::variant<std::monostate, northbound::Message, northbound::Fault>;  // nothing; write it; end the stream

  // A stream stands. The challenge is new and random.
  ReceiverSession(ReceiverConfig config, std::string challenge, Nanoseconds now);

  // A message whose signature was good. A fault: it was not taken; where that ends_session(), the adapter ends the
  // stream once next() has nothing to write. `peer` is this C-SMA's, over all sessions.
  std::optional<northbound::Fault> received(ServiceTable& table, northbound::Peer& peer,
                                            const northbound::Message& message, std::string_view key_id, Time now);
  // A message whose signature was good is none of this protocol: it is answered before the stream ends.
  void malformed(northbound::Peer& peer, std::string detail);
  Next next(const ServiceTable& table, northbound::Peer& peer, Time now);
  // When next() may have something, if nothing happens before.
  Nanoseconds next_due() const;
  // Why the stream is to be ended now, and when it will be: for while a write is outstanding and next() is not asked.
  std::optional<northbound::Fault> overdue(northbound::Peer& peer, Nanoseconds now);
  Nanoseconds overdue_at() const { return deadline_; }

  // All that was received until now would survive the end of this process.
  void persisted() { persisted_ = verifier_.last_sequence(); }
  // An operator wants a snapshot of these CS-IDs; none: of all.
  void request_sync(const std::vector<std::string>& cs_ids);

  bool established() const { return heartbeat_ > 0; }
  uint64_t mismatches() const { return mismatches_; }  // views that were not ours
  uint64_t snapshots() const { return snapshots_; }    // taken whole
  std::string fingerprint() const;

 private:
  using Fault = northbound::Fault;
  using Result = std::optional<Fault>;

  Result take(ServiceTable& table, const northbound::Message& message, Nanoseconds now);
  Result take(ServiceTable& table, const northbound::Hello& hello);
  Result take(ServiceTable& table, const northbound::Batch& batch, uint64_t sequence, Nanoseconds now);
  Result take(const ServiceTable& table, const northbound::SnapshotBegin& begin);
  Result take(const northbound::SnapshotChunk& chunk);
  Result take(ServiceTable& table, const northbound::SnapshotEnd& end, uint64_t sequence, Nanoseconds now);
  Result take(ServiceTable& table, const northbound::Keepalive& keepalive, uint64_t seen, Nanoseconds now);
  void nack(uint64_t sequence, const std::vector<Refusal>& refusals);
  northbound::Message make(northbound::Body body, Time now);
  northbound::Message hello(const ServiceTable& table, Time now);
  uint64_t ackable() const { return config_.persists ? persisted_ : verifier_.last_sequence(); }

  ReceiverConfig config_;
  std::string challenge_, their_challenge_;
  northbound::Verifier verifier_;
  Nanoseconds deadline_;       // for the hello, then for anything
  Nanoseconds heartbeat_ = 0;  // 0: no hello yet
  bool greeted_ = false;
  bool broken_ = false;  // ends once the last nack is written
  std::set<std::string> scope_;
  uint64_t sequence_ = 0, acked_ = 0, persisted_ = 0;
  uint64_t nack_sequence_ = 0;  // of ours; what the C-SMA wrote without having seen it does not know what we refused
  std::deque<northbound::Nack> nacks_;
  std::optional<Staged> staged_;
  std::set<std::string> wanted_, awaited_;  // CS-IDs of which a snapshot is to be asked for; has been
  northbound::SyncReason wanted_because_{};
  uint64_t mismatches_ = 0, snapshots_ = 0;
};

}  // namespace margay::cps
