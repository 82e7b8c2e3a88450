// SPDX-License-Identifier: Apache-2.0

// Three workers under real threads and real RCU: clients and instances that talk TCP and UDP over every mode, each
// packet on any worker's queue, while control publishes changed site tables (drain, disable, weights) and moves
// limits at a high rate. At the end all bindings run out: slots 0, audit difference 0, every packet accounted for
// (SCI-33, SCI-90, SCI-92, SCI-129). Under ThreadSanitizer RCU is a stand-in.

#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <thread>
#include <vector>

#include "common/rcu.h"
#include "dataplane/worker.h"
#include "tests/support/every_mode_site.h"
#include "tests/support/memory_io.h"
#include "tests/support/rcu_stand_in.h"
#include "tests/support/seed.h"
#include "tests/support/test_arena.h"

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define __SANITIZE_THREAD__ 1
#endif
#endif

namespace margay::dp {
namespace {

using test::Buffer;
using test::Bytes;
using test::FlowKind;

#ifdef __SANITIZE_THREAD__
using Rcu = test::RcuStandIn;
#else
using Rcu = UrcuQsbr;
#endif
#if defined(NDEBUG) && !defined(__SANITIZE_THREAD__)
constexpr uint64_t kPackets = 1'500'000;
#else
constexpr uint64_t kPackets = 100'000;
#endif

constexpr WorkerIndex kWorkers = 3;
constexpr uint32_t kInstancesPerSci = 3, kSlots = 60, kClientFlows = 400;

SiteConfig site() {
  SiteConfig config = test::every_mode_site(kInstancesPerSci, kSlots);
  for (uint32_t k = 0; k < config.scis.size(); ++k) {
    SciConfig& sci = config.scis[k];
    sci.balance = k % 3 == 0 ? Balance::kRoundRobin : k % 3 == 1 ? Balance::kLeastConnections : Balance::kSlotBased;
    sci.affinity_timeout = 3 * kSecond;
    sci.timers = {kSecond, kSecond, kSecond, kSecond / 2, kSecond};
  }
  return config;
}

// The far side of one worker's queues: some clients, and the instances' answers to what any worker sent out.
class Peer {
 public:
  Peer(uint64_t seed, WorkerIndex self, std::vector<test::BufferQueue>& answers)
      : random_(seed), self_(self), answers_(answers) {
    for (uint32_t n = 0; n < kClientFlows; ++n) add_client(kClientFlows * self + n);
  }

  Buffer* next_frame(PortIndex port) {
    if (port == 1) return answers_[self_].pop();
    if (!talking.load(std::memory_order_relaxed) || random_.one_in(8)) return nullptr;
    Client& client = clients_[random_.below(clients_.size())];
    const Bytes& frame = client.frames[client.next];
    client.next = (client.next + 1) % client.frames.size();
    return Buffer::make(frame, 0);
  }

  // What went to an instance behind nat is answered, through any worker's queue.
  void transmitted(PortIndex port, const Packet& packet) {
    if (port != 1) return;
    const bool v4 = packet.data[12] == 0x08;
    uint8_t* ip = packet.data + 14;
    uint8_t* l4 = ip + (v4 ? 20 : 40);
    const unsigned instance_port = unsigned{l4[2]} << 8 | l4[3];
    if (instance_port < 8000) return;
    std::memcpy(packet.data, test::kSitePortMacs[1].bytes.data(), 6);
    std::memcpy(packet.data + 6, test::kSiteInstance.bytes.data(), 6);
    std::swap_ranges(ip + (v4 ? 12 : 8), ip + (v4 ? 16 : 24), ip + (v4 ? 16 : 24));
    std::swap_ranges(l4, l4 + 2, l4 + 2);
    if (instance_port == 8080 && !answer_tcp(l4)) return;
    Buffer* answer = Buffer::make({packet.data, packet.length}, 1);
    if (!answers_[random_.below(kWorkers)].push(answer)) delete answer;
  }

  std::atomic<bool> talking{true};

 private:
  struct Client {
    std::vector<Bytes> frames;
    size_t next = 0;
  };

  void add_client(uint32_t n) {
    const FlowKind kind = FlowKind::of(n % FlowKind::kCount);
    const test::PacketBuilder p = kind.from_client(kind.client(n)).payload_size(0);
    Client client;
    if (kind.udp) {
      client.frames = {p.payload_size(20).build()};
    } else {
      const test::PacketBuilder ack = p.flags(test::kAck).seq(1000).ack(5000);
      client.frames = {p.flags(test::kSyn).seq(999).build(),
                       ack.build(),
                       ack.payload_size(100).build(),
                       ack.seq(1100).payload_size(50).build(),
                       ack.seq(1150).flags(test::kFin | test::kAck).build(),
                       ack.seq(1151).ack(5001).build()};
      if (n % 5 == 0) client.frames[4] = ack.seq(1150).flags(test::kRst | test::kAck).build();
    }
    clients_.push_back(std::move(client));
  }

