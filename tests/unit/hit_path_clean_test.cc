// SPDX-License-Identifier: Apache-2.0

// A hit writes the worker's own memory and nothing else, makes no system call and allocates nothing. A child process
// binds flows of every kind, makes all memory read-only but the worker's arena, its own counters, its packets and the
// stack, kills itself on any system call, traps on any allocation, and takes a million hits, each of which must go to
// or come from the instance that its flow was bound to (SCI-5, SCI-13, SCI-73, SCI-84, SCI-86, SCI-88, SCI-124). That
// each of the three fences holds is tried by misdeeds. Not for sanitizer builds, which write shadow memory.

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/rseq.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <vector>

#include "dataplane/core/fast_path.h"
#include "tests/support/every_mode_site.h"

namespace {
bool allocation_forbidden = false;
}

// In front of glibc's own; operator new comes by here too.
extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
void* malloc(size_t n) {
  if (allocation_forbidden) __builtin_trap();
  return __libc_malloc(n);
}
void* calloc(size_t n, size_t size) {
  if (allocation_forbidden) __builtin_trap();
  return __libc_calloc(n, size);
}
void* realloc(void* p, size_t n) {
  if (allocation_forbidden) __builtin_trap();
  return __libc_realloc(p, n);
}
void* aligned_alloc(size_t alignment, size_t n) {
  if (allocation_forbidden) __builtin_trap();
  return __libc_memalign(alignment, n);
}
}

namespace margay::dp {
namespace {

using test::Bytes;
using test::FlowKind;

constexpr size_t kPage = 4096;
// Counters of worker 64 begin on a page: 64 times any number of cache lines is a number of pages. So do its
// instance counters when the instances of one worker fill whole pages.
constexpr WorkerIndex kSelf = 64, kWorkers = 65;
constexpr size_t kInstancesMax = kPage / kCacheLine;
constexpr uint32_t kInstancesPerSci = 4;
constexpr uint32_t kFlows = 4096;
constexpr uint32_t kHits = 1'000'000;
constexpr uint32_t kRseqBytes = 32;  // what glibc registers
constexpr size_t kBufferBytes = 512, kHeadroom = 128;

// How a child ends at a write to read-only memory: where its misdeed writes, or elsewhere.
constexpr int kCaught = 42, kFault = 43;
const void* misdeed_writes = nullptr;

void on_fault(int, siginfo_t* info, void*) {
  syscall(SYS_exit_group, info->si_addr == misdeed_writes ? kCaught : kFault);
}

enum class Misdeed {
  kNone,
  kCountForAnotherWorker,
  kCountInstanceForAnotherWorker,
  kWriteTable,
  kWriteGlobal,
  kSystemCall,
  kAllocation,
};

std::span<std::byte> map_pages(size_t bytes) {
  const size_t whole = (bytes + kPage - 1) / kPage * kPage;
  void* p = mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) std::abort();
  return {static_cast<std::byte*>(p), whole};
}

// SharedState in memory of its own. Each array of counters is moved to the start of a page: pages are what can be made
// read-only.
struct SharedMemory {
  static constexpr shared_table::CountersShape kShape{kWorkers, kInstancesMax, 1};
  static size_t ledger_bytes() {
    Arena counting;
    SharedState(counting, SharedState::Counters({}, kShape));
    return counting.used();
  }
  SharedMemory() {
    state.worker_counters = on_pages<WorkerCounters>(kWorkers);
    state.instance_counters = on_pages<InstanceCounters>(kWorkers * kInstancesMax);
    state.instance_times = on_pages<InstanceTimes>(kWorkers * kInstancesMax);
  }
  template <class T>
  static std::span<T> on_pages(size_t n) {
    return {reinterpret_cast<T*>(map_pages(n * sizeof(T)).data()), n};
  }
  Arena arena{map_pages(ledger_bytes())};
  SharedState state{arena, SharedState::Counters(map_pages(shared_table::counters_bytes(kShape)), kShape)};

  std::span<std::byte> own_instance_counters() {
    return std::as_writable_bytes(state.instance_counters.subspan(kSelf * kInstancesMax, kInstancesMax));
  }
  std::span<std::byte> own_times() {
    return std::as_writable_bytes(state.instance_times.subspan(kSelf * kInstancesMax, kInstancesMax));
  }
  std::span<std::byte> own_worker_counters() {  // the last
    return {reinterpret_cast<std::byte*>(&state.worker_counters[kSelf]), kPage};
  }
};

// What the worker alone writes.
struct Own {
  Burst burst;
  std::array<std::array<uint8_t, kBufferBytes>, kBurstMax> buffers;
  alignas(FastPath) std::array<std::byte, sizeof(FastPath)> fast_path;
  Nanoseconds now = 1'000 * kSecond;
  size_t next = 0;  // packet
};

class Child {
 public:
  explicit Child(Misdeed misdeed) : misdeed_(misdeed) {
    config_.self = kSelf;
    config_.workers = kWorkers;
    config_.flows = kFlows;
    for (size_t k = 0; k < config_.secret.words.size(); ++k) config_.secret.words[k] = 0x9e3779b97f4a7c15 * (k + 1);
    shared_.state.open_instances(*table_);
    Arena counting;
    FastPath(config_, shared_.state, counting, 0);
    arena_pages_ = map_pages(counting.used());
    own_pages_ = map_pages(sizeof(Own));
    own_ = new (own_pages_.data()) Own;
    Arena arena(arena_pages_);
    fast_path_ = new (own_->fast_path.data()) FastPath(config_, shared_.state, arena, own_->now);
  }

