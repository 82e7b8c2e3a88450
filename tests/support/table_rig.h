// SPDX-License-Identifier: Apache-2.0
#pragma once

// The shared table of a running data plane without workers, ports or packets: its socket with the thread behind it, and
// readers that hold tables as workers do. For torture and benches; starts as a site without SCIs.
//
// Instances lie in 10.0.0.0/8, wherever SCIs are.

#include <stdlib.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/check.h"
#include "common/monotonic.h"
#include "common/shared_table/writer.h"
#include "dataplane/table_thread.h"
#include "tests/support/packet_builder.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_arena.h"

namespace margay::test {

class NoPorts : public dp::PortInspector {
 public:
  dp::PortInfo info(dp::PortIndex) const override { return {}; }
  dp::PortStats stats(dp::PortIndex) const override { return {}; }
  std::vector<std::pair<std::string, uint64_t>> xstats(dp::PortIndex) const override { return {}; }
  Result<void> clear_stats(dp::PortIndex) override { return {}; }
  std::vector<dp::LinkChange> follow_links() override { return {}; }
};

class TableRig {
 public:
  // Shows what a reader holds while it reads nothing.
  static constexpr uint64_t kNothing = ~uint64_t{0};
  using See = std::function<void(uint32_t reader, const dp::SiteTable&)>;

  TableRig(uint32_t readers, uint32_t instances_max, uint32_t scis_max)
      : shape_{readers, instances_max, scis_max},
        counters_(std::move(*shared_table::MemoryFile::create("counters", shared_table::counters_bytes(shape_),
                                                              shared_table::MemoryFile::Writers::kMaker))),
        arena_((size_t{256} + 64 * readers) * instances_max + (size_t{1} << 20)),
        shared(arena_, shared_table::make_counters(counters_.bytes(), shape_)),
        plane(site(), dp::SiteTable::without_scis(site(), macs()), shared, mailboxes_, ports_),
        holds(readers) {
    plane.now = monotonic_now;
    for (auto& h : holds) h.store(kNothing);
    thread_ = std::move(*dp::TableThread::start(folder_.path() + "/dataplane.sock", plane, counters_));
  }
  ~TableRig() {
    thread_.reset();
    stop_readers();
    UrcuQsbr::drain();
  }
  TableRig(const TableRig&) = delete;
  TableRig& operator=(const TableRig&) = delete;

  // The connection before may not have been noticed to be gone.
  std::unique_ptr<shared_table::Writer> connect() const {
    for (const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);;) {
      auto writer = shared_table::Writer::connect(folder_.path() + "/dataplane.sock", std::chrono::seconds(10));
      if (writer) return std::move(*writer);
      MARGAY_CHECK(std::chrono::steady_clock::now() < until);
    }
  }

  // Each reads, shows what it holds, looks at it, lets go, again and again.
  void start_readers(const See& see) {
    for (uint32_t r = 0; r < holds.size(); ++r) readers_.emplace_back([this, r, see] { read(r, see); });
  }
  void stop_readers() {
    stop_.store(true);
    for (std::thread& t : readers_) t.join();
    readers_.clear();
  }
  // Does every reader hold this generation, or a later one, or nothing?
  bool all_passed(uint64_t generation) const {
    return std::all_of(holds.begin(), holds.end(), [&](const auto& h) { return h.load() >= generation; });
  }

  static shared_table::InstanceRecord instance(uint32_t index, uint16_t generation = 1) {
    shared_table::InstanceRecord i;
    i.index = index;
    i.generation = generation;
    i.health = HealthState::kHealthy;
    i.limit = 100;
    i.config.id = "si-" + std::to_string(index) + "-" + std::to_string(generation);
    i.config.address = IpAddress::v4(to_wire32(0x0a000000u + (uint32_t{generation} % 128 << 16) + 256 + index));
    i.config.port = 8080;
    i.config.max_sessions = 100;
    return i;
  }
  static shared_table::SciRecord sci(uint32_t index, const std::string& name) {
    shared_table::SciRecord s;
    s.index = index;
    s.policy.csci_id = name;
    s.policy.cs_id = "service";
    s.policy.endpoints = {{IpAddress::v4(to_wire32(0xc6336400u + index)), 80, Protocol::kTcp}};
    return s;
  }

 private:
  static dp::SiteConfig site() {
    dp::SiteConfig site;
    dp::PortConfig clients, servers;
    clients.name = "net0";
    clients.addresses = {*Prefix::parse("192.0.2.2/24")};
    servers.name = "net1";
    servers.addresses = {*Prefix::parse("10.0.0.2/8")};
    site.ports = {clients, servers};
    return site;
  }
  static std::vector<MacAddress> macs() { return {mac("02:00:00:00:0f:00"), mac("02:00:00:00:0f:01")}; }

  // liburcu frees in a thread of its own, the stand-in where it is asked to.
  template <class Rcu>
  static void reclaim() {
    if constexpr (requires { Rcu::reclaim(); }) Rcu::reclaim();
  }

  void read(uint32_t r, const See& see) {
    UrcuQsbr::register_reader();
    for (uint64_t n = 1; !stop_.load(std::memory_order_relaxed); ++n) {
      const dp::SiteTable& table = *plane.table_pointer().read();
      holds[r].store(table.generation);
      see(r, table);
      holds[r].store(kNothing);
      shared.worker_counters[r].polls.add();
      UrcuQsbr::quiescent();
      if (n % 64 != 0) continue;
      UrcuQsbr::offline();
      std::this_thread::yield();
      if (r == 0) reclaim<UrcuQsbr>();
      UrcuQsbr::online();
    }
    UrcuQsbr::unregister_reader();
  }

  shared_table::CountersShape shape_;
  shared_table::MemoryFile counters_;
  dp::TestArena arena_;
  std::vector<dp::Mailbox> mailboxes_;
  NoPorts ports_;
  TempFolder folder_;

 public:
  dp::SharedState shared;
  dp::DataPlane plane;
  std::vector<std::atomic<uint64_t>> holds;  // by reader: the generation in its hands

 private:
  std::atomic<bool> stop_{false};
  std::vector<std::thread> readers_;
  std::unique_ptr<dp::TableThread> thread_;
};

}  // namespace margay::test