  // Turns a client's segment into the instance's next one, its numbers by RFC 9293 §3.4 (payload kept).
  static bool answer_tcp(uint8_t* l4) {
    uint8_t& flags = l4[13];
    if ((flags & test::kRst) != 0) return false;
    uint32_t sequence, acknowledgement;
    std::memcpy(&sequence, l4 + 4, 4);
    std::memcpy(&acknowledgement, l4 + 8, 4);
    const bool syn = (flags & test::kSyn) != 0, fin = (flags & test::kFin) != 0;
    const uint32_t own = syn ? to_wire32(4999) : acknowledgement;
    const uint32_t next = to_wire32(from_wire32(sequence) + (syn || fin ? 1 : 0));
    std::memcpy(l4 + 4, &own, 4);
    std::memcpy(l4 + 8, &next, 4);
    flags = static_cast<uint8_t>(test::kAck | (syn ? test::kSyn : 0) | (fin ? test::kFin : 0));
    return true;
  }

  test::Random random_;
  WorkerIndex self_;
  std::vector<test::BufferQueue>& answers_;
  std::vector<Client> clients_;
};

struct ReadFlows : WorkerJob {
  void run(FastPath& fast_path, const SiteTable&) override { flows = fast_path.flows(); }
  size_t flows = 0;
};

class Torture {
 public:
  explicit Torture(uint64_t seed) : random_(seed) {
    shared.open_instances(*table_);
    FastPathConfig config;
    config.workers = kWorkers;
    config.flows = 2048;
    for (uint64_t& word : config.secret.words) word = random_.next();
    for (WorkerIndex w = 0; w < kWorkers; ++w) {
      config.self = w;
      peers_.push_back(std::make_unique<Peer>(random_.next(), w, answers_));
      ios.push_back(std::make_unique<test::MemoryIo<Peer>>(net_, w, *peers_[w]));
      fast_paths.push_back(std::make_unique<FastPath>(config, shared, *arenas_.emplace_back(own_arena()), net_.now()));
    }
  }

  void run() {
    std::vector<std::thread> threads;
    for (WorkerIndex w = 0; w < kWorkers; ++w) threads.emplace_back([this, w] { work(w); });
    while (packets() < kPackets) change_something();
    enable_all();
    for (auto& peer : peers_) peer->talking.store(false);
    const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while ((bindings() > 0 || waiting() > 0) && std::chrono::steady_clock::now() < patience) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    stop_.store(true);
    for (std::thread& t : threads) t.join();
    Rcu::drain();
  }

  uint64_t total(Counter WorkerCounters::*counter) const {
    uint64_t n = 0;
    for (const WorkerCounters& c : shared.worker_counters) n += (c.*counter).get();
    return n;
  }
  uint64_t refused(Refusal why) const {
    uint64_t n = 0;
    for (SciIndex s = 0; s < FlowKind::kCount; ++s) n += shared.refused(s, why);
    return n;
  }
  uint64_t dropped(size_t reason) const {
    uint64_t n = 0;
    for (const WorkerCounters& c : shared.worker_counters) n += c.drops[reason].get();
    return n;
  }

  std::vector<std::unique_ptr<test::MemoryIo<Peer>>> ios;
  std::vector<std::unique_ptr<FastPath>> fast_paths;
  uint64_t tables = 0, jobs = 0;

 private:
  static constexpr size_t kInstances = FlowKind::kCount * kInstancesPerSci;
  static std::unique_ptr<TestArena> own_arena() { return std::make_unique<TestArena>(size_t{16} << 20); }

  void work(WorkerIndex w) {
    Worker<test::MemoryIo<Peer>, Rcu> worker(*ios[w], *fast_paths[w], pointer_, mailboxes_[w],
                                             w == 0 ? Idle::kSleep : Idle::kSpin);
    worker.run(stop_);
  }

  void publish(std::unique_ptr<SiteTable> next) {
    next->version = table_->version + 1;
    pointer_.publish(next.get());
    Rcu::retire(std::exchange(table_, std::move(next)));
    ++tables;
  }

  void change_something() {
    std::unique_ptr<SiteTable> next = table_->clone();
    const InstanceIndex i = random_.below(kInstances);
    Instance& instance = next->instances.edit(i);
    switch (random_.below(4)) {
      case 0:
        instance.weight = static_cast<uint16_t>(random_.below(4));
        break;
      case 1:
        instance.admin = Admin::kDraining;
        instance.drain_deadline = to_tick(net_.now()) + random_.below(100);
        break;
      case 2:
        instance.admin = random_.one_in(3) ? Admin::kDisabled : Admin::kEnabled;
        break;
      case 3:
        instance.max_sessions = random_.below(2 * kSlots);
        shared.set_limit(*next, i, instance.max_sessions);
        break;
    }
    publish(std::move(next));
    if (random_.one_in(32)) {
      ReadFlows job;
      jobs += mailboxes_[random_.below(kWorkers)].run(job, kSecond);
    }
    std::this_thread::sleep_for(std::chrono::microseconds(random_.below(200)));
  }

