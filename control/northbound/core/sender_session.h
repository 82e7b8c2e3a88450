// SPDX-License-Identifier: Apache-2.0
#pragma once

// A C-SMA's side of the sessions with one C-PS: when to call it, what to send it next, what its answers mean. The rows
// come from a RowStore, which stays the same object for as long as this one lives. Pure: the adapter tells what
// happened and the time, and asks for the next message whenever one can be written; a message is made at that moment,
// so that rows meet in the store while it cannot (D-13). One thread.
//
// In order of importance: critical changes (CSMA-152; within their token bucket at once, D-11, D-50), the heartbeat
// (CSMA-153, 154), routine changes (CSMA-128, D-50), snapshots (CSMA-158, 160, 177). Only CS-IDs of the session's scope
// occur in any message. What a C-PS refused is not sent again until it changes, but in a snapshot: that has everything.

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "common/time_point.h"
#include "common/token_bucket.h"
#include "control/northbound/core/backoff.h"
#include "control/northbound/core/row_store.h"
#include "control/northbound/core/verifier.h"

namespace margay::northbound {

struct SenderConfig {
  std::string identity, c_ps;        // ours, and the C-PS's
  std::vector<std::string> cs_ids;   // that it may see; at most kCsIdsMax
  uint32_t size_limit = kSizeLimit;  // of either direction; at least kSizeLimitMin
  Nanoseconds heartbeat = 60 * kSecond;
  Nanoseconds minimum_interval = 5 * kSecond;  // between routine updates of a CS-ID
  Nanoseconds gather = kSecond;                // routine changes wait so long for others
  TokenRate rate{kSecond / 10, 20};
  TokenRate critical{kSecond / 50, 100};
  Nanoseconds backoff_initial = kSecond, backoff_max = 60 * kSecond;  // and half a heartbeat
  Nanoseconds hello_timeout = 10 * kSecond, ack_timeout = 10 * kSecond;
  int64_t window_ms = 30'000;
};

class SenderSession {
 public:
  // `nonce` of the header is left to whoever signs the message.
  using Next = std::variant<std::monostate, Message, Fault>;  // nothing now; write it; end the stream
  enum class State : uint8_t { kApart, kAwaitsHello, kEstablished };

  // Seed: of the backoff's jitter.
  SenderSession(SenderConfig config, uint64_t seed, Nanoseconds now);

  // When to call the C-PS. REQUIRES: state() == kApart
  Nanoseconds connect_at() const { return connect_at_; }
  void call_now() { connect_at_ = 0, backoff_.reset(); }
  // A stream stands. The challenge is new and random. REQUIRES: state() == kApart
  void connected(std::string challenge, Nanoseconds now);
  // The stream ended, or could not be had.
  void lost(Nanoseconds now);

  // A message whose signature was good. A fault: it was not taken; where that ends_session(), the adapter ends the
  // stream.
  std::optional<Fault> received(const RowStore& store, const Message& message, std::string_view key_id, Time now);
  // The store has taken in a change of this CS-ID.
  void committed(const std::string& cs_id, Nanoseconds now);
  Next next(const RowStore& store, Time now);
  // When next() may have something, if nothing happens before.
  Nanoseconds next_due(const RowStore& store) const;
  // Why the stream is to be ended now, and when it will be: for while a write is outstanding and next() is not asked.
  std::optional<Fault> overdue(Nanoseconds now);
  Nanoseconds overdue_at() const;  // kNever

  State state() const { return state_; }
  // The C-PS took our hello, and acked all that it was sent.
  bool all_acked() const { return state_ == State::kEstablished && answered_ && unacked_.empty(); }
  size_t unacked() const { return unacked_.size(); }
  size_t refused() const { return refused_.size(); }  // rows that the peer would not take and has not got since
  // The commit up to which a CS-ID was sent; absent: not in the session's scope.
  std::optional<uint64_t> sent(const std::string& cs_id) const {
    const auto part = parts_.find(cs_id);
    return part == parts_.end() ? std::nullopt : std::optional(part->second.sent);
  }
  Peer& peer() { return peer_; }
  const Peer& peer() const { return peer_; }
  // What there is to say of the session in a few words: for comparing two, and for people who look for an error.
  std::string fingerprint() const;

