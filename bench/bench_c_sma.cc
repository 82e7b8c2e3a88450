// SPDX-License-Identifier: Apache-2.0

// What a report costs the C-SMA from its bytes to what is committed of it, and what a row costs on its way into a
// C-PS's table, each beside Protobuf alone on the same bytes. One thread, no sockets.

#include <benchmark/benchmark.h>
#include <malloc.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "control/c_sma/c_sma.h"
#include "control/cps/core/receiver_session.h"
#include "control/northbound/core/row_store.h"
#include "control/northbound/core/sender_session.h"
#include "control/northbound/wire/envelope.h"
#include "control/record/wire.h"
#include "control/security/signing.h"
#include "margay/v1/advertisement.pb.h"
#include "margay/v1/envelope.pb.h"
#include "margay/v1/report.pb.h"
#include "tests/support/rfc8032_key.h"
#include "tests/support/temp_folder.h"

namespace margay::bench {
namespace {

constexpr int64_t kUnixMs = 1'700'000'000'000;
constexpr Nanoseconds kInterval = 60 * kSecond;
constexpr uint32_t kScisOfService = 1000;

void fail(const std::string& what) {
  std::cerr << "bench_c_sma: " << what << "\n";
  std::exit(1);
}

class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - began_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point began_ = Clock::now();
};

// All SCIs of a site, round by round: GAS moves by up to 5 %, in one of ten reports by 20 % (a threshold is 10 %).
class Reporters {
 public:
  explicit Reporters(uint32_t count) : count_(count) {}

