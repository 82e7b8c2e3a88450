// SPDX-License-Identifier: Apache-2.0
#include "control/c_sma/entry_table.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/seed.h"

namespace margay::c_sma {
namespace {

// Its numbers say whether it is whole.
CacheEntry entry(const std::string& csci_id, const std::string& cs_id, uint32_t value = 0) {
  CacheEntry e{.id = std::make_shared<const SourceId>(SourceId{csci_id, cs_id, "host-" + csci_id})};
  e.metrics.gas = value;
  e.metrics.computing_time_ms = value + 1;
  e.sequence = value + 2;
  return e;
}
bool whole(const CacheEntry& e) {
  return e.id->identity == "host-" + e.id->csci_id && *e.metrics.computing_time_ms == *e.metrics.gas + 1 &&
         e.sequence == uint64_t{*e.metrics.gas} + 2;
}
std::multiset<std::string> of(const EntryTable& table, const std::string& cs_id) {
  std::multiset<std::string> ids;
  table.for_each_of(cs_id, [&](const CacheEntry& e) { ids.insert(e.id->csci_id); });
  return ids;
}

TEST(EntryTable, FindsByCsciIdAndByCsId_CSMA63_CSMA64) {
  EntryTable table(16);
  EXPECT_FALSE(table.find("a"));
  EntryTable::Slot* a = table.add(entry("a", "ARS", 1));
  EntryTable::Slot* b = table.add(entry("b", "ARS", 2));
  EntryTable::Slot* c = table.add(entry("c", "VRS", 3));
  EXPECT_EQ(table.find("b")->metrics.gas, 2u);
  EXPECT_EQ(of(table, "ARS"), (std::multiset<std::string>{"a", "b"}));
  EXPECT_EQ(of(table, "VRS"), (std::multiset<std::string>{"c"}));
  EXPECT_TRUE(of(table, "LLMS").empty());
  table.replace(b, entry("b", "ARS", 20));
  EXPECT_EQ(table.find("b")->metrics.gas, 20u);
  EXPECT_EQ(EntryTable::entry(b).metrics.gas, 20u);
  table.remove(a);
  EXPECT_FALSE(table.find("a"));
  EXPECT_EQ(of(table, "ARS"), (std::multiset<std::string>{"b"}));
  table.remove(c);
  EXPECT_TRUE(of(table, "VRS").empty());
  c = table.add(entry("c", "ARS", 4));  // comes back with another service
  EXPECT_EQ(of(table, "ARS"), (std::multiset<std::string>{"b", "c"}));
  size_t all = 0;
  table.for_each([&](const CacheEntry&) { ++all; });
  EXPECT_EQ(all, 2u);
}

TEST(EntryTable, HoldsMoreThanItWasMadeFor_AndHashesThatMeet) {
  EntryTable table(1);
  std::vector<EntryTable::Slot*> slots;
  for (uint32_t i = 0; i < 5000; ++i)
    slots.push_back(table.add(entry(std::to_string(i), "cs" + std::to_string(i % 7), i)));
  for (uint32_t i = 0; i < 5000; ++i) ASSERT_EQ(table.find(std::to_string(i))->metrics.gas, i);
  for (uint32_t i = 0; i < 5000; i += 2) table.remove(slots[i]);
  for (uint32_t i = 0; i < 5000; ++i) ASSERT_EQ(table.find(std::to_string(i)).has_value(), i % 2 == 1);
  EXPECT_EQ(of(table, "cs0").size(), 357u);  // of 0, 7, .. 4998 the odd ones
}

// Readers see whole entries only, and each that is always there exactly once by its CSCI-ID.
TEST(EntryTable, ReadersUnderChurn_CSMA63) {
  const uint64_t seed = margay::test::test_seed();
  SCOPED_TRACE(margay::test::seed_text(seed));
  EntryTable table(64);
  constexpr uint32_t kStay = 20, kCome = 40;
  std::vector<EntryTable::Slot*> stay;
  for (uint32_t i = 0; i < kStay; ++i) stay.push_back(table.add(entry("stay-" + std::to_string(i), "ARS", 0)));

  std::atomic<bool> stop = false;
  std::atomic<uint64_t> bad = 0, reads = 0;
  const auto reader = [&] {
    std::map<std::string, uint64_t> newest;
    while (!stop.load(std::memory_order_relaxed)) {
      uint32_t stayed = 0;
      table.for_each_of("ARS", [&](const CacheEntry& e) {
        if (!whole(e)) ++bad;
        if (e.id->csci_id.starts_with("stay")) ++stayed;
      });
      if (stayed < kStay) ++bad;
      for (uint32_t i = 0; i < kStay; ++i) {
        const auto found = table.find("stay-" + std::to_string(i));
        if (!found || !whole(*found)) {
          ++bad;
          continue;
        }
        uint64_t& last = newest[found->id->csci_id];
        if (found->sequence < last) ++bad;
        last = found->sequence;
      }
      table.for_each([&](const CacheEntry& e) { bad += whole(e) ? 0 : 1; });
      ++reads;
    }
  };
  std::vector<std::thread> readers;
  for (int i = 0; i < 3; ++i) readers.emplace_back(reader);

  margay::test::Random random(seed);
  std::map<uint32_t, EntryTable::Slot*> here;
  for (uint32_t step = 1; step <= 50'000; ++step) {
    const uint32_t i = random.below(kStay);
    table.replace(stay[i], entry("stay-" + std::to_string(i), "ARS", step));
    const uint32_t j = random.below(kCome);
    const auto found = here.find(j);
    const std::string name = "come-" + std::to_string(j), service = j % 2 == 0 ? "ARS" : "VRS";
    if (found == here.end()) {
      here[j] = table.add(entry(name, service, step));
    } else if (random.one_in(2)) {
      table.replace(found->second, entry(name, service, step));
    } else {
      table.remove(found->second);
      here.erase(found);
    }
  }
  while (reads < 10) std::this_thread::yield();
  stop = true;
  for (std::thread& t : readers) t.join();
  EXPECT_EQ(bad, 0u);
}

}  // namespace
}  // namespace margay::c_sma
