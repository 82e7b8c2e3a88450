// SPDX-License-Identifier: Apache-2.0
// The snapshot's codec: what is written is read, and nothing else is believed.
#include "common/shared_table/snapshot.h"

#include <functional>

#include <gtest/gtest.h>

#include "tests/support/random_snapshot.h"
#include "tests/support/seed.h"

namespace margay::shared_table {
namespace {

using test::Random;
using test::random_snapshot;

Snapshot small() {
  SciRecord sci;
  sci.index = 3;
  sci.policy.csci_id = "192.0.2.10:80";
  sci.policy.cs_id = "ARS";
  sci.policy.endpoints = {{*IpAddress::parse("192.0.2.10"), 80, Protocol::kTcp}};
  InstanceRecord instance;
  instance.index = 7;
  instance.health = HealthState::kDegraded;
  instance.limit = 100;
  instance.config = {"si-1", *IpAddress::parse("10.1.0.11"), 8080, {}, 200, 1};
  sci.instances = {instance};
  Snapshot snapshot;
  snapshot.generation = 5;
  snapshot.scis = {sci};
  return snapshot;
}

std::string error_of(const Snapshot& snapshot) {
  const auto read = decode(encode(snapshot));
  return read ? "" : read.error().message;
}

TEST(Snapshot, IsReadAsItWasWritten) {
  const uint64_t seed = test::test_seed();
  SCOPED_TRACE(test::seed_text(seed));
  Random random(seed);
  for (int round = 0; round < 500; ++round) {
    const Snapshot snapshot = random_snapshot(random);
    const auto read = decode(encode(snapshot));
    ASSERT_TRUE(read) << read.error().message;
    ASSERT_EQ(*read, snapshot);
  }
}

TEST(Snapshot, CutAnywhereIsRefused) {
  const std::vector<std::byte> bytes = encode(small());
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(decode(std::span(bytes).first(size))) << size << " of " << bytes.size() << " bytes";
  }
  std::vector<std::byte> longer = bytes;
  longer.push_back({});
  EXPECT_EQ(decode(longer).error().message, "length: 1 bytes too many");
}

TEST(Snapshot, DamagedBytesAreRefusedOrReadAsSomethingWhole) {
  const uint64_t seed = test::test_seed();
  SCOPED_TRACE(test::seed_text(seed));
  Random random(seed);
  size_t refused = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::vector<std::byte> bytes = encode(random_snapshot(random));
    const auto before = checksum(bytes);
    bytes[random.below(bytes.size())] ^= static_cast<std::byte>(1 + random.below(255));
    EXPECT_NE(checksum(bytes), before);
    const auto read = decode(bytes);
    if (!read) {
      ++refused;
      EXPECT_NE(read.error().message.find(": "), std::string::npos) << read.error().message;
    } else {
      EXPECT_EQ(encode(*read), bytes);
    }
  }
  EXPECT_GT(refused, 0u);
}

struct Wrong {
  std::string error;
  std::function<void(Snapshot&)> change;
};

