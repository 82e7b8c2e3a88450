// SPDX-License-Identifier: Apache-2.0

// The flow table against std::unordered_map under random operations; every instruction set and the look-up of
// single keys against each other; and how full the index gets (SCI-83).

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "dataplane/core/flow_probe.h"
#include "dataplane/core/flow_table.h"
#include "tests/support/seed.h"
#include "tests/support/test_arena.h"

namespace margay::dp {
namespace {

using test::Random;
using test::seed_text;
using test::test_seed;

HashSecret secret_of(Random& random) {
  HashSecret secret;
  for (uint64_t& word : secret.words) word = random.next();
  return secret;
}

std::string text_of(const FlowKey& key) {
  return std::string(key.client.bytes.begin(), key.client.bytes.end()) + std::to_string(key.client_port) + '/' +
         std::to_string(static_cast<int>(key.protocol)) + '/' + std::to_string(static_cast<int>(key.direction)) + '/' +
         std::to_string(key.service);
}

// Keys out of a small space, so that many share parts; `hash_mask` leaves that many different hashes, so that tags
// and buckets collide far more than they ever would.
class Simulation {
 public:
  Simulation(uint64_t seed, size_t entries, uint64_t hash_mask)
      : random_(seed),
        secret_(secret_of(random_)),
        hash_mask_(hash_mask),
        arena_(entries * 256 + 4096),
        table_(arena_, entries) {
    for (InstanceIndex i = 0; i < 32; ++i) endpoints_.push_back(random_.below(8));
  }
  ~Simulation() { select_isa(best_isa()); }

  void step() {
    if (random_.one_in(2000)) grows_ = !grows_;
    if (random_.below(8) < (grows_ ? 5 : 3)) {
      bind();
    } else {
      unbind();
    }
    ASSERT_EQ(table_.used(), bound_.size());
    look_up_burst();
  }
  void check_all_keys() {
    for (const Binding& b : bound_) {
      for (const FlowKey& key : {b.key, reply_of(b)}) ASSERT_EQ(table_.find(key, hash(key), endpoints_), b.entry);
    }
  }

  size_t refused = 0, full = 0, conflicts = 0, hits = 0, misses = 0;

 private:
  struct Binding {
    FlowKey key;
    InstanceIndex instance;
    EntryIndex entry;
  };

  uint64_t hash(const FlowKey& key) const {
    return hash_mask_ & hash_key(secret_, hash_client(secret_, key.client, key.client_port, key.protocol),
                                 key.direction, key.service);
  }
  FlowKey random_key() {
    FlowKey key;
    key.client = IpAddress::v4(to_wire32(0x0a000000 + random_.below(4)));
    if (random_.one_in(2)) key.client.bytes[0] = 0x20;
    key.client_port = static_cast<uint16_t>(random_.below(256));
    key.protocol = random_.one_in(2) ? Protocol::kTcp : Protocol::kUdp;
    key.direction = random_.one_in(2) ? Direction::kFromClient : Direction::kFromInstance;
    key.service = random_.below(8);
    return key;
  }
  FlowKey reply_of(const Binding& b) const {
    FlowKey key = b.key;
    key.direction = Direction::kFromInstance;
    key.service = endpoints_[b.instance];
    return key;
  }

  void bind() {
    Binding b{random_key(), random_.below(endpoints_.size()), kNoIndex};
    b.key.direction = Direction::kFromClient;
    const FlowKey reply = reply_of(b);
    if (reference_.contains(text_of(b.key)) || reference_.contains(text_of(reply))) {
      ++conflicts;
      return;
    }
    b.entry = table_.allocate();
    ASSERT_EQ(b.entry == kNoIndex, bound_.size() == table_.capacity());
    if (b.entry == kNoIndex) {
      ++full;
      return;
    }
    FlowEntry& e = table_[b.entry];
    e.client = b.key.client;
    e.client_port = b.key.client_port;
    e.protocol = b.key.protocol;
    e.state = FlowState::kEstablished;
    e.frontend = b.key.service;
    e.instance = b.instance;
    if (!insert_both(b, reply)) {
      ++refused;
      table_.release(b.entry);
      return;
    }
    reference_[text_of(b.key)] = reference_[text_of(reply)] = b.entry;
    bound_.push_back(b);
  }
  bool insert_both(const Binding& b, const FlowKey& reply) {
    if (!table_.insert(b.entry, Direction::kFromClient, hash(b.key))) return false;
    if (table_.insert(b.entry, Direction::kFromInstance, hash(reply))) return true;
    table_.erase(b.entry, Direction::kFromClient, hash(b.key));
    return false;
  }

