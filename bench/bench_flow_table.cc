// SPDX-License-Identifier: Apache-2.0

// The flow table by itself, beside rte_hash with lock-free readers in the same run, on random keys and in the same
// kind of memory. Times are nanoseconds of one core a key.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "bench/peer_rte_hash.h"
#include "bench/traffic.h"
#include "common/check.h"
#include "dataplane/core/flow_probe.h"
#include "tests/support/seed.h"

namespace margay::bench {
namespace {

using Burst = std::span<const dp::FlowKey>;
using Found = std::span<uint32_t>;

constexpr size_t kEalMegabytes = 1024;
constexpr uint64_t kSeed = 20'001;

dp::FlowKey random_key(test::Random& random, bool present) {
  dp::FlowKey key;
  key.client = IpAddress::v4(static_cast<uint32_t>(random.next()));
  key.client_port = static_cast<uint16_t>(random.next());
  key.service = present ? 0 : 1;  // never in the table
  return key;
}

// Both tables with the same random keys; made once for a size.
class Tables {
 public:
  static Tables& of(size_t flows) {
    static std::map<size_t, std::unique_ptr<Tables>> all;
    std::unique_ptr<Tables>& tables = all[flows];
    if (tables == nullptr) tables = std::make_unique<Tables>(flows);
    return *tables;
  }

  explicit Tables(size_t flows)
      : memory_(eal_memory(bytes_for(flows))), arena_(memory_), table(arena_, flows), peer(flows) {
    test::Random random(kSeed);
    for (size_t i = 0; i < flows; ++i) {
      keys.push_back(random_key(random, true));
      keys.back().client.bytes[8] = static_cast<uint8_t>(i >> 16);  // all different
      keys.back().client.bytes[9] = static_cast<uint8_t>(i >> 8);
      keys.back().client.bytes[7] = static_cast<uint8_t>(i);
      absent.push_back(random_key(random, false));
    }
    for (uint32_t i = 0; i < flows; ++i) {
      insert(i);
      MARGAY_CHECK(peer.insert(keys[i], i));
    }
    // Looked up in another order than put in.
    for (size_t i = flows; i > 1; --i) std::swap(keys[i - 1], keys[random.below(i)]);
  }
  ~Tables() { free_eal_memory(memory_); }
  Tables(const Tables&) = delete;
  Tables& operator=(const Tables&) = delete;

  void insert(uint32_t i) {
    const dp::FlowKey& key = keys[i];
    const dp::EntryIndex e = table.allocate();
    dp::FlowEntry& entry = table[e];
    entry.client = key.client;
    entry.client_port = key.client_port;
    entry.protocol = key.protocol;
    entry.frontend = key.service;
    MARGAY_CHECK(table.insert(e, key.direction, hash(key)));
  }
  void erase(uint32_t i) {
    const uint64_t h = hash(keys[i]);
    const dp::EntryIndex e = table.find(keys[i], h, {});
    table.erase(e, keys[i].direction, h);
    table.release(e);
  }
  uint64_t hash(const dp::FlowKey& key) const {
    return hash_key(secret_, hash_client(secret_, key.client, key.client_port, key.protocol), key.direction,
                    key.service);
  }
  void find_bulk(Burst burst, Found found) const {
    std::array<uint64_t, dp::kBurstMax> hashes;
    for (size_t i = 0; i < burst.size(); ++i) hashes[i] = hash(burst[i]);
    table.find_bulk(burst, hashes, {}, found);
  }

 private:
  static size_t bytes_for(size_t flows) {
    dp::Arena counting;
    dp::FlowTable counted(counting, flows);
    return counting.used();
  }

  dp::HashSecret secret_ = bench_secret();
  std::span<std::byte> memory_;
  dp::Arena arena_;

 public:
  dp::FlowTable table;
  PeerHash peer;
  std::vector<dp::FlowKey> keys, absent;
};

template <class Find>
void look_up(benchmark::State& state, const std::vector<dp::FlowKey>& keys, bool hit, Find find) {
  std::array<uint32_t, dp::kBurstMax> found;
  size_t next = 0, hits = 0, keys_done = 0;
  for (auto _ : state) {
    if (next + dp::kBurstMax > keys.size()) next = 0;
    find(Burst(&keys[next], dp::kBurstMax), Found(found));
    for (const uint32_t f : found) hits += f != dp::kNoIndex;
    next += dp::kBurstMax;
    keys_done += dp::kBurstMax;
  }
  MARGAY_CHECK(hits == (hit ? keys_done : 0));
  state.SetItemsProcessed(static_cast<int64_t>(keys_done));
  state.counters["ns/key"] = benchmark::Counter(static_cast<double>(keys_done) / 1e9,
                                                benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void register_look_up(const std::string& name, size_t flows, bool hit, dp::Isa isa) {
  benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) {
    Tables& t = Tables::of(flows);
    dp::select_isa(isa);
    look_up(state, hit ? t.keys : t.absent, hit, [&](Burst keys, Found found) { t.find_bulk(keys, found); });
    dp::select_isa(dp::best_isa());
  });
}

void register_peer_look_up(const std::string& name, size_t flows, bool hit) {
  benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) {
    Tables& t = Tables::of(flows);
    look_up(state, hit ? t.keys : t.absent, hit, [&](Burst keys, Found found) { t.peer.find_bulk(keys, found); });
  });
}

// Takes a key out and puts it in again, keys in random order: the table stays as full as it is.
template <class Change>
void register_change(const std::string& name, size_t flows, Change change) {
  benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) {
    Tables& t = Tables::of(flows);
    uint32_t next = 0;
    for (auto _ : state) {
      change(t, next);
      next = next + 1 == t.keys.size() ? 0 : next + 1;
    }
  });
}

void hash_only(benchmark::State& state) {
  Tables& t = Tables::of(10'000);
  size_t next = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(t.hash(t.keys[next]));
    next = next + 1 == t.keys.size() ? 0 : next + 1;
  }
}

void register_all(const std::vector<size_t>& sizes) {
  for (const size_t flows : sizes) {
    std::string at = "/";
    at += std::to_string(flows);
    for (const bool hit : {true, false}) {
      const std::string what = hit ? "hit/" : "miss/";
      for (const dp::Isa isa : dp::kIsas) {
        if (dp::has_isa(isa)) register_look_up(what + std::string(name_of(isa)) + at, flows, hit, isa);
      }
      register_peer_look_up(what + "rte_hash" + at, flows, hit);
    }
    register_change("erase+insert/margay" + at, flows, [](Tables& t, uint32_t i) {
      t.erase(i);
      t.insert(i);
    });
    register_change("erase+insert/rte_hash" + at, flows, [](Tables& t, uint32_t i) {
      t.peer.erase(t.keys[i]);
      MARGAY_CHECK(t.peer.insert(t.keys[i], i));
    });
  }
  benchmark::RegisterBenchmark("hash", hash_only);
}

}  // namespace
}  // namespace margay::bench

// `--small` before all else: only 10,000 keys.
int main(int argc, char** argv) {
  const bool small = argc > 1 && std::string(argv[1]) == "--small";
  margay::bench::start_eal(small ? 128 : margay::bench::kEalMegabytes);
  margay::bench::register_all(small ? std::vector<size_t>{10'000} : std::vector<size_t>{10'000, 1'000'000});
  if (small) {
    std::swap(argv[0], argv[1]);
    --argc;
    ++argv;
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
