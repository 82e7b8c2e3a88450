// SPDX-License-Identifier: Apache-2.0
#pragma once

// All streams of a server or of a client, from the loop's side: turns gRPC's signals into events, holds to one write
// and one read at a time, ends what was closed, and ends the streams of peers that are good no longer. The loop's
// thread alone.

#include <array>
#include <atomic>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "control/rpc/signals.h"
#include "control/security/credentials.h"

namespace margay::rpc {

// Shared with gRPC's threads, which may outlive the loop's part by a moment.
struct Shared {
  std::shared_ptr<Signals> signals;
  std::shared_ptr<security::Credentials> credentials;
  security::Expected expected;
  security::Side side{};  // what the peers are
  std::atomic<uint64_t> streams{0}, opened{0}, too_many_streams{0};
  std::array<std::atomic<uint64_t>, security::kRefusals> refused = {};
  std::atomic<bool> stopping{false};

  // Whoever is refused is counted and told of.
  security::Trust::Verdict judge(std::string_view certificate, std::string_view intermediates);
};

class Table {
 public:
  struct Config {
    bool server = false;
    bool single = false;  // one message each way, which is what gRPC calls unary
    Nanoseconds open = 0, close = 0;
  };
  static constexpr size_t kPeersATurn = 8;              // are judged anew in one turn: 1 to 2 ms
  static constexpr Nanoseconds kLook = kSecond;         // how often it is looked whether they have to be
  static constexpr Nanoseconds kSweep = 600 * kSecond;  // at the latest, for whatever else may run out

  Table(std::shared_ptr<Shared> shared, const Config& config);

  // A client's new stream. `writing`: its message is on its way already.
  void add(StreamId id, std::unique_ptr<Stream> stream, bool writing);
  std::optional<RawEvent> next();
  bool send(StreamId id, std::string message);
  void close(StreamId id, Code code, const std::string& why);
  // Cancels everything and waits until gRPC has let go of it: a moment.
  void shut_down();

  bool empty() const { return entries_.empty(); }
  uint64_t cancelled() const { return cancelled_; }

 private:
  enum class Stage : uint8_t { kOpening, kOpen, kClosing };
  struct Entry {
    std::unique_ptr<Stream> stream;
    std::shared_ptr<const security::Peer> peer;
    Stage stage = Stage::kOpening;
    bool writing = false;
    bool finished = false, let_go = false;
    bool by_us = false;
    Code code = Code::kOk;
    std::string why = {};
    std::optional<security::Refusal> refusal = {};  // of a peer that was good when it came
  };

  std::optional<RawEvent> handle(Signal signal);
  std::optional<RawEvent> opened(Signal& signal);
  void read_end(StreamId id, Entry& entry);
  void broken(Entry& entry);
  bool written(Entry& entry, bool ok);
  void end(StreamId id, Entry& entry, Code code, const std::string& why);
  void finish(Entry& entry);
  void close_now(Entry& entry);
  void look_at_time();
  void arm();
  bool must_sweep(Nanoseconds now);
  void sweep();

  std::shared_ptr<Shared> shared_;
  Config config_;
  std::map<StreamId, Entry> entries_;
  std::multimap<Nanoseconds, StreamId> deadlines_;
  uint64_t cancelled_ = 0;

  std::shared_ptr<const security::Trust> trust_;  // that all peers have been judged by, or are being judged by
  Nanoseconds next_look_, last_sweep_;
  bool sweeping_ = false;
  StreamId swept_ = 0;                                       // up to here
  int64_t first_end_ = std::numeric_limits<int64_t>::max();  // of a peer's certificate, Unix seconds
  std::unordered_map<std::shared_ptr<const security::Peer>, std::optional<security::Refusal>> judged_;  // in this pass
};

}  // namespace margay::rpc
