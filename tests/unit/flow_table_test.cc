// SPDX-License-Identifier: Apache-2.0

#include "dataplane/core/flow_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "tests/support/seed.h"
#include "tests/support/test_arena.h"

namespace margay::dp {
namespace {

HashSecret secret_of(uint64_t seed) {
  test::Random random(seed);
  HashSecret secret;
  for (uint64_t& word : secret.words) word = random.next();
  return secret;
}

FlowKey client_key(uint32_t client, uint16_t port, FrontendIndex frontend) {
  return {IpAddress::v4(to_wire32(client)), to_wire16(port), Protocol::kTcp, Direction::kFromClient, frontend};
}

// A table whose instance i stands behind endpoint i + 100.
class FlowTableTest : public testing::Test {
 protected:
  static constexpr size_t kEntries = 64;

  uint64_t hash(const FlowKey& key) const {
    return hash_key(secret_, hash_client(secret_, key.client, key.client_port, key.protocol), key.direction,
                    key.service);
  }
  EntryIndex find(const FlowKey& key) const { return table_.find(key, hash(key), endpoints_); }
  EntryIndex bind(const FlowKey& key, InstanceIndex instance) {
    const EntryIndex e = table_.allocate();
    table_[e].client = key.client;
    table_[e].client_port = key.client_port;
    table_[e].protocol = key.protocol;
    table_[e].frontend = key.service;
    table_[e].instance = instance;
    EXPECT_TRUE(table_.insert(e, Direction::kFromClient, hash(key)));
    EXPECT_TRUE(table_.insert(e, Direction::kFromInstance, hash(reply_of(key, instance))));
    return e;
  }
  FlowKey reply_of(FlowKey key, InstanceIndex instance) const {
    key.direction = Direction::kFromInstance;
    key.service = endpoints_[instance];
    return key;
  }