  c_sma::AcceptedSci sci(uint32_t i) const {
    return {"192.0.2." + std::to_string(i % 250) + ":" + std::to_string(1024 + i / 250),
            "service-" + std::to_string(i / kScisOfService)};
  }
  Time now() const { return {kInterval * round_ + kSecond, kUnixMs + static_cast<int64_t>(60'000 * round_)}; }

  // Each one's next report.
  std::vector<std::string> round() {
    ++round_;
    std::vector<std::string> messages;
    for (uint32_t i = 0; i < count_; ++i) {
      const c_sma::AcceptedSci id = sci(i);
      control::Report report{.csci_id = id.csci_id,
                             .cs_id = id.cs_id,
                             .timestamp_ms = now().unix_ms,
                             .epoch = 1,
                             .sequence = round_,
                             .full = true,
                             .trigger = control::Trigger::kPeriodic,
                             .reporting_interval = kInterval};
      const uint32_t step = (i + round_) % 10 == 0 ? 80 : (7 * i + 3 * static_cast<uint32_t>(round_)) % 20;
      report.state.gas = control::Gas{.value = 400 + step, .healthy_free = 400 + step};
      report.state.computing_time.value = 12;
      report.state.health = {4, 1, 0, 0};
      report.state.price = 3;
      v1::Report message;
      control::to_wire(report, message);
      messages.push_back(message.SerializeAsString());
    }
    return messages;
  }

 private:
  uint32_t count_;
  uint64_t round_ = 0;
};

void report_protobuf(benchmark::State& state) {
  const std::vector<std::string> messages = Reporters(static_cast<uint32_t>(state.range(0))).round();
  for (auto _ : state) {
    const Stopwatch watch;
    for (const std::string& bytes : messages) {
      v1::Report message;
      if (!message.ParseFromString(bytes)) fail("a report cannot be read");
      benchmark::DoNotOptimize(message);
    }
    state.SetIterationTime(watch.seconds());
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

void report_whole(benchmark::State& state) {
  Reporters reporters(static_cast<uint32_t>(state.range(0)));
  c_sma::CSmaConfig config{.identity = "c-sma"};
  for (uint32_t i = 0; i < state.range(0); ++i) config.accept.push_back(reporters.sci(i));
  config.cache.quota_per_identity = Share{1.0};
  const size_t before = mallinfo2().uordblks;
  c_sma::CSma core(config, {}, reporters.now());
  const auto peer = std::make_shared<c_sma::Peer>(c_sma::Peer{.identity = "here", .co_located = true});
  size_t commits = 0, accepted = 0;
  const auto take = [&](const c_sma::Event& event) {
    for (const c_sma::Action& action : core.handle(event, reporters.now())) {
      commits += std::holds_alternative<c_sma::Commit>(action);
      const auto* judged = std::get_if<c_sma::Judged>(&action);
      accepted += judged != nullptr && judged->verdict == c_sma::Verdict::kAccepted;
    }
  };
  const auto report = [&](const std::vector<std::string>& messages) {
    for (const std::string& bytes : messages) {
      v1::Report message;
      if (!message.ParseFromString(bytes)) fail("a report cannot be read");
      auto read = control::report_of(message);
      if (!read) fail(read.error().message);
      take(c_sma::ReportReceived{std::move(*read), peer});
    }
    take(c_sma::Tick{});
  };
  report(reporters.round());
  state.counters["bytes/SCI"] =
      static_cast<double>(mallinfo2().uordblks - before) / static_cast<double>(state.range(0));
  commits = accepted = 0;
  for (auto _ : state) {
    const std::vector<std::string> messages = reporters.round();
    const Stopwatch watch;
    report(messages);
    state.SetIterationTime(watch.seconds());
  }
  const auto reports = static_cast<size_t>(state.iterations() * state.range(0));
  if (accepted != reports) fail("reports were not accepted");
  state.SetItemsProcessed(static_cast<int64_t>(reports));
  state.counters["commits"] = static_cast<double>(commits) / static_cast<double>(reports);
}

class Keys {
 public:
  Keys() {
    const test::TempFolder folder;
    std::ofstream(folder.path() + "/key") << margay::test::kRfc8032Key;
    auto mine = security::Signer::load(folder.path() + "/key");
    if (!mine) fail(mine.error().message);
    std::ofstream(folder.path() + "/public") << mine->public_key_pem();
    auto theirs = security::Verifier::load(folder.path() + "/public");
    if (!theirs) fail(theirs.error().message);
    signer = {"k1", northbound::Algorithm::kEd25519, [k = *mine](std::string_view b) { return k.sign(b); }};
    key = {northbound::Algorithm::kEd25519,
           [k = *theirs](std::string_view b, std::string_view s) { return k.verify(b, s); }};
  }
  northbound::Signer signer;
  northbound::Key key;
};

// A C-SMA and a C-PS that has nothing, over a wire that takes no time: messages are sealed, written, read and opened.
class FullSync {
 public:
  explicit FullSync(uint32_t rows) : rows_(rows) {
    for (uint32_t i = 0; i < rows; ++i) {
      northbound::Row row{{"ARS", "192.0.2." + std::to_string(i % 250) + ":" + std::to_string(1024 + i / 250)}};
      row.metrics.gas = 100 + i % 400;
      row.metrics.computing_time_ms = 12;
      row.health = {4, 1, 0, 0};
      row.sci_health = HealthState::kHealthy;
      row.source = northbound::SourceState::kHealthy;
      row.valid_for = 180 * kSecond;
      store_.commit({.cs_id = "ARS", .rows = {std::move(row)}}, false);
    }
    store_.end_first_round();
  }

  // Payloads of the C-SMA's messages go there, where given.
  void run(std::vector<std::string>* payloads) {
    northbound::SenderSession sender({.identity = "c-sma", .c_ps = "c-ps", .cs_ids = {"ARS"}}, 1, 0);
    cps::ReceiverSession receiver({.identity = "c-ps", .c_sma = "c-sma", .cs_ids = {"ARS"}}, "challenge of the C-PS",
                                  now_.monotonic);
    cps::ServiceTable table({.rows_max = rows_});
    northbound::Peer of_c_sma;
    sender.connected("challenge of the C-SMA", now_.monotonic);
    for (bool moved = true; moved;) {
      moved = false;
      for (;;) {
        auto next = receiver.next(table, of_c_sma, now_);
        if (!std::holds_alternative<northbound::Message>(next)) break;
        const auto opened = carry(std::get<northbound::Message>(std::move(next)), nullptr);
        if (sender.received(store_, opened.message, opened.key_id, now_)) fail("the C-SMA found a fault");
        moved = true;
      }
      auto next = sender.next(store_, now_);
      if (!std::holds_alternative<northbound::Message>(next)) continue;
      const auto opened = carry(std::get<northbound::Message>(std::move(next)), payloads);
      if (receiver.received(table, of_c_sma, opened.message, opened.key_id, now_)) fail("the C-PS found a fault");
      moved = true;
    }
    if (table.sites().at("c-sma").rows != rows_) fail("rows are missing in the table");
  }

 private:
  northbound::Opened carry(northbound::Message message, std::vector<std::string>* payloads) {
    message.header.nonce = ++nonce_;
    v1::Signed envelope, read;
    northbound::seal(message, now_.monotonic, &keys_.signer, envelope);
    if (payloads != nullptr) payloads->push_back(envelope.payload());
    if (!read.ParseFromString(envelope.SerializeAsString())) fail("an envelope cannot be read");
    auto opened = northbound::open(read, {.find_key = [&](const std::string&) { return &keys_.key; }}, now_.monotonic);
    if (const auto* why = std::get_if<northbound::Unopened>(&opened)) fail(why->detail);
    return std::get<northbound::Opened>(std::move(opened));
  }

  uint32_t rows_;
  Keys keys_;
  Time now_{kSecond, kUnixMs};
  uint64_t nonce_ = 0;
  northbound::RowStore store_{1};
};

void full_sync(benchmark::State& state) {
  FullSync sync(static_cast<uint32_t>(state.range(0)));
  for (auto _ : state) {
    const Stopwatch watch;
    sync.run(nullptr);
    state.SetIterationTime(watch.seconds());
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

// The same messages of the C-SMA, written by Protobuf and read again.
void full_sync_protobuf(benchmark::State& state) {
  std::vector<std::string> payloads;
  FullSync(static_cast<uint32_t>(state.range(0))).run(&payloads);
  std::vector<v1::Advertisement> messages(payloads.size());
  for (size_t i = 0; i < payloads.size(); ++i) {
    if (!messages[i].ParseFromString(payloads[i])) fail("a payload cannot be read");
  }
  for (auto _ : state) {
    const Stopwatch watch;
    for (const v1::Advertisement& message : messages) {
      v1::Advertisement read;
      if (!read.ParseFromString(message.SerializeAsString())) fail("a payload cannot be read");
      benchmark::DoNotOptimize(read);
    }
    state.SetIterationTime(watch.seconds());
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

#define MARGAY_SIZES Arg(1'000)->Arg(100'000)->UseManualTime()->Unit(benchmark::kMillisecond)
BENCHMARK(report_protobuf)->MARGAY_SIZES;
BENCHMARK(report_whole)->MARGAY_SIZES;
BENCHMARK(full_sync_protobuf)->MARGAY_SIZES;
BENCHMARK(full_sync)->MARGAY_SIZES;

}  // namespace
}  // namespace margay::bench

BENCHMARK_MAIN();
