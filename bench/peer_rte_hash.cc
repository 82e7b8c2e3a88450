// SPDX-License-Identifier: Apache-2.0

#include "bench/peer_rte_hash.h"

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_hash.h>
#include <rte_hash_crc.h>
#include <rte_malloc.h>

#include <array>
#include <bit>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "common/check.h"

namespace margay::bench {
namespace {

bool huge_pages = false;

struct PeerKey {
  explicit PeerKey(const dp::FlowKey& key)
      : client(key.client.bytes),
        port(key.client_port),
        protocol(static_cast<uint8_t>(key.protocol)),
        direction(static_cast<uint8_t>(key.direction)),
        service(key.service) {}

  std::array<uint8_t, 16> client;
  uint16_t port;
  uint8_t protocol, direction;
  uint32_t service;
};
static_assert(sizeof(PeerKey) == 24);

size_t free_huge_megabytes() {
  size_t pages = 0;
  std::ifstream("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages") >> pages;
  return pages * 2;
}

}  // namespace

struct PeerHash::Table {
  rte_hash* hash = nullptr;
};

void start_eal(size_t megabytes) {
  static bool started = false;
  if (started) return;
  started = true;
  huge_pages = free_huge_megabytes() >= megabytes;
  std::vector<std::string> words{"bench", "--no-pci", "--no-telemetry", "--log-level=error"};
  words.insert(words.end(), {"-m", std::to_string(megabytes), "--lcores", "0@0-1"});
  if (huge_pages) {
    words.emplace_back("--in-memory");  // needs no mount of hugetlbfs
  } else {
    words.insert(words.end(), {"--no-huge", "--no-shconf"});
  }
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  if (rte_eal_init(static_cast<int>(arguments.size()), arguments.data()) >= 0) return;
  std::fprintf(stderr, "bench: EAL does not start: %s\n", rte_strerror(rte_errno));
  std::exit(1);
}

bool eal_has_huge_pages() { return huge_pages; }

std::span<std::byte> eal_memory(size_t bytes) {
  auto* memory = static_cast<std::byte*>(rte_zmalloc("bench", bytes, dp::kCacheLine));
  MARGAY_CHECK(memory != nullptr);
  return {memory, bytes};
}
void free_eal_memory(std::span<std::byte> memory) { rte_free(memory.data()); }

PeerHash::PeerHash(size_t keys_max) : table_(std::make_unique<Table>()) {
  static int number = 0;
  const std::string name = "peer" + std::to_string(number++);  // of each table its own
  rte_hash_parameters parameters{};
  parameters.name = name.c_str();
  // Its buckets hold eight too: as many slots as the flow table has for the same number of entries.
  parameters.entries = static_cast<uint32_t>(dp::FlowTable::buckets_for(keys_max) * dp::kBucketSlots);
  parameters.key_len = sizeof(PeerKey);
  parameters.hash_func = rte_hash_crc;
  parameters.extra_flag = RTE_HASH_EXTRA_FLAGS_RW_CONCURRENCY_LF;
  table_->hash = rte_hash_create(&parameters);
  MARGAY_CHECK(table_->hash != nullptr);
}

PeerHash::~PeerHash() { rte_hash_free(table_->hash); }

bool PeerHash::insert(const dp::FlowKey& key, uint32_t value) {
  const PeerKey peer_key(key);
  return rte_hash_add_key_data(table_->hash, &peer_key, reinterpret_cast<void*>(uintptr_t{value})) == 0;
}

void PeerHash::erase(const dp::FlowKey& key) {
  const PeerKey peer_key(key);
  const int32_t position = rte_hash_del_key(table_->hash, &peer_key);
  MARGAY_CHECK(position >= 0);
  rte_hash_free_key_with_position(table_->hash, position);  // lock-free tables keep it until told
}

void PeerHash::find_bulk(std::span<const dp::FlowKey> keys, std::span<uint32_t> found) const {
  std::array<std::byte, sizeof(PeerKey) * dp::kBurstMax> bytes;
  std::array<const void*, dp::kBurstMax> pointers;
  for (size_t i = 0; i < keys.size(); ++i) {
    pointers[i] = new (&bytes[i * sizeof(PeerKey)]) PeerKey(keys[i]);
  }
  uint64_t hits = 0;
  std::array<void*, dp::kBurstMax> data;
  rte_hash_lookup_bulk_data(table_->hash, pointers.data(), static_cast<uint32_t>(keys.size()), &hits, data.data());
  for (size_t i = 0; i < keys.size(); ++i) {
    const bool hit = (hits >> i & 1) != 0;
    found[i] = hit ? static_cast<uint32_t>(reinterpret_cast<uintptr_t>(data[i])) : dp::kNoIndex;
  }
}

}  // namespace margay::bench