  const HashSecret secret_ = secret_of(1);
  const std::vector<EndpointIndex> endpoints_{100, 101, 102};
  TestArena arena_{1 << 16};
  FlowTable table_{arena_, kEntries};
};

TEST_F(FlowTableTest, FindsBothDirectionsOfAFlow) {  // SCI-83
  const FlowKey key = client_key(0xc0000201, 40000, 7);
  const EntryIndex e = bind(key, 1);
  EXPECT_EQ(find(key), e);
  EXPECT_EQ(find(reply_of(key, 1)), e);
}

// Each row differs from the bound flow in one part of the key, and comes with the bound flow's own hash, so that
// only the comparison of the whole key keeps it apart (a hit is never another flow's, SCI-83).
TEST_F(FlowTableTest, EveryPartOfTheKeyIsCompared) {
  const FlowKey bound = client_key(0xc0000201, 40000, 7);
  const EntryIndex e = bind(bound, 1);
  const FlowKey reply = reply_of(bound, 1);
  std::vector<std::pair<FlowKey, FlowKey>> rows;
  for (const FlowKey& key : {bound, reply}) {
    rows.insert(rows.end(), 6, {key, key});
    FlowKey* changed = &rows[rows.size() - 6].second;
    std::pair<FlowKey, FlowKey>* row = &rows[rows.size() - 6];
    changed->client.bytes[15] ^= 1;
    row[1].second.client.bytes[0] ^= 0x20;
    row[2].second.client_port ^= 1;
    row[3].second.protocol = Protocol::kUdp;
    row[4].second.service ^= 1;
    row[5].second.direction =
        key.direction == Direction::kFromClient ? Direction::kFromInstance : Direction::kFromClient;
  }
  ASSERT_EQ(rows.size(), 12u);
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto& [same, other] = rows[i];
    EntryIndex found = 0;
    const uint64_t h = hash(same);
    EXPECT_EQ(table_.find(same, h, endpoints_), e) << i;
    EXPECT_EQ(table_.find(other, h, endpoints_), kNoIndex) << i;
    table_.find_bulk({&other, 1}, {&h, 1}, endpoints_, {&found, 1});
    EXPECT_EQ(found, kNoIndex) << i;
  }
}

// One-way modes put in one key. What is wanted from the instance must not match it, even with its hash.
TEST_F(FlowTableTest, KeyOfOneDirectionIsNotTheOther) {
  const FlowKey key = client_key(0xc0000201, 40000, 7);
  const EntryIndex e = bind(key, 1);
  const uint64_t h = hash(key);
  table_.erase(e, Direction::kFromInstance, hash(reply_of(key, 1)));
  EXPECT_EQ(table_.find(key, h, endpoints_), e);
  EXPECT_EQ(table_.find(reply_of(key, 1), h, endpoints_), kNoIndex);
}

// The numbers of frontends and endpoints are two number spaces.
TEST_F(FlowTableTest, EqualNumbersOfFrontendAndEndpointAreTwoKeys) {
  const FlowKey key = client_key(0xc0000201, 40000, 101);
  const EntryIndex a = bind(key, 0);
  const EntryIndex b = bind(client_key(0xc0000201, 40000, 8), 1);
  EXPECT_EQ(find(key), a);
  EXPECT_EQ(find(reply_of(key, 1)), b);
}

TEST_F(FlowTableTest, ErasingOneDirectionLeavesTheOther) {
  const FlowKey key = client_key(0xc0000201, 40000, 7);
  const EntryIndex e = bind(key, 2);
  table_.erase(e, Direction::kFromClient, hash(key));
  EXPECT_EQ(find(key), kNoIndex);
  EXPECT_EQ(find(reply_of(key, 2)), e);
  table_.erase(e, Direction::kFromInstance, hash(reply_of(key, 2)));
  EXPECT_EQ(find(reply_of(key, 2)), kNoIndex);
}

TEST_F(FlowTableTest, AllocatesEachEntryOnceAndAgainAfterRelease) {
  EXPECT_EQ(table_.capacity(), kEntries);
  EXPECT_EQ(table_.used(), 0u);
  std::vector<bool> seen(kEntries);
  for (size_t i = 0; i < kEntries; ++i) {
    const EntryIndex e = table_.allocate();
    ASSERT_LT(e, kEntries);
    EXPECT_FALSE(seen[e]);
    seen[e] = true;
    table_[e].state = FlowState::kEstablished;
    table_[e].adoption = 1;
  }
  EXPECT_EQ(table_.used(), kEntries);
  EXPECT_EQ(table_.allocate(), kNoIndex);
  table_.release(17);
  EXPECT_EQ(table_.used(), kEntries - 1);
  EXPECT_EQ(table_[17].state, FlowState::kFree);
  EXPECT_EQ(table_[17].adoption, 0);
  EXPECT_EQ(table_.allocate(), 17u);
}

// All keys share both of their buckets: sixteen fit, the next is refused and disturbs nothing.
TEST_F(FlowTableTest, RefusedInsertChangesNothing) {
  for (uint64_t tag = 0; tag < 200; ++tag) {
    const uint64_t one_hash = tag << 32 | 5;
    std::vector<std::pair<FlowKey, EntryIndex>> in;
    for (uint16_t port = 1; port <= 17; ++port) {
      const FlowKey key = client_key(1, port, 7);
      const EntryIndex e = table_.allocate();
      table_[e].client = key.client;
      table_[e].client_port = key.client_port;
      table_[e].protocol = key.protocol;
      table_[e].frontend = key.service;
      ASSERT_EQ(table_.insert(e, Direction::kFromClient, one_hash), port <= 16) << tag;
      in.emplace_back(key, e);
    }
    for (const auto& [key, e] : in) {
      EXPECT_EQ(table_.find(key, one_hash, endpoints_), key.client_port == to_wire16(17) ? kNoIndex : e);
    }
    table_.erase(in[3].second, Direction::kFromClient, one_hash);
    ASSERT_TRUE(table_.insert(in[16].second, Direction::kFromClient, one_hash));
    for (size_t i = 0; i < in.size(); ++i) {
      if (i != 3) table_.erase(in[i].second, Direction::kFromClient, one_hash);
      table_.release(in[i].second);
    }
  }
}

TEST(FlowTableMemory, BucketsHoldTwoKeysAnEntryAtMost85PercentFull) {
  for (const size_t entries : {1u, 6u, 7u, 1000u, 222822u, 222823u, 1000000u}) {
    const size_t buckets = FlowTable::buckets_for(entries);
    EXPECT_EQ(buckets & (buckets - 1), 0u) << entries;
    EXPECT_LE(static_cast<double>(entries * 2), 0.85 * 8 * static_cast<double>(buckets)) << entries;
    if (buckets == 2) continue;
    EXPECT_GT(static_cast<double>(entries * 2), 0.85 * 4 * static_cast<double>(buckets)) << entries;
  }
}

TEST(FlowTableMemory, CountingArenaTellsTheNeedAndEntriesMayLieElsewhere) {
  Arena counting;
  FlowTable counted(counting, 1000);
  TestArena arena(counting.used());
  FlowTable table(arena, 1000);
  EXPECT_EQ(arena.used(), counting.used());

  std::vector<FlowEntry> entries(1000);
  TestArena index_only(counting.used());
  FlowTable outside(index_only, entries);
  EXPECT_EQ(index_only.used(), counting.used() - 1000 * sizeof(FlowEntry));
  EXPECT_EQ(&outside[5], &entries[5]);
  EXPECT_EQ(outside.capacity(), 1000u);
}

TEST(FlowHash, DependsOnEveryBitOfTheKeyAndOnTheSecret) {
  const HashSecret secret = secret_of(2);
  const IpAddress client = IpAddress::v4(to_wire32(0xc0000201));
  const uint64_t base = hash_client(secret, client, 40000, Protocol::kTcp);
  EXPECT_EQ(base, hash_client(secret, client, 40000, Protocol::kTcp));
  EXPECT_NE(base, hash_client(secret_of(3), client, 40000, Protocol::kTcp));
  EXPECT_NE(base, hash_client(secret, client, 40000, Protocol::kUdp));
  for (unsigned bit = 0; bit < 128; ++bit) {
    IpAddress other = client;
    other.bytes[bit / 8] = static_cast<uint8_t>(other.bytes[bit / 8] ^ 1u << bit % 8);
    EXPECT_NE(base, hash_client(secret, other, 40000, Protocol::kTcp)) << bit;
  }
  for (unsigned bit = 0; bit < 16; ++bit) {
    EXPECT_NE(base, hash_client(secret, client, static_cast<uint16_t>(40000 ^ 1u << bit), Protocol::kTcp)) << bit;
  }
  EXPECT_NE(hash_key(secret, base, Direction::kFromClient, 5), hash_key(secret, base, Direction::kFromInstance, 5));
  EXPECT_NE(hash_key(secret, base, Direction::kFromClient, 5), hash_key(secret, base, Direction::kFromClient, 6));
}

// The definition with plain arithmetic: secret words 0..5 give the upper half, 6..11 the lower.
TEST(FlowHash, IsTheMultilinearFunctionOverTheKeysWords) {
  const HashSecret secret = secret_of(4);
  IpAddress client;
  for (uint8_t i = 0; i < 16; ++i) client.bytes[i] = static_cast<uint8_t>(i * 37 + 1);
  uint64_t sums[2] = {secret.words[0], secret.words[6]};
  for (size_t half = 0; half < 2; ++half) {
    for (size_t i = 0; i < 4; ++i) {
      uint32_t word;
      std::memcpy(&word, &client.bytes[i * 4], 4);
      sums[half] += secret.words[half * 6 + 1 + i] * word;
    }
    sums[half] += secret.words[half * 6 + 5] * (17u * 65536 + 0xabcd);
  }
  EXPECT_EQ(hash_client(secret, client, 0xabcd, Protocol::kUdp), (sums[0] >> 32) << 32 | sums[1] >> 32);
}

// Two keys collide in 24 bits of either half with probability 2^-24 over the secret; 4096 secrets with any two
// keys would show a function that is worse by a factor of a few hundred. Keys that differ little are the hard ones.
TEST(FlowHash, NearKeysCollideNoMoreThanChance) {
  const IpAddress a = IpAddress::v4(to_wire32(0x0a000001)), b = IpAddress::v4(to_wire32(0x0a000002));
  int collisions = 0;
  for (uint64_t seed = 0; seed < 4096; ++seed) {
    const HashSecret secret = secret_of(seed);
    const uint64_t difference = hash_key(secret, hash_client(secret, a, 1, Protocol::kTcp), Direction::kFromClient, 0) ^
                                hash_key(secret, hash_client(secret, b, 1, Protocol::kTcp), Direction::kFromClient, 0);
    collisions += (difference & 0xfff) == 0;
    collisions += (difference >> 32 & 0xfff) == 0;
    collisions += difference >> 52 == 0;
  }
  EXPECT_LT(collisions, 20);  // 3 expected; Poisson gives 20 or more once in 10^10
}

// Clients one after the other make an arithmetic progression in a multilinear sum, which a few secrets in a hundred
// lay into a fraction of the buckets. Random keys put 32 of 28672 into one of 4096 buckets once in 10^5 runs of this.
TEST(FlowHash, SequentialClientsFillNoBucketUnderAnySecret) {
  size_t fullest = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    const HashSecret secret = secret_of(seed);
    std::vector<size_t> in(4096);
    for (uint16_t port = 1024; port < 1024 + 7 * 4096; ++port) {
      const uint64_t client = hash_client(secret, IpAddress::v4(1), port, Protocol::kTcp);
      ++in[hash_key(secret, client, Direction::kFromClient, 0) % in.size()];
    }
    fullest = std::max(fullest, *std::max_element(in.begin(), in.end()));
  }
  EXPECT_LT(fullest, 32u);
}

TEST(FlowHash, OwnersShareClientsEvenly) {
  const HashSecret secret = secret_of(5);
  for (const size_t workers : {1u, 2u, 3u, 8u, 32u}) {
    std::vector<int> clients(workers);
    constexpr int kClients = 64000;
    for (uint32_t i = 0; i < kClients; ++i) {
      const IpAddress client = IpAddress::v4(to_wire32(0x0a000000 + i % 250));
      ++clients[owner_of(hash_client(secret, client, to_wire16(static_cast<uint16_t>(1024 + i / 250)), Protocol::kTcp),
                         workers)];
    }
    for (const int n : clients) {
      EXPECT_NEAR(n, kClients / static_cast<double>(workers), 0.15 * kClients / static_cast<double>(workers))
          << workers;
    }
  }
}

}  // namespace
}  // namespace margay::dp