  [[noreturn]] void run() {
    bind_flows();
    if (*std::min_element(bindings_.begin(), bindings_.end()) == 0) _exit(2);
    const uint64_t hits = counters().hits.get(), misses = counters().misses.get();
    take_hits(2 * static_cast<uint32_t>(packets_.size()));  // lazily bound symbols, pages first touched
    const uint64_t warm = counters().hits.get() - hits;
    if (warm != 2 * packets_.size() || counters().misses.get() != misses) _exit(3);
    fence();
    const uint32_t right = take_hits(kHits);
    const bool all_hits = counters().hits.get() - hits - warm == kHits && counters().misses.get() == misses;
    commit();
    syscall(SYS_exit_group, all_hits && right == kHits ? 0 : 4);
    __builtin_unreachable();
  }

 private:
  WorkerCounters& counters() { return shared_.state.worker_counters[kSelf]; }

  void place(uint32_t i, const Bytes& bytes, PortIndex port) {
    Packet& packet = own_->burst.packets[i];
    packet.data = own_->buffers[i].data() + kHeadroom;
    packet.length = static_cast<uint16_t>(bytes.size());
    packet.headroom = kHeadroom;
    packet.tailroom = static_cast<uint16_t>(kBufferBytes - kHeadroom - bytes.size());
    packet.port = port;
    std::memcpy(packet.data, bytes.data(), bytes.size());
  }

  // One packet alone; it must go out.
  void send(const test::PacketBuilder& frame, PortIndex port) {
    place(0, frame.build(), port);
    own_->burst.count = 1;
    fast_path_->process(own_->burst, *table_, own_->now);
    if (own_->burst.outcomes[0].verdict != Verdict::kTransmit) _exit(2);
  }

  // Flows that this worker owns, established; and a packet of each direction of theirs.
  void bind_flows() {
    for (uint32_t n = 0; fast_path_->flows() < kFlows / 2; ++n) {
      const FlowKind kind = FlowKind::of(n % FlowKind::kCount);
      const std::string client = kind.client(n);
      const AddressPort from = *AddressPort::parse(client);
      const auto protocol = kind.udp ? Protocol::kUdp : Protocol::kTcp;
      const uint64_t hash = hash_client(config_.secret, from.address, to_wire16(from.port), protocol);
      if (owner_of(hash, kWorkers) == kSelf) bind(kind, client);
    }
  }

  void bind(const FlowKind& kind, const std::string& client) {
    const test::PacketBuilder packet = kind.from_client(client);
    const size_t flows = fast_path_->flows();
    send(kind.udp ? packet : packet.flags(test::kSyn).seq(999), 0);
    const InstanceIndex bound = fast_path_->trace(0).instance;
    const Instance& instance = table_->instances[bound];
    ++bindings_[bound];
    const std::string behind = AddressPort{instance.address, from_wire16(instance.port)}.format();
    const test::PacketBuilder reply = kind.from_instance(behind, client);
    if (kind.two_way()) send(kind.udp ? reply : reply.flags(test::kSyn | test::kAck).seq(4999).ack(1000), 1);
    if (!kind.udp) send(packet.flags(test::kAck).seq(1000).ack(5000), 0);
    if (kind.udp) send(packet, 0);
    if (fast_path_->flows() != flows + 1) _exit(2);
    packets_.push_back({packet.flags(test::kAck).seq(1000).ack(5000).payload_size(64).build(), 0, bound});
    if (!kind.two_way()) return;
    packets_.push_back({reply.flags(test::kAck).seq(5000).ack(1000).payload_size(200).build(), 1, bound});
  }

  // Returns how many packets went out as their flows' bindings tell.
  uint32_t take_hits(uint32_t n) {
    uint32_t right = 0;
    for (uint32_t done = 0; done < n; done += own_->burst.count) {
      own_->burst.count = std::min<uint32_t>(kBurstMax, n - done);
      for (uint32_t i = 0; i < own_->burst.count; ++i) {
        const Sample& sample = packets_[(own_->next + i) % packets_.size()];
        place(i, sample.bytes, sample.port);
      }
      own_->now += 10'000;
      fast_path_->process(own_->burst, *table_, own_->now);
      for (uint32_t i = 0; i < own_->burst.count; ++i) {
        const InstanceIndex instance = packets_[(own_->next + i) % packets_.size()].instance;
        right += own_->burst.outcomes[i].verdict == Verdict::kTransmit && fast_path_->trace(i).instance == instance;
      }
      own_->next = (own_->next + own_->burst.count) % packets_.size();
    }
    return right;
  }

  struct Range {
    uintptr_t begin, end;
  };

