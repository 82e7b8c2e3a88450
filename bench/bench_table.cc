// SPDX-License-Identifier: Apache-2.0

// A snapshot from the control plane's commit to the last worker, over the socket and the shared memory of a running
// data plane, and its parts by themselves. Workers are readers that do nothing else. SCIs have up to 100 instances.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "dataplane/core/site_change.h"
#include "tests/support/table_rig.h"

namespace margay::bench {
namespace {

using shared_table::SciRecord;
using shared_table::Snapshot;
using test::TableRig;

constexpr uint32_t kReaders = 2, kInstancesOfSci = 100;

// All of it, in generation 1.
Snapshot site_of(uint32_t instances) {
  Snapshot s;
  s.generation = 1;
  for (uint32_t i = 0; i < instances; ++i) {
    if (i % kInstancesOfSci == 0) {
      const uint32_t sci = i / kInstancesOfSci;
      s.scis.push_back(TableRig::sci(sci, "198.51.100." + std::to_string(sci) + ":80"));
    }
    s.scis.back().instances.push_back(TableRig::instance(i));
  }
  return s;
}

enum class Kind { kHealth, kLayout, kComplete };

// Snapshots that each differ from the one before in one instance.
class Changes {
 public:
  Changes(const Snapshot& site, Kind kind) : site_(site), kind_(kind) {}

  Snapshot next() {
    SciRecord& sci = site_.scis[site_.scis.size() / 2];
    const bool odd = ++site_.generation % 2 != 0;
    if (kind_ == Kind::kLayout) {
      sci.policy.endpoints[0].port = odd ? 80 : 81;
    } else {
      sci.instances[0].health = odd ? HealthState::kHealthy : HealthState::kDegraded;
      sci.instances[0].limit = odd ? 100 : 50;
    }
    if (kind_ == Kind::kComplete) return site_;
    Snapshot change;
    change.generation = site_.generation;
    change.base = site_.generation - 1;
    change.scis = {sci};
    return change;
  }

 private:
  Snapshot site_;
  Kind kind_;
};

// A data plane that runs the site.
class Running {
 public:
  explicit Running(uint32_t instances, uint32_t readers) : rig(readers, instances, instances / kInstancesOfSci + 1) {
    rig.start_readers([](uint32_t, const dp::SiteTable&) { std::this_thread::yield(); });
    writer = rig.connect();
    commit(site_of(instances));
    await_ack(1);
  }

  void commit(const Snapshot& s) {
    while (!writer->commit(s)) hear();
  }
  void hear() {
    const auto news = writer->news();
    MARGAY_CHECK(!news.gone && news.refused.empty());
    if (news.acked) acked = *news.acked;
  }
  void await_workers(uint64_t generation) const {
    const auto holds = [&](const auto& h) { return h.load() == generation; };
    for (size_t r = 0; r < rig.holds.size(); ++r) {
      while (!holds(rig.holds[r])) std::this_thread::yield();
    }
  }
  void await_ack(uint64_t generation) {
    while (acked < generation) {
      hear();
      std::this_thread::yield();
    }
  }

  TableRig rig;
  std::unique_ptr<shared_table::Writer> writer;
  uint64_t acked = 0;
};

void to_last_worker(benchmark::State& state, uint32_t instances, Kind kind) {
  Running running(instances, kReaders);
  Changes changes(site_of(instances), kind);
  for (auto _ : state) {
    state.PauseTiming();
    const Snapshot s = changes.next();
    state.ResumeTiming();
    running.commit(s);
    running.await_workers(s.generation);
    state.PauseTiming();
    running.await_ack(s.generation);
    state.ResumeTiming();
  }
}

void to_ack(benchmark::State& state, uint32_t instances, Kind kind) {
  Running running(instances, kReaders);
  Changes changes(site_of(instances), kind);
  for (auto _ : state) {
    const Snapshot s = changes.next();
    running.commit(s);
    running.await_ack(s.generation);
  }
}

// From the decoded snapshot to the published table.
void apply(benchmark::State& state, uint32_t instances, Kind kind) {
  TableRig rig(0, instances, instances / kInstancesOfSci + 1);
  MARGAY_CHECK(rig.plane.apply(site_of(instances)));
  Changes changes(site_of(instances), kind);
  for (auto _ : state) {
    state.PauseTiming();
    const Snapshot s = changes.next();
    state.ResumeTiming();
    MARGAY_CHECK(rig.plane.apply(s));
  }
}

void encode(benchmark::State& state, uint32_t instances, Kind kind) {
  Changes changes(site_of(instances), kind);
  const Snapshot s = changes.next();
  size_t bytes = 0;
  for (auto _ : state) {
    const auto encoded = shared_table::encode(s);
    bytes = encoded.size();
    benchmark::DoNotOptimize(shared_table::checksum(encoded));
  }
  state.counters["bytes"] = static_cast<double>(bytes);
}

void decode(benchmark::State& state, uint32_t instances, Kind kind) {
  Changes changes(site_of(instances), kind);
  const auto encoded = shared_table::encode(changes.next());
  for (auto _ : state) MARGAY_CHECK(shared_table::decode(encoded));
}

void register_all() {
  using Bench = void (*)(benchmark::State&, uint32_t, Kind);
  const std::pair<const char*, Bench> benches[] = {
      {"encode", encode}, {"decode", decode}, {"apply", apply}, {"to_last_worker", to_last_worker}, {"to_ack", to_ack}};
  const std::pair<const char*, Kind> kinds[] = {
      {"health", Kind::kHealth}, {"layout", Kind::kLayout}, {"complete", Kind::kComplete}};
  for (const auto& [name, bench] : benches) {
    for (const auto& [kind_name, kind] : kinds) {
      for (const uint32_t instances : {1u, 100u, 1'000u, 10'000u}) {
        const std::string title = std::string(name) + "/" + kind_name + "/" + std::to_string(instances);
        benchmark::RegisterBenchmark(title.c_str(), bench, instances, kind)
            ->Unit(benchmark::kMicrosecond)
            ->UseRealTime();
      }
    }
  }
}

}  // namespace
}  // namespace margay::bench

int main(int argc, char** argv) {
  margay::bench::register_all();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
