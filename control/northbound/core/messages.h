// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the two ends of the northbound say to each other. Plain values; wire/ writes them down, docs/northbound.md tells
// the rules. The C-PS is the server and speaks first.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/units.h"
#include "control/northbound/core/digest.h"
#include "control/northbound/core/row.h"

namespace margay::northbound {

inline constexpr uint32_t kProtocolVersion = 1;
inline constexpr size_t kUnackedMax = 16;                                 // messages of a C-SMA that await their ack
inline constexpr uint32_t kSizeLimit = 1 << 20, kSizeLimitMin = 1 << 16;  // bytes of a message's payload
inline constexpr size_t kChallengeMin = 16, kChallengeMax = 64;           // bytes, random
inline constexpr size_t kCsIdsMax = 1024;                                 // of a session: a hello names them all

enum class Direction : uint8_t { kToCPs, kToCSma };

struct Header {
  Direction direction{};
  std::string sender, receiver;
  std::string challenge = {};  // the receiver's; empty in a C-PS's hello, which has not been told one
  uint64_t sequence = 0;       // of the session and direction, from 1, without gaps
  uint64_t seen = 0;           // the receiver's last sequence that the sender has dealt with
  uint64_t nonce = 0;          // of the signing key, rising
  int64_t sent_unix_ms = 0;
  bool operator==(const Header&) const = default;
};

// That somebody holds a CS-ID's rows as they were at a version.
struct Position {
  std::string cs_id;
  RowVersion through = {};
  bool operator==(const Position&) const = default;
};

struct Hello {
  std::vector<uint32_t> versions;  // a C-PS: all that it speaks; a C-SMA: the one that it took
  uint32_t size_limit = kSizeLimit;
  std::vector<std::string> cs_ids =
      {};  // a C-PS: asked for, none: all that it may have; a C-SMA: what it may have of those
  std::string challenge = {};
  // A C-PS's
  bool takes_digests = false;  // else a snapshot goes out each heartbeat
  bool persists = false;       // acks what survives its end
  std::vector<Position> resume = {};
  // A C-SMA's
  uint64_t epoch = 0;
  Nanoseconds heartbeat = 0;
  bool operator==(const Hello&) const = default;
};

// A CS-ID's rows and withdrawals of the versions above `after` up to `through`: all of them, each key at its newest. To
// be applied as one, but for rows that the C-PS refuses.
struct Delta {
  Change change;
  RowVersion after = {}, through = {};
  bool operator==(const Delta&) const = default;
};

struct Batch {
  std::vector<Delta> deltas;
  bool operator==(const Batch&) const = default;
};

// All rows of these CS-IDs as they were at `version`. Deltas may come between its messages.
struct SnapshotBegin {
  uint64_t id = 0;
  RowVersion version = {};
  uint64_t rows = 0;  // in all chunks
  std::vector<std::string> cs_ids = {};
  bool operator==(const SnapshotBegin&) const = default;
};
struct SnapshotChunk {
  uint64_t id = 0;
  std::vector<Row> rows = {};
  bool operator==(const SnapshotChunk&) const = default;
};
// With it, and not before, a row of these CS-IDs that was in no chunk and is not newer than the snapshot is gone.
struct SnapshotEnd {
  uint64_t id = 0;
  Digest digest = {};  // of the chunks' rows
  bool operator==(const SnapshotEnd&) const = default;
};

// What a C-PS holds of a CS-ID if all went well, without the rows that it refused.
struct View {
  Position position;
  struct Check {
    uint64_t rows = 0;
    Digest digest = {};
    bool operator==(const Check&) const = default;
  };
  std::optional<Check> check = {};  // absent: something of the CS-ID waits to be sent
  bool operator==(const View&) const = default;
};
struct Keepalive {
  std::vector<View> views;
  bool operator==(const Keepalive&) const = default;
};

// Everything up to this sequence is applied, and persisted where the C-PS said that it persists.
struct Ack {
  uint64_t sequence = 0;
  bool operator==(const Ack&) const = default;
};

enum class NackCode : uint8_t { kMalformed, kOutOfScope, kWrongVersion, kTableFull };
std::string_view name_of(NackCode c);  // "TABLE_FULL"

struct RefusedRow {
  RowKey key;
  RowVersion version = {};
  bool operator==(const RefusedRow&) const = default;
};
// Of the message with this sequence these rows were refused; none are named: all of it, and the session ends. The rest
// of the message is applied and acked.
struct Nack {
  uint64_t sequence = 0;
  NackCode code{};
  std::string detail = {};
  std::vector<RefusedRow> rows = {};
  bool operator==(const Nack&) const = default;
};

enum class SyncReason : uint8_t { kMismatch, kOperator };
std::string_view name_of(SyncReason r);  // "MISMATCH"

// A C-PS wants a snapshot (CSMA-160), and what it refused before once more.
struct SyncRequest {
  std::vector<std::string> cs_ids;  // none: all
  SyncReason reason{};
  bool operator==(const SyncRequest&) const = default;
};

using Body = std::variant<Hello, Batch, SnapshotBegin, SnapshotChunk, SnapshotEnd, Keepalive, Ack, Nack, SyncRequest>;
std::string_view name_of(const Body& body);  // "SnapshotBegin"

struct Message {
  Header header;
  Body body;
  bool operator==(const Message&) const = default;
};

// More bytes than the wire takes for it: what keeps messages below their limit. Payload but for its header and rows:
// kEnvelopeSize.
inline constexpr size_t kEnvelopeSize = 1024;
size_t size_of(const RowKey& key);
size_t size_of(const Row& row);
size_t size_of(const Withdrawal& withdrawal);
size_t size_of(const View& view);
inline constexpr size_t kDeltaSize = 320;  // a Delta, without rows

}  // namespace margay::northbound