  // Every writable mapping, but the stack and the worker's own.
  size_t others(std::span<Range> ranges) const {
    std::ifstream maps("/proc/self/maps");
    size_t count = 0;
    for (std::string line; std::getline(maps, line);) {
      Range range{};
      char access[5] = {};
      if (std::sscanf(line.c_str(), "%lx-%lx %4s", &range.begin, &range.end, access) != 3) _exit(5);
      const auto here = reinterpret_cast<uintptr_t>(&range);
      if (access[1] != 'w' || (range.begin <= here && here < range.end)) continue;
      if (count == ranges.size()) _exit(5);
      ranges[count++] = range;
    }
    return count;
  }

  static void protect(std::span<std::byte> pages, int access) {
    if (mprotect(pages.data(), pages.size(), access) != 0) _exit(6);
  }

  void fence() {
    misdeed_writes = target();
    struct sigaction action {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO;
    if (sigaction(SIGSEGV, &action, nullptr) != 0) _exit(8);
    // The kernel writes the thread's rseq area whenever it preempts the thread: not ours to count.
    auto* rseq_area = static_cast<std::byte*>(__builtin_thread_pointer()) + __rseq_offset;
    if (__rseq_size > 0 && syscall(SYS_rseq, rseq_area, kRseqBytes, RSEQ_FLAG_UNREGISTER, RSEQ_SIG) != 0) _exit(8);
    std::array<Range, 256> ranges;
    const size_t count = others(ranges);
    sock_filter code[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                          BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
                          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
                          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)};
    const sock_fprog program{4, code};
    allocation_forbidden = true;
    for (const Range& r : std::span(ranges).first(count)) {
      // A mapping may hold own and other pages: all are closed, the own ones opened again.
      protect({reinterpret_cast<std::byte*>(r.begin), r.end - r.begin}, PROT_READ);
    }
    for (const auto& pages : {arena_pages_, own_pages_, shared_.own_instance_counters(), shared_.own_times(),
                              shared_.own_worker_counters()}) {
      protect(pages, PROT_READ | PROT_WRITE);
    }
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) _exit(7);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) _exit(7);
  }

  // Where the misdeed writes, if it does.
  void* target() {
    switch (misdeed_) {
      case Misdeed::kCountForAnotherWorker:
        return &shared_.state.worker_counters[kSelf - 1].packets;
      case Misdeed::kCountInstanceForAnotherWorker:
        return &shared_.state.counters(kSelf - 1, 0).packets_in;
      case Misdeed::kWriteTable:
        return const_cast<uint64_t*>(&table_->version);
      case Misdeed::kWriteGlobal:
        return &allocation_forbidden;
      case Misdeed::kNone:
      case Misdeed::kSystemCall:
      case Misdeed::kAllocation:
        return nullptr;
    }
    return nullptr;
  }

  void commit() {
    if (misdeed_writes != nullptr) *static_cast<volatile char*>(target()) = 1;
    if (misdeed_ == Misdeed::kSystemCall) (void)getppid();
    if (misdeed_ != Misdeed::kAllocation) return;
    void* volatile memory = ::operator new(100);
    (void)memory;
  }

  struct Sample {
    Bytes bytes;
    PortIndex port;
    InstanceIndex instance;
  };

  Misdeed misdeed_;
  std::unique_ptr<const SiteTable> table_ =
      SiteTable::build(test::every_mode_site(kInstancesPerSci, 1000), test::kSitePortMacs);
  SharedMemory shared_;
  FastPathConfig config_;
  std::span<std::byte> arena_pages_, own_pages_;
  Own* own_ = nullptr;
  FastPath* fast_path_ = nullptr;
  std::vector<Sample> packets_;
  std::array<uint32_t, FlowKind::kCount * kInstancesPerSci> bindings_{};  // by instance
};

struct Case {
  const char* name;
  Misdeed misdeed;
  int status;  // that the child exits with
  int signal;  // or that ends it
};

class HitPathClean : public testing::TestWithParam<Case> {};

TEST_P(HitPathClean, EndsAsItMust) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) (new Child(GetParam().misdeed))->run();
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : 0, GetParam().status);
  EXPECT_EQ(WIFSIGNALED(status) ? WTERMSIG(status) : 0, GetParam().signal);
}

INSTANTIATE_TEST_SUITE_P(, HitPathClean,
                         testing::Values(Case{"hits", Misdeed::kNone, 0, 0},
                                         Case{"counter_of_another_worker", Misdeed::kCountForAnotherWorker, kCaught, 0},
                                         Case{"instance_counter_of_another_worker",
                                              Misdeed::kCountInstanceForAnotherWorker, kCaught, 0},
                                         Case{"site_table", Misdeed::kWriteTable, kCaught, 0},
                                         Case{"global", Misdeed::kWriteGlobal, kCaught, 0},
                                         Case{"system_call", Misdeed::kSystemCall, 0, SIGSYS},
                                         Case{"allocation", Misdeed::kAllocation, 0, SIGILL}),
                         [](const auto& row) { return std::string(row.param.name); });

}  // namespace
}  // namespace margay::dp