  void enable_all() {
    std::unique_ptr<SiteTable> next = table_->clone();
    for (size_t i = 0; i < next->instances.size(); ++i) next->instances.edit(i).admin = Admin::kEnabled;
    publish(std::move(next));
  }

  uint64_t packets() const { return total(&WorkerCounters::packets); }
  uint64_t waiting() const { return total(&WorkerCounters::handed_over) - total(&WorkerCounters::taken_over); }
  uint64_t bindings() const {
    uint64_t n = 0;
    for (const InstanceCounters& c : shared.instance_counters) n += c.bindings.get();
    return n;
  }

  test::Random random_;
  TestArena shared_arena_{size_t{1} << 20};

 public:
  SharedState shared{shared_arena_, kWorkers, kInstances, FlowKind::kCount};

 private:
  test::MemoryNet net_{kWorkers, 2};
  std::vector<test::BufferQueue> answers_ = std::vector<test::BufferQueue>(kWorkers);
  std::vector<std::unique_ptr<Peer>> peers_;
  std::vector<std::unique_ptr<TestArena>> arenas_;
  std::vector<Mailbox> mailboxes_ = std::vector<Mailbox>(kWorkers);
  std::unique_ptr<const SiteTable> table_ = SiteTable::build(site(), test::kSitePortMacs);
  Rcu::Pointer<const SiteTable> pointer_{table_.get()};
  std::atomic<bool> stop_{false};
};

TEST(WorkerTorture, NothingIsLeftAndNothingIsLost) {
  const uint64_t seed = test::test_seed();
  SCOPED_TRACE(test::seed_text(seed));
  const auto torture = std::make_unique<Torture>(seed);
  torture->run();

  uint64_t received = 0;
  for (WorkerIndex w = 0; w < kWorkers; ++w) {
    received += torture->ios[w]->received;
    EXPECT_EQ(torture->fast_paths[w]->flows(), 0u) << "worker " << int{w};
    EXPECT_EQ(torture->fast_paths[w]->held(), 0u) << "worker " << int{w};
    EXPECT_GT(torture->shared.worker_counters[w].audit_passes.get(), 0u) << "worker " << int{w};
  }
  for (InstanceIndex i = 0; i < torture->shared.instances_max; ++i) {
    EXPECT_EQ(torture->shared.active(i), 0u) << "instance " << i;
    for (SlotLedger* ledger : {&torture->shared.slots, &torture->shared.provisional}) {
      EXPECT_EQ(ledger->view(i).active, 0u) << "instance " << i;
      ledger->set_limit(i, 0);
      EXPECT_TRUE(ledger->reclaim(i)) << "instance " << i;
    }
  }
  uint64_t dropped = 0;
  for (size_t r = 0; r < kDropReasons; ++r) dropped += torture->dropped(r);
  const auto total = [&](Counter WorkerCounters::*c) { return torture->total(c); };
  EXPECT_EQ(total(&WorkerCounters::audit_differences), 0u);
  EXPECT_EQ(total(&WorkerCounters::handed_over), total(&WorkerCounters::taken_over));
  EXPECT_EQ(total(&WorkerCounters::packets), received + total(&WorkerCounters::taken_over));
  EXPECT_EQ(received, total(&WorkerCounters::transmitted) + total(&WorkerCounters::consumed) +
                          total(&WorkerCounters::to_kernel) + dropped);
  EXPECT_GT(total(&WorkerCounters::hits), kPackets / 10);
  EXPECT_GT(total(&WorkerCounters::handed_over), kPackets / 10);
  EXPECT_GT(torture->tables, 100u);
  const std::pair<const char*, uint64_t> figures[] = {{"received", received},
                                                      {"hits", total(&WorkerCounters::hits)},
                                                      {"handed over", total(&WorkerCounters::handed_over)},
                                                      {"transmitted", total(&WorkerCounters::transmitted)},
                                                      {"refused: full", torture->refused(Refusal::kNoFreeSlot)},
                                                      {"tables", torture->tables},
                                                      {"jobs", torture->jobs}};
  for (const auto& [what, n] : figures) std::printf("%-14s %10llu\n", what, static_cast<unsigned long long>(n));
  for (size_t r = 0; r < kDropReasons; ++r) {
    const uint64_t n = torture->dropped(r);
    if (n > 0) std::printf("drop: %-24s %10llu\n", kDropReasonTexts[r].name.data(), static_cast<unsigned long long>(n));
  }
}

}  // namespace
}  // namespace margay::dp