TEST(Snapshot, EachWrongValueIsNamed) {
  const std::vector<Wrong> rows = {
      {"generation: 0, expected 1 to 18446744073709551615", [](Snapshot& s) { s.generation = 0; }},
      {"base: 5, expected below the generation 5", [](Snapshot& s) { s.base = 5; }},
      {"removed: expected empty in a complete snapshot", [](Snapshot& s) { s.removed = {1}; }},
      {"removed: SCI 3 is named twice", [](Snapshot& s) { s.base = 4, s.removed = {3}; }},
      {"scis[0].index: 65536, expected 0 to 65535", [](Snapshot& s) { s.scis[0].index = 65536; }},
      {"scis[192.0.2.10:80]: index 3 stands twice", [](Snapshot& s) { s.scis.push_back(s.scis[0]); }},
      {"scis[192.0.2.10:80]: stands twice", [](Snapshot& s) { s.scis.push_back(s.scis[0]), s.scis[1].index = 4; }},
      {"scis[0].csci_id: 0 bytes, expected 1 to 255", [](Snapshot& s) { s.scis[0].policy.csci_id.clear(); }},
      {"scis[0].cs_id: 256 bytes, expected 1 to 255", [](Snapshot& s) { s.scis[0].policy.cs_id.assign(256, 'x'); }},
      {"scis[0].cs_id: holds a control character", [](Snapshot& s) { s.scis[0].policy.cs_id = "A\nRS"; }},
      {"scis[192.0.2.10:80]: has no endpoint", [](Snapshot& s) { s.scis[0].policy.endpoints.clear(); }},
      {"scis[0].endpoints: 65, expected at most 64",
       [](Snapshot& s) { s.scis[0].policy.endpoints.resize(65, s.scis[0].policy.endpoints[0]); }},
      {"scis[0].endpoints[0].port: 0, expected 1 to 65535",
       [](Snapshot& s) { s.scis[0].policy.endpoints[0].port = 0; }},
      {"scis[192.0.2.10:80].endpoints: protocol 1, expected TCP (6) or UDP (17)",
       [](Snapshot& s) { s.scis[0].policy.endpoints[0].protocol = Protocol::kIcmp; }},
      {"scis[0].mode: 4, expected 0 to 3", [](Snapshot& s) { s.scis[0].policy.mode = static_cast<Mode>(4); }},
      {"scis[0].gue.port: 0, expected 1 to 65535", [](Snapshot& s) { s.scis[0].policy.gue.port = 0; }},
      {"scis[0].gue.variant: 2, expected 0 to 1", [](Snapshot& s) { s.scis[0].policy.gue.variant = 2; }},
      {"scis[0].gue.checksum: 2, expected 0 to 1",
       [](Snapshot& s) { s.scis[0].policy.gue.checksum = static_cast<UdpChecksum>(2); }},
      {"scis[0].balance: 6, expected 0 to 5", [](Snapshot& s) { s.scis[0].policy.balance = static_cast<Balance>(6); }},
      {"scis[0].selection.security_level_min: 11, expected 0 to 10",
       [](Snapshot& s) { s.scis[0].policy.security_level_min = 11; }},
      {"scis[0].instances[0].security_level: 11, expected 0 to 10",
       [](Snapshot& s) { s.scis[0].instances[0].config.security_level = 11; }},
      {"scis[0].instances[0].load: expected 0 to 1", [](Snapshot& s) { s.scis[0].instances[0].load = 1.01; }},
      {"scis[0].timers.closing: 86400000000001, expected 0 to 86400000000000",
       [](Snapshot& s) { s.scis[0].policy.timers.closing = 24 * 3600 * kSecond + 1; }},
      {"scis[0].provisional.share: expected 0 to 1", [](Snapshot& s) { s.scis[0].policy.provisional_share = 1.01; }},
      {"scis[0].degradation_factor: expected 0 to 1",
       [](Snapshot& s) { s.scis[0].policy.degradation_factor = std::numeric_limits<double>::quiet_NaN(); }},
      {"scis[0].instances[0].index: 65536, expected 0 to 65535",
       [](Snapshot& s) { s.scis[0].instances[0].index = 65536; }},
      {"scis[0].instances[0].generation: 0, expected 1 to 65535",
       [](Snapshot& s) { s.scis[0].instances[0].generation = 0; }},
      {"scis[0].instances[0].health: 4, expected 0 to 3",
       [](Snapshot& s) { s.scis[0].instances[0].health = static_cast<HealthState>(4); }},
      {"scis[0].instances[0].admin: 3, expected 0 to 2",
       [](Snapshot& s) { s.scis[0].instances[0].admin = static_cast<Admin>(3); }},
      {"scis[0].instances[0].max_sessions: 16777216, expected 0 to 16777215",
       [](Snapshot& s) { s.scis[0].instances[0].config.max_sessions = 1u << 24; }},
      {"scis[192.0.2.10:80].instances[si-1]: limit 201, expected at most max_sessions 200",
       [](Snapshot& s) { s.scis[0].instances[0].limit = 201; }},
      {"scis[192.0.2.10:80].instances[si-1]: stands twice",
       [](Snapshot& s) { s.scis[0].instances.push_back(s.scis[0].instances[0]); }},
      {"scis[192.0.2.10:80].instances[si-2]: index 7 stands twice",
       [](Snapshot& s) {
         s.scis[0].instances.push_back(s.scis[0].instances[0]);
         s.scis[0].instances[1].config.id = "si-2";
       }},
  };
  EXPECT_EQ(error_of(small()), "");
  for (const Wrong& row : rows) {
    Snapshot snapshot = small();
    row.change(snapshot);
    EXPECT_EQ(error_of(snapshot), row.error);
  }
}

TEST(Snapshot, OtherBytesAreNoSnapshot) {
  std::vector<std::byte> bytes = encode(small());
  bytes[4] = std::byte{1};
  EXPECT_EQ(decode(bytes).error().message, "version: 1, expected 3");
  bytes[0] = std::byte{0};
  EXPECT_EQ(decode(bytes).error().message, "magic: not a snapshot");
  EXPECT_EQ(decode({}).error().message, "magic: not a snapshot");
}

// A count is no promise: memory is taken for what is there, not for what is said.
TEST(Snapshot, AHugeCountTakesNoMemory) {
  Snapshot snapshot = small();
  snapshot.scis.clear();
  std::vector<std::byte> bytes = encode(snapshot);  // magic, version, generation, base, count of SCIs ...
  const size_t count_at = 4 + 4 + 8 + 8;
  bytes[count_at + 1] = std::byte{0xff};  // 65,280 SCIs
  EXPECT_EQ(decode(bytes).error().message,
            "scis[0].csci_id: ends early");  // after the index: what was the count of `removed`
}

}  // namespace
}  // namespace margay::shared_table
