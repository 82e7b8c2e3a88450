// SPDX-License-Identifier: Apache-2.0
// Writes the seeds of tests/fuzz/corpus/report, .../advertisement and .../state: make_message_corpus DIRECTORY.
// Run by hand when the inputs' format changes; the files are part of the repository.
#include <filesystem>
#include <fstream>

#include "control/agent/agent_state.h"
#include "control/cps/state_wire.h"
#include "control/northbound/wire/envelope.h"
#include "control/record/wire.h"
#include "margay/v1/envelope.pb.h"
#include "margay/v1/report.pb.h"
#include "tests/fuzz/messages.h"

namespace margay::test {
namespace {

using namespace northbound;

constexpr int64_t kUnix = 1'700'000'000'000;
constexpr Time kNow{1000 * kSecond, kUnix};
constexpr unsigned kLater = 2 << kPauseShift;  // by a second

void write(const std::filesystem::path& file, std::string_view bytes) {
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << bytes;
}

// ---- as report_fuzz.cc reads them

control::Report report(uint64_t sequence, uint32_t gas, control::Trigger trigger = control::Trigger::kPeriodic) {
  control::Report r;
  r.csci_id = "192.0.2.21:80";
  r.cs_id = "WEB";
  r.timestamp_ms = kUnix + static_cast<int64_t>(sequence) * 1000;
  r.epoch = 1;
  r.sequence = sequence;
  r.full = true;
  r.trigger = trigger;
  r.reporting_interval = kSecond;
  r.state.gas = control::Gas{.value = gas};
  r.state.computing_time.value = 5;
  r.state.health = {.healthy = 2, .degraded = 0, .unhealthy = 1, .unknown = 1};
  r.state.instances = {{"a", HealthState::kHealthy, Admin::kEnabled, 40, 3},
                       {"b", HealthState::kHealthy, Admin::kDraining, 40, 0},
                       {"c", HealthState::kUnknown, Admin::kEnabled, 0, 0}};
  r.state.price = 7;
  r.state.reputation = 90;
  r.state.security_level = 2;
  r.security_events = {{"a key was read", kUnix}};
  return r;
}

void add(std::string& history, unsigned what, const control::Report& report) {
  v1::Report message;
  control::to_wire(report, message);
  append_piece(history, what | kLater, message.SerializeAsString());
}

void reports(const std::filesystem::path& folder) {
  std::string life, anomalies, others;
  add(life, 0, report(1, 60));
  add(life, 0, report(2, 61));
  add(life, 0, report(3, 0, control::Trigger::kAllDown));
  control::Report delta = report(5, 60, control::Trigger::kRecovery);
  delta.full = false;
  delta.state.instances.clear();
  add(life, 0, delta);
  add(life, 0, report(6, 0, control::Trigger::kStop));
  add(anomalies, 0x20, report(1, 10));
  add(anomalies, 0x20, report(2, 101));
  add(anomalies, 0x20, report(3, 90));
  add(anomalies, 0x20, report(4, 90));
  add(anomalies, 0x20 | 4 << kPauseShift, report(5, 4'294'967'295));
  control::Report second = report(1, 50), third = second;
  second.csci_id = "192.0.2.22:80";
  third.csci_id = "192.0.2.23:80";
  third.cs_id = "VRS";
  add(others, 0x20, second);
  add(others, 0x21, third);
  add(others, 0x22, report(1, 60));
  add(others, 0x61, third);
  add(others, 0x23, report(2, 60));
  append_piece(others, 0x81, "");
  append_piece(others, 0, "\xff");
  write(folder / "life", life);
  write(folder / "anomalies", anomalies);
  write(folder / "others", others);
}

// ---- as advertisement_fuzz.cc reads them

std::string payload(Body body) {
  v1::Signed envelope;
  seal({Header{.direction = Direction::kToCPs, .sender = "edge-1", .receiver = "cps", .sequence = 1}, std::move(body)},
       kNow.monotonic, nullptr, envelope);
  return envelope.payload();
}

Row row(const std::string& cs_id, std::optional<std::string> csci_id, uint64_t commit) {
  Row r{RowKey{cs_id, std::move(csci_id)}, {7, commit}};
  r.metrics.gas = 60;
  r.metrics.computing_time_ms = 5;
  r.health.healthy = 2;
  r.sci_health = HealthState::kHealthy;
  if (r.key.csci_id) r.source = SourceState::kHealthy;
  r.measured_at = kNow.monotonic - kSecond;
  r.valid_for = 180 * kSecond;
  return r;
}

std::string greeting() {
  Hello hello{{1}, kSizeLimit, {"VRS", "WEB"}, "challenge of c-sma"};
  hello.epoch = 7;
  hello.heartbeat = 60 * kSecond;
  std::string history;
  append_piece(history, 2, payload(hello));
  return history;
}

void to_c_ps(const std::filesystem::path& folder) {
  const auto add = [](std::string& history, Body body) { append_piece(history, 2 | kLater, payload(std::move(body))); };
  std::string snapshot = greeting(), deltas = greeting(), refused = greeting();
  add(snapshot, SnapshotBegin{1, {7, 5}, 3, {"VRS", "WEB"}});
  add(snapshot, SnapshotChunk{1, {row("VRS", {}, 1), row("WEB", "192.0.2.21:80", 5)}});
  add(snapshot, Batch{{{{"WEB", {row("WEB", "192.0.2.22:80", 6)}}, {7, 5}, {7, 6}}}});
  add(snapshot, SnapshotChunk{1, {row("WEB", {}, 5)}});
  add(snapshot, SnapshotEnd{1, {}});
  add(snapshot, Keepalive{{{{"WEB", {7, 6}}, View::Check{3, {}}}, {{"VRS", {7, 5}}, {}}}});
  const Withdrawal gone{{"WEB", "192.0.2.21:80"}, {7, 3}, WithdrawReason::kFailed};
  add(deltas, Batch{{{{"WEB", {row("WEB", "192.0.2.21:80", 1), row("WEB", {}, 1)}}, {7, 0}, {7, 1}},
                     {{"VRS", {row("VRS", "192.0.2.23:80", 2)}}, {7, 0}, {7, 2}}}});
  add(deltas, Batch{{{{"WEB", {row("WEB", {}, 3)}, {gone}}, {7, 1}, {7, 3}}}});
  add(deltas, Batch{{{{"WEB", {row("WEB", "192.0.2.21:80", 4)}}, {7, 3}, {7, 4}}}});
  add(deltas, SnapshotBegin{1, {7, 5}, 1, {"WEB"}});
  add(deltas, SnapshotChunk{1, {row("WEB", {}, 5)}});
  add(deltas, SnapshotEnd{1, {}});
  append_piece(deltas, 0x42, greeting().substr(3));
  add(refused, Batch{{{{"WEB", {row("WEB", "192.0.2.21:80", 9)}}, {7, 0}, {7, 1}}}});
  Delta many{{"WEB"}, {7, 0}, {7, 9}};
  for (uint64_t n = 1; n <= 9; ++n) many.change.rows.push_back(row("WEB", "sci-" + std::to_string(n), n));
  add(refused, Batch{{many}});
  add(refused, Batch{{{{"ARS", {row("ARS", "192.0.2.21:80", 1)}}, {7, 0}, {7, 1}}}});
  v1::Signed envelope;
  envelope.set_payload(greeting().substr(3));
  envelope.set_key_id("k1");
  envelope.set_algorithm(v1::ALGORITHM_ED25519);
  envelope.set_signature("12");
  append_piece(refused, 1, envelope.SerializeAsString());
  write(folder / "snapshot", snapshot);
  write(folder / "deltas", deltas);
  write(folder / "refused", refused);
}

void to_c_sma(const std::filesystem::path& folder) {
  constexpr unsigned kTo = 0x22;
  Hello hello{{1}, kSizeLimitMin, {}, "challenge of c-ps!", true};
  std::string answers;
  append_piece(answers, kTo, payload(hello));
  for (uint64_t n = 1; n <= 4; ++n) append_piece(answers, kTo | kLater, payload(Ack{n}));
  append_piece(answers, kTo, payload(Nack{4, NackCode::kTableFull, "full", {{{"WEB", "192.0.2.21:80"}, {7, 1}}}}));
  append_piece(answers, kTo | kLater, payload(SyncRequest{{"WEB"}, SyncReason::kOperator}));
  append_piece(answers, kTo, payload(Ack{6}));
  append_piece(answers, kTo | 5 << kPauseShift, payload(Ack{7}));
  hello.resume = {{"WEB", {7, 1}}, {"VRS", {6, 9}}};
  append_piece(answers, kTo | 0x40, payload(hello));
  append_piece(answers, kTo, payload(Ack{1}));
  append_piece(answers, kTo, payload(Nack{1, NackCode::kMalformed, "all of it", {}}));
  write(folder / "answers", answers);
}

// ---- as state_fuzz.cc reads them

void states(const std::filesystem::path& folder) {
  c_sma::SavedState c_sma{.saved_ms = kUnix - 1000};
  for (const char* port : {"21:80", "22:80", "24:80"}) {
    const std::string csci_id = std::string("192.0.2.") + port;
    c_sma.orders.push_back({csci_id, {1, 7}});
    c_sma::SavedEntry& entry = c_sma.entries.emplace_back();
    entry.csci_id = csci_id;
    entry.cs_id = csci_id == "192.0.2.21:80" ? "WEB" : "VRS";
    entry.identity = "web";
    entry.metrics = row("WEB", {}, 1).metrics;
    entry.health.healthy = 2;
    entry.reporting_interval = 30 * kSecond;
    entry.age = kSecond;
  }
  cps::SavedPart part{"WEB", {7, 1}, RowVersion{7, 5}, {}, {}};
  for (const auto& r : {row("WEB", {}, 5), row("WEB", "192.0.2.21:80", 4)}) {
    part.rows.push_back({r, kSecond});
    part.rows.back().row.measured_at = 2 * kSecond;  // an age
  }
  part.tombstones = {{{"WEB", "192.0.2.22:80"}, {7, 3}, WithdrawReason::kAdmin}};
  const cps::SavedPart unknown{"VRS", {}, {}, {}, {}};
  const cps::SavedState c_ps{kUnix - 1000, {{"edge-1", 7, {part, unknown}, {{"k1", 65536}}}}};
  write(folder / "c-sma", '\0' + control::bytes_of(c_sma));
  write(folder / "c-ps", '\1' + cps::bytes_of(c_ps, kNow.monotonic));
}

}  // namespace
}  // namespace margay::test

int main(int argc, char** argv) {
  if (argc != 2) return 1;
  const std::filesystem::path root = argv[1];
  margay::test::reports(root / "report");
  margay::test::to_c_ps(root / "advertisement");
  margay::test::to_c_sma(root / "advertisement");
  margay::test::states(root / "state");
  return 0;
}