 private:
  using RowPtr = RowStore::RowPtr;
  // How far the C-PS is with a CS-ID.
  struct Part {
    uint64_t sent = 0;           // of this epoch, up to here
    bool in_step = false;        // what the C-PS holds is whole up to `sent`, or will be with the snapshot under way
    bool under_way = false;      // a snapshot of it is
    uint64_t begun = 0;          // sequence of the snapshot that it was in last; 0: none
    bool too_large = false;      // for a delta: waits for its snapshot
    Nanoseconds changed_at = 0;  // the first change that is not sent, where there is one
    Nanoseconds routine_at = 0;  // no routine update before
  };
  struct Snapshot {
    SnapshotBegin begin = {};
    std::vector<RowPtr> rows = {};
    size_t next = 0;
    Digest digest = {};
  };
  struct Unacked {
    uint64_t sequence = 0;
    Nanoseconds at = 0;
    std::vector<RowPtr> rows;
  };
  struct Refused {
    RowVersion version;
    // With its whole message, so that the C-PS may not know of it: stands over the end of the session.
    bool malformed = false;
  };
  enum class Kind : uint8_t { kCritical, kRoutine, kHeartbeat };

  std::optional<Fault> take(const RowStore& store, const Message& message, Nanoseconds now);
  std::optional<Fault> take_hello(const RowStore& store, const Hello& hello, Nanoseconds now);
  std::optional<Fault> take_ack(const Ack& ack);
  std::optional<Fault> take_nack(const RowStore& store, const Nack& nack);
  void take_sync_request(const SyncRequest& request);
  void enter_scope(const RowStore& store, const Hello& hello, const std::set<std::string>& scope, Nanoseconds now);
  Nanoseconds due_of(const RowStore& store, const std::string& cs_id, const Part& part) const;
  void forget_refused(const std::string& cs_id, bool malformed_too);
  bool may_send(const RowStore& store, const Part& part) const;
  bool due(const RowStore& store, const std::string& cs_id, const Part& part, Kind kind, Nanoseconds now) const;

  Message make(Body body, Time now, std::vector<RowPtr> rows = {});
  Message hello(const RowStore& store, Time now);
  std::optional<Message> batch(const RowStore& store, Kind kind, Time now);
  std::optional<Message> heartbeat(const RowStore& store, Time now);
  Message keepalive(const RowStore& store, Time now);
  View view(const RowStore& store, const std::string& cs_id, const Part& part) const;
  std::optional<Message> snapshot(const RowStore& store, Time now);
  Message begin_snapshot(const RowStore& store, Time now);
  Message chunk(Time now);
  Message end_snapshot(Time now);

  struct Collected {
    Delta delta;
    std::vector<RowPtr> rows;
    size_t size = 0;
    bool whole = true;  // else it ends at an older version, for want of room
  };
  Collected collect(const RowStore& store, const std::string& cs_id, const Part& part, size_t room);
  void add(const RowKey& key, uint64_t commit, const RowStore::Entry& entry, uint64_t epoch, Collected& out);
  bool is_refused(const Row& row) const;

  SenderConfig config_;
  Backoff backoff_;
  Nanoseconds connect_at_;
  TokenBucket routine_, critical_;
  Peer peer_;
  std::map<RowKey, Refused> refused_;

  // Of the session
  State state_ = State::kApart;
  std::optional<Verifier> verifier_;
  std::string challenge_, their_challenge_;
  Nanoseconds hello_by_ = 0;
  bool greeted_ = false;   // our hello is written
  bool answered_ = false;  // and acked
  bool takes_digests_ = true;
  uint32_t size_limit_ = kSizeLimit;
  uint64_t sequence_ = 0;
  std::deque<Unacked> unacked_;
  std::map<std::string, Part> parts_;  // the scope
  std::set<std::string> changed_;      // those with changes that are not sent
  std::set<std::string> want_snapshot_;
  std::optional<Snapshot> snapshot_;
  uint64_t snapshots_ = 0;
  Nanoseconds heartbeat_at_ = 0;
  std::optional<std::string> keepalive_from_;  // a heartbeat is under way: the next CS-ID to tell of
};

}  // namespace margay::northbound