  void unbind() {
    if (bound_.empty()) return;
    std::swap(bound_[random_.below(bound_.size())], bound_.back());
    const Binding b = bound_.back();
    bound_.pop_back();
    table_.erase(b.entry, Direction::kFromClient, hash(b.key));
    table_.erase(b.entry, Direction::kFromInstance, hash(reply_of(b)));
    table_.release(b.entry);
    reference_.erase(text_of(b.key));
    reference_.erase(text_of(reply_of(b)));
  }

  void look_up_burst() {
    const size_t n = random_.below(kBurstMax + 1);
    std::array<FlowKey, kBurstMax> keys;
    std::array<uint64_t, kBurstMax> hashes{};
    std::array<EntryIndex, kBurstMax> expected{};
    for (size_t i = 0; i < n; ++i) {
      keys[i] = random_key();
      if (!bound_.empty() && random_.one_in(2)) {
        const Binding& b = bound_[random_.below(bound_.size())];
        keys[i] = random_.one_in(2) ? b.key : reply_of(b);
      }
      hashes[i] = hash(keys[i]);
      const auto in = reference_.find(text_of(keys[i]));
      expected[i] = in == reference_.end() ? kNoIndex : in->second;
      ++(in == reference_.end() ? misses : hits);
      ASSERT_EQ(table_.find(keys[i], hashes[i], endpoints_), expected[i]);
    }
    for (const Isa isa : kIsas) {
      if (!has_isa(isa)) continue;
      select_isa(isa);
      std::array<EntryIndex, kBurstMax> found;
      found.fill(77);
      table_.find_bulk({keys.data(), n}, {hashes.data(), n}, endpoints_, {found.data(), n});
      ASSERT_TRUE(std::equal(found.begin(), found.begin() + n, expected.begin())) << name_of(isa);
      ASSERT_TRUE(std::all_of(found.begin() + n, found.end(), [](EntryIndex e) { return e == 77; }));
    }
  }

