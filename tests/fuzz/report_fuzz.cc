// SPDX-License-Identifier: Apache-2.0
// Messages of SCIs as CollectionPort takes them: bytes, a margay.v1.Report, the report reader, the C-SMA's core.
// Nothing may crash; each has one answer, what is refused changes nothing, what is believed is within what its sender
// may say, and what is advertised can be written and read. Of `what`, from the low bits: who sends it, a pause before,
// whether order and time are mended, which stream, whether the stream is closed instead.

#include <array>
#include <map>
#include <memory>

#include "common/check.h"
#include "control/c_sma/c_sma.h"
#include "control/northbound/wire/advertisement.h"
#include "control/record/wire.h"
#include "control/record/wire_values.h"
#include "margay/v1/advertisement.pb.h"
#include "margay/v1/report.pb.h"
#include "tests/fuzz/messages.h"
#include "tests/fuzz/target.h"

namespace {

using namespace margay;

constexpr uint32_t kCeiling = 100;
constexpr unsigned kInOrder = 0x20, kStream = 0x40, kClose = 0x80;
constexpr int64_t kUnix = 1'700'000'000'000;

c_sma::CSmaConfig config() {
  c_sma::CSmaConfig c;
  c.identity = "edge-1";
  c.accept = {
      {"192.0.2.21:80", "WEB", kCeiling}, {"192.0.2.22:80", "WEB", kCeiling}, {"192.0.2.23:80", "VRS", kCeiling}};
  c.cache.max_entries = 2;
  c.cache.quota_per_identity = Share{1.0};
  return c;
}

std::shared_ptr<const c_sma::Peer> peer(size_t n) {
  static const std::array<std::shared_ptr<const c_sma::Peer>, 4> kPeers = {
      std::make_shared<c_sma::Peer>(c_sma::Peer{"web", {{"192.0.2.21:80", "WEB"}, {"192.0.2.22:80", "WEB"}}, false}),
      std::make_shared<c_sma::Peer>(c_sma::Peer{"vrs", {{"192.0.2.23:80", "VRS"}, {"192.0.2.21:80", "VRS"}}, false}),
      std::make_shared<c_sma::Peer>(c_sma::Peer{"edge-1", {}, true}),
      std::make_shared<c_sma::Peer>(c_sma::Peer{"nobody", {}, false})};
  return kPeers[n];
}

void written_and_read(const control::Report& report) {
  v1::Report first, second;
  control::to_wire(report, first);
  const auto again = control::report_of(first);
  MARGAY_CHECK(again.has_value());
  control::to_wire(*again, second);
  MARGAY_CHECK(first.SerializeAsString() == second.SerializeAsString());
}

class SciWorld {
 public:
  void take(const test::Piece& piece) {
    const Nanoseconds pause = test::pause_of(piece.what);
    now_.monotonic += pause;
    now_.unix_ms += static_cast<int64_t>(pause / kMillisecond);
    handle(c_sma::Tick{});
    const c_sma::StreamId stream = 1 + 2 * (piece.what & 3u) + ((piece.what & kStream) != 0 ? 1 : 0);
    if ((piece.what & kClose) != 0) return handle(c_sma::StreamClosed{stream});
    const auto before = entries();
    answers_ = 0;
    handle(event(piece, stream));
    MARGAY_CHECK(answers_ == 1);
    if (answer_.verdict == c_sma::Verdict::kRefused) MARGAY_CHECK(entries() == before);
  }
  // To the end of whatever waits.
  void finish() {
    for (int n = 0; n < 40 && core_.next_due() != kNever; ++n) {
      now_.monotonic = std::max(now_.monotonic, core_.next_due());
      handle(c_sma::Tick{});
      MARGAY_CHECK(core_.next_due() > now_.monotonic);
    }
  }

 private:
  struct Seen {
    northbound::Metrics metrics;
    HealthSummary health;
    Nanoseconds heard_at = 0;
    uint64_t epoch = 0, sequence = 0;
    bool operator==(const Seen&) const = default;
  };

  c_sma::Event event(const test::Piece& piece, c_sma::StreamId stream) {
    const auto from = peer(piece.what & 3u);
    v1::Report message;
    if (!message.ParseFromString(piece.bytes)) return c_sma::ReportUnreadable{from->identity, "", "no message", stream};
    if ((piece.what & kInOrder) != 0) {
      message.set_sequence(++sequence_);
      control::put_unix_ms(now_.unix_ms, *message.mutable_timestamp());
    }
    auto report = control::report_of(message);
    if (!report) {
      MARGAY_CHECK(report.error().message.find('\n') == std::string::npos);
      return c_sma::ReportUnreadable{from->identity, message.csci_id(), report.error().message, stream};
    }
    written_and_read(*report);
    return c_sma::ReportReceived{std::move(*report), from, stream, false};
  }

  std::map<std::string, Seen> entries() const {
    std::map<std::string, Seen> all;
    core_.cache().for_each([&](const c_sma::CacheEntry& e) {
      all[e.id->csci_id] = {e.metrics, e.health, e.heard_at, e.epoch, e.sequence};
    });
    MARGAY_CHECK(all.size() <= config().cache.max_entries);
    return all;
  }

  void handle(const c_sma::Event& event) {
    for (const c_sma::Action& action : core_.handle(event, now_)) {
      std::visit([this](const auto& a) { perform(a); }, action);
    }
  }
  void perform(const c_sma::Judged& a) {
    ++answers_;
    answer_ = a;
    MARGAY_CHECK(a.reason.empty() == (a.verdict == c_sma::Verdict::kAccepted));
  }
  void perform(const c_sma::Commit& a) const {
    for (const northbound::Row& row : a.change.rows) {
      check_key(row.key);
      if (row.key.csci_id && row.metrics.gas) MARGAY_CHECK(*row.metrics.gas <= kCeiling);
      MARGAY_CHECK(row.metrics.gas.value_or(0) <= 2 * kCeiling);
      northbound::Row versioned = row;
      versioned.version = {1, 1};
      v1::Row wire;
      northbound::to_wire(versioned, now_.monotonic, wire);
      const auto read = northbound::row_of(wire, now_.monotonic);
      MARGAY_CHECK(read && *read == versioned);
    }
    for (const northbound::Withdrawal& gone : a.change.withdrawals) check_key(gone.key);
  }
  void perform(const c_sma::SourceChanged& a) const { check_key({a.cs_id, a.csci_id}); }
  void perform(const auto&) const {}

  static void check_key(const northbound::RowKey& key) {
    static const c_sma::CSmaConfig kConfig = config();
    MARGAY_CHECK(std::any_of(kConfig.accept.begin(), kConfig.accept.end(), [&](const c_sma::AcceptedSci& sci) {
      return sci.cs_id == key.cs_id && (!key.csci_id || sci.csci_id == *key.csci_id);
    }));
  }

  Time now_{1000 * kSecond, kUnix};
  c_sma::CSma core_{config(), {}, now_};
  uint64_t sequence_ = 0;
  size_t answers_ = 0;
  c_sma::Judged answer_;
};

}  // namespace

FUZZ_TARGET(report) {
  SciWorld world;
  for (const test::Piece& piece : test::pieces_of(data, size)) world.take(piece);
  world.finish();
  return 0;
}