  Random random_;
  HashSecret secret_;
  uint64_t hash_mask_;
  TestArena arena_;
  FlowTable table_;
  std::vector<EndpointIndex> endpoints_;
  std::vector<Binding> bound_;
  std::unordered_map<std::string, EntryIndex> reference_;
  bool grows_ = true;
};

TEST(FlowTableModel, BehavesAsAMapUnderRandomOperations) {
  const uint64_t seed = test_seed();
  SCOPED_TRACE(seed_text(seed));
  constexpr uint64_t kAll = ~uint64_t{0};
  constexpr uint64_t kEightTags = 0x0000'0007'ffff'ffff;
  constexpr uint64_t kFewBuckets = 0xffff'ffff'0000'0007;
  constexpr uint64_t kBoth = 0x0000'0007'0000'000f;
  size_t refused = 0, full = 0;
  uint64_t round = 0;
  for (const size_t entries : {1u, 13u, 200u, 870u}) {
    for (const uint64_t mask : {kAll, kEightTags, kFewBuckets, kBoth}) {
      SCOPED_TRACE(testing::Message() << entries << " entries, mask " << std::hex << mask);
      Simulation simulation(seed + round++, entries, mask);
      for (int i = 0; i < 6000; ++i) {
        simulation.step();
        if (testing::Test::HasFatalFailure()) return;
        if (i % 500 == 0) simulation.check_all_keys();
      }
      EXPECT_GT(simulation.hits, 1000u);
      EXPECT_GT(simulation.misses, 1000u);
      refused += simulation.refused;
      full += simulation.full;
    }
  }
  EXPECT_GT(refused, 0u);  // the path on which an insert changes nothing was taken; how often is up to the seed
  EXPECT_GT(full, 0u);
}

struct alignas(kCacheLine) ProbedLine {
  std::array<uint16_t, kCacheLine / 2> words;
};

// The plain loop that every kernel must agree with. Returns how many tags are equal.
size_t check_matches(const std::vector<ProbedLine>& buckets, const TagProbe& probe) {
  size_t matches = 0;
  for (uint32_t i = 0; i < probe.count; ++i) {
    for (size_t slot = 0; slot < kBucketSlots; ++slot) {
      const bool equal = buckets[probe.buckets[i]].words[slot] == probe.tags[i];
      EXPECT_EQ((probe.matches[i] >> slot & 1) != 0, equal) << "key " << i << ", slot " << slot;
      matches += equal;
    }
  }
  return matches;
}

TEST(FlowProbeModel, EveryInstructionSetGivesThePlainAnswer) {
  const uint64_t seed = test_seed();
  SCOPED_TRACE(seed_text(seed));
  Random random(seed);
  // Tags that differ in one bit of either byte, and values at the ends of the signed range.
  constexpr std::array<uint16_t, 8> kTags{0, 1, 0x100, 0x101, 0x7fff, 0x8000, 0x8001, 0xffff};
  std::vector<ProbedLine> buckets(64);
  size_t matches = 0;
  for (int round = 0; round < 20'000 && !HasFailure(); ++round) {
    for (uint16_t& word : buckets[random.below(64)].words) word = kTags[random.below(kTags.size())];
    TagProbe probe;
    probe.count = random.below(kBurstMax + 1);
    for (uint32_t i = 0; i < probe.count; ++i) {
      probe.buckets[i] = random.below(64);
      probe.tags[i] = kTags[random.below(kTags.size())];
    }
    for (const Isa isa : kIsas) {
      if (!has_isa(isa)) continue;
      SCOPED_TRACE(name_of(isa));
      select_isa(isa);
      match_tags(buckets.data(), probe);
      matches += check_matches(buckets, probe);
    }
  }
  select_isa(best_isa());
  EXPECT_GT(matches, 10'000u);
}

// A table whose two keys an entry fill its index to 85 %, the most that buckets_for() allows.
constexpr size_t kFullEntries = 222'822;
constexpr size_t kFullBuckets = 65'536;

enum class Clients { kRandom, kOnePortAfterTheOther, kOneAddressAfterTheOther };

FlowKey key_number(uint32_t i, Clients clients, Random& random) {
  FlowKey key;
  key.service = 3;
  switch (clients) {
    case Clients::kRandom:
      key.client = IpAddress::v4(static_cast<uint32_t>(random.next()));
      key.client_port = static_cast<uint16_t>(random.next());
      break;
    case Clients::kOnePortAfterTheOther:
      key.client = IpAddress::v4(to_wire32(0x0a000000 + i / 60'000));
      key.client_port = to_wire16(static_cast<uint16_t>(1024 + i % 60'000));
      break;
    case Clients::kOneAddressAfterTheOther:
      key.client = IpAddress::v4(to_wire32(0x0a000000 + i));
      key.client_port = to_wire16(40'000);
      break;
  }
  return key;
}

class FlowTableLoad : public testing::Test {
 protected:
  // Hashes of the two keys of `n` flows that worker `owner` of `workers` has.
  std::vector<uint64_t> hashes_of(size_t n, Clients clients, size_t workers, WorkerIndex owner) {
    std::vector<uint64_t> hashes;
    for (uint32_t i = 0; hashes.size() < 2 * n; ++i) {
      const FlowKey key = key_number(i, clients, random_);
      const uint64_t client = hash_client(secret_, key.client, key.client_port, key.protocol);
      if (owner_of(client, workers) != owner) continue;
      hashes.push_back(hash_key(secret_, client, Direction::kFromClient, key.service));
      hashes.push_back(hash_key(secret_, client, Direction::kFromInstance, i % 10));
    }
    return hashes;
  }
  // How many of the hashes find no room. The table does not look at entries here: all keys are of entry i / 2.
  static size_t insert_all(FlowTable& table, const std::vector<uint64_t>& hashes) {
    size_t failures = 0;
    for (size_t i = 0; i < hashes.size(); ++i) {
      failures += !table.insert(static_cast<EntryIndex>(i / 2), static_cast<Direction>(i % 2), hashes[i]);
    }
    return failures;
  }

  const uint64_t seed_ = test_seed();
  const testing::ScopedTrace trace_{__FILE__, __LINE__, seed_text(seed_)};
  Random random_{seed_};
  HashSecret secret_ = secret_of(random_);
};

// 5.8 million inserts: at the promised rate of less than one in a million, three or more failures are odd.
TEST_F(FlowTableLoad, InsertsFindRoomAt85Percent) {
  ASSERT_EQ(FlowTable::buckets_for(kFullEntries), kFullBuckets);
  size_t failures = 0;
  for (const Clients clients : {Clients::kRandom, Clients::kOnePortAfterTheOther, Clients::kOneAddressAfterTheOther}) {
    for (const size_t workers : {1u, 2u, 3u, 8u}) {
      TestArena arena(24 << 20);
      FlowTable table(arena, kFullEntries);
      failures += insert_all(table, hashes_of(kFullEntries, clients, workers, static_cast<WorkerIndex>(workers - 1)));
    }
  }
  EXPECT_LE(failures, 2u);
}

TEST_F(FlowTableLoad, InsertsFindRoomInLongChurnAt85Percent) {
  TestArena arena(24 << 20);
  FlowTable table(arena, kFullEntries);
  std::vector<uint64_t> hashes = hashes_of(kFullEntries, Clients::kRandom, 1, 0);
  size_t failures = insert_all(table, hashes);
  for (int i = 0; i < 2'000'000; ++i) {
    const uint32_t k = random_.below(hashes.size());
    table.erase(k / 2, static_cast<Direction>(k % 2), hashes[k]);
    hashes[k] = random_.next();
    failures += !table.insert(k / 2, static_cast<Direction>(k % 2), hashes[k]);
  }
  EXPECT_LE(failures, 2u);
}

TEST_F(FlowTableLoad, WorksTo95PercentAndLosesNoKey) {
  TestArena arena(24 << 20);
  FlowTable table(arena, kFullEntries);
  std::vector<FlowKey> keys;
  std::vector<uint64_t> hashes;
  for (size_t i = 0; i < kFullEntries; ++i) {
    FlowKey key = key_number(0, Clients::kRandom, random_);
    key.client.bytes[0] = 0x20;
    std::memcpy(&key.client.bytes[1], &i, 4);  // all different
    FlowEntry& e = table[static_cast<EntryIndex>(i)];
    e.client = key.client;
    e.client_port = key.client_port;
    e.protocol = key.protocol;
    e.frontend = key.service;
    keys.push_back(key);
    hashes.push_back(
        hash_key(secret_, hash_client(secret_, key.client, key.client_port, key.protocol), key.direction, key.service));
  }
  size_t inserted = 0, failures = 0;
  for (size_t i = 0; i < kFullEntries; ++i, ++inserted) {
    ASSERT_TRUE(table.insert(static_cast<EntryIndex>(i), Direction::kFromClient, hashes[i]));
  }
  while (inserted < kFullBuckets * kBucketSlots * 95 / 100) {  // more than two an entry: only their room matters
    ++(table.insert(0, Direction::kFromInstance, random_.next()) ? inserted : failures);
  }
  EXPECT_LE(failures, inserted / 10'000);
  for (size_t i = 0; i < kFullEntries; ++i) ASSERT_EQ(table.find(keys[i], hashes[i], {}), i);
}

// Chi-square over the buckets, as a normal deviate.
double unevenness(const std::vector<uint64_t>& hashes) {
  constexpr size_t kBuckets = 4096;
  std::vector<size_t> in(kBuckets);
  for (const uint64_t h : hashes) ++in[h % kBuckets];
  const double expected = static_cast<double>(hashes.size()) / kBuckets;
  double chi_square = 0;
  for (const size_t n : in) chi_square += std::pow(static_cast<double>(n) - expected, 2) / expected;
  return (chi_square - (kBuckets - 1)) / std::sqrt(2.0 * (kBuckets - 1));
}

// Each worker sees only the clients that hash to it; its buckets must be used evenly all the same.
TEST_F(FlowTableLoad, BucketsOfEveryWorkerAreUsedEvenly) {
  for (const Clients clients : {Clients::kRandom, Clients::kOnePortAfterTheOther, Clients::kOneAddressAfterTheOther}) {
    for (const auto& [workers, w] : std::vector<std::pair<size_t, WorkerIndex>>{
             {1, 0}, {2, 0}, {2, 1}, {3, 0}, {3, 1}, {3, 2}, {8, 0}, {8, 3}, {8, 4}, {8, 7}}) {
      EXPECT_LT(unevenness(hashes_of(40'000, clients, workers, w)), 8)
          << "clients " << static_cast<int>(clients) << ", worker " << int{w} << " of " << workers;
    }
  }
}

}  // namespace
}  // namespace margay::dp
