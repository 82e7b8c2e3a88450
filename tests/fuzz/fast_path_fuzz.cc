// SPDX-License-Identifier: Apache-2.0
// Any bytes as a history of packets, time and changes at one site with two workers that hand over to each other. Each
// packet comes to exactly one end: transmitted, to the kernel, consumed or dropped. After the input, time runs until
// every timer is out: no binding, no slot and no held packet may be left, and no audit may have found a difference.
//
// The input is a list of records; the first byte of each says what it is (tests/fuzz/make_corpus.cc writes some):
//   bits 0-1: 0 and 1 a packet, 2 time passes, 3 a change of the site
//   packet:   bit 2 port, bit 3 worker, bit 4 the next packet is in the same burst, bit 5 mend its checksums,
//             bit 6 it comes from the port's kernel interface; then 2 bytes of length (little endian), then the frame
//   time:     2 bytes (12 bits), in 10 ms
//   change:   1 byte: bits 0-2 the instance, bits 3-5 what
#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "common/check.h"
#include "dataplane/core/fast_path.h"
#include "tests/fuzz/mend.h"
#include "tests/fuzz/target.h"
#include "tests/packet/fixture.h"
#include "tests/support/test_arena.h"

namespace margay::test {
namespace {

using dp::Burst;
using dp::Packet;
using dp::Verdict;
using dp::WorkerIndex;

constexpr size_t kWorkers = 2;
constexpr uint16_t kHeadroom = 128;

// Small limits, so that full tables and full instances are near; every mode, balance and policy somewhere.
SiteConfig fuzz_site() {
  return with(nat_site(), [](SiteConfig& c) {
    c.ports[1].kernel = "mg1";
    c.ports[1].vlan = 100;
    for (dp::SciConfig& s : c.scis) {
      s.instances[0].max_sessions = 3;
      dp::InstanceConfig second = s.instances[0];
      second.id = "si-2";
      second.address.bytes[15] = 12;
      second.mac.reset();  // to be asked for
      s.instances.push_back(second);
    }
    c.scis[0].balance = dp::Balance::kRoundRobin;
    c.scis[1].unknown_flow = dp::UnknownFlow::kAdopt;
    c.scis[2].balance = dp::Balance::kLeastConnections;
    c.scis[3].when_none_healthy = dp::WhenNoneHealthy::kReject;
    dp::SciConfig dsr = c.scis[0];
    dsr.csci_id = "192.0.2.20:80";
    dsr.endpoints[0].address = ip("192.0.2.20");
    dsr.mode = dp::Mode::kL2Dsr;
    dsr.unknown_flow = dp::UnknownFlow::kDrop;
    c.scis.push_back(dsr);
    for (const dp::Mode mode : {dp::Mode::kIpip, dp::Mode::kGue}) {
      dsr.mode = mode;
      dsr.csci_id = mode == dp::Mode::kIpip ? "192.0.2.21:80" : "192.0.2.22:80";
      ++dsr.endpoints[0].address.bytes[15];
      dsr.mss_clamp = kMssByMtu;
      dsr.instances[1].address = ip("2001:db8:1::11");
      c.scis.push_back(dsr);
    }
  });
}

const SiteConfig& site() {
  static const SiteConfig config = fuzz_site();
  return config;
}

// Two bytes, little endian.
unsigned number(std::span<const uint8_t> input) { return input[0] + 256u * input[1]; }

class History {
 public:
  History() : shared_(arena_, kWorkers, 16, 16) {
    shared_.open_instances(*table_);
    for (size_t w = 0; w < kWorkers; ++w) {
      dp::FastPathConfig c;
      c.self = static_cast<WorkerIndex>(w);
      c.workers = kWorkers;
      c.flows = 8;
      c.resets = c.icmp = {.spacing = kSecond / 4, .burst = 4};
      for (size_t i = 0; i < c.secret.words.size(); ++i) c.secret.words[i] = 0x9e3779b97f4a7c15u * (i + 1);
      workers_[w] = std::make_unique<dp::FastPath>(c, shared_, arena_, now_);
    }
  }

  void play(std::span<const uint8_t> input) {
    while (!input.empty()) {
      const uint8_t what = input[0];
      input = input.subspan(1);
      if ((what & 3) < 2) {
        input = packet(what, input);
      } else if (input.size() < 2) {
        break;
      } else if ((what & 3) == 2) {
        pass(number(input) % 4096 * dp::kTickLength);
        input = input.subspan(2);
      } else {
        change(input[0]);
        input = input.subspan(1);
      }
    }
    run_burst();
  }

  void run_out() {
    for (int n = 0; n < 8; ++n) pass(dp::kSecond);       // next hops are given up
    for (int n = 0; n < 8; ++n) pass(45 * dp::kSecond);  // beyond the longest timer
    for (const auto& worker : workers_) {
      MARGAY_CHECK(worker->flows() == 0 && worker->held() == 0);
      MARGAY_CHECK(worker->counters().audit_differences.get() == 0);
      MARGAY_CHECK(worker->counters().audit_passes.get() > 0);
    }
    for (dp::InstanceIndex i = 0; i < table_->instances.size(); ++i) {
      MARGAY_CHECK(shared_.active(i) == 0);
      MARGAY_CHECK(shared_.slots.view(i).active == 0 && shared_.provisional.view(i).active == 0);
    }
    for (const Buffer& b : buffers_) MARGAY_CHECK(b.ends == 1);
  }

 private:
  struct Buffer {
    Bytes bytes;
    int ends = 0;  // how often it came to an end
  };

  std::span<const uint8_t> packet(uint8_t what, std::span<const uint8_t> input) {
    if (input.size() < 2) return {};
    const size_t length = std::min<size_t>(number(input) % 2048u, input.size() - 2);
    const auto port = static_cast<dp::PortIndex>(what >> 2 & 1);
    const std::span<const uint8_t> frame = input.subspan(2, length);
    const bool from_kernel = (what & 0x40) != 0 && table_->ports[port].has_kernel;
    const auto worker = static_cast<WorkerIndex>(what >> 3 & 1);
    if (burst_.count > 0 && (worker != burst_worker_ || from_kernel)) run_burst();
    burst_worker_ = worker;
    Packet& p = burst_.packets[burst_.count++];
    p = make_packet(frame, port);
    if ((what & 0x20) != 0) mend_checksums({p.data, p.length});
    if (from_kernel) {
      workers_[worker]->process_from_kernel(burst_, port, *table_);
      carry_out(burst_);
      burst_.count = 0;
    } else if ((what & 0x10) == 0 || burst_.count == dp::kBurstMax) {
      run_burst();
    }
    return input.subspan(2 + length);
  }

  Packet make_packet(std::span<const uint8_t> frame, dp::PortIndex port) {
    buffers_.push_back({Bytes(kHeadroom + frame.size()), 0});
    Buffer& b = buffers_.back();
    std::copy(frame.begin(), frame.end(), b.bytes.begin() + kHeadroom);
    Packet p;
    p.data = b.bytes.data() + kHeadroom;
    p.handle = &b;
    p.length = static_cast<uint16_t>(frame.size());
    p.headroom = kHeadroom;
    p.port = port;
    return p;
  }

  void run_burst() {
    if (burst_.count > 0) process(burst_worker_, burst_);
    burst_.count = 0;
    drain_rings();
  }

  void process(WorkerIndex w, Burst& burst) {
    workers_[w]->process(burst, *table_, now_);
    carry_out(burst);
    send_own(w);
  }

  void carry_out(const Burst& burst) {
    for (uint32_t i = 0; i < burst.count; ++i) {
      const Packet& p = burst.packets[i];
      const dp::Outcome& o = burst.outcomes[i];
      check_bounds(p);
      switch (o.verdict) {
        case Verdict::kTransmit:
        case Verdict::kKernel:
          MARGAY_CHECK(o.target < table_->ports.size());
          break;
        case Verdict::kDrop:
          MARGAY_CHECK(o.reason != DropReason::kNone);
          break;
        case Verdict::kConsumed:
          break;
        case Verdict::kHeld:
          continue;
        case Verdict::kHandOver:
          MARGAY_CHECK(o.target < kWorkers && !burst.handed_over);
          rings_[o.target].push_back(p);
          continue;
      }
      ++static_cast<Buffer*>(p.handle)->ends;
    }
  }

  static void check_bounds(const Packet& p) {
    const Bytes& block = static_cast<Buffer*>(p.handle)->bytes;
    MARGAY_CHECK(p.data - p.headroom == block.data());
    MARGAY_CHECK(size_t{p.headroom} + p.length + p.tailroom == block.size());
  }

  void send_own(WorkerIndex w) {
    for (const dp::Frame& f : workers_[w]->outbox()) {
      MARGAY_CHECK(f.length >= 14 && f.length <= dp::Frame::kBytesMax);
      if (f.outcome.verdict == Verdict::kHandOver) {
        MARGAY_CHECK(f.outcome.target < kWorkers && f.outcome.target != w);
        rings_[f.outcome.target].push_back(make_packet({f.bytes.data(), f.length}, f.port));
      } else {
        MARGAY_CHECK(f.outcome.verdict == Verdict::kTransmit && f.outcome.target < table_->ports.size());
      }
    }
    workers_[w]->outbox().clear();
  }

  void drain_rings() {
    auto burst = std::make_unique<Burst>();
    burst->handed_over = true;
    for (size_t w = 0; w < kWorkers; ++w) {
      while (!rings_[w].empty()) {
        burst->count = 0;
        while (!rings_[w].empty() && burst->count < dp::kBurstMax) {
          burst->packets[burst->count++] = rings_[w].front();
          rings_[w].pop_front();
        }
        process(static_cast<WorkerIndex>(w), *burst);
      }
    }
  }

  void pass(dp::Nanoseconds time) {
    run_burst();
    const dp::Nanoseconds end = now_ + time;
    while (now_ < end) {
      now_ += std::min<dp::Nanoseconds>(end - now_, std::max(dp::kTickLength, time / 4));
      for (size_t w = 0; w < kWorkers; ++w) {
        while (workers_[w]->tick(*table_, now_)) {
        }
        while (workers_[w]->release_held(burst_, *table_, now_)) carry_out(burst_);
        send_own(static_cast<WorkerIndex>(w));
      }
      burst_.count = 0;
    }
    drain_rings();
  }

  void change(uint8_t what) {
    run_burst();
    auto next = table_->clone();
    ++next->version;
    const auto i = static_cast<dp::InstanceIndex>((what & 7) % next->instances.size());
    dp::Instance& instance = next->instances.edit(i);
    switch (what >> 3 & 7) {
      case 0:
        instance.health = dp::HealthState::kHealthy;
        break;
      case 1:
        instance.health = dp::HealthState::kDegraded;
        break;
      case 2:
        instance.health = dp::HealthState::kUnhealthy;
        break;
      case 3:
        instance.admin = dp::Admin::kEnabled;
        break;
      case 4:
        instance.admin = dp::Admin::kDisabled;
        break;
      case 5:
        instance.admin = dp::Admin::kDraining;
        instance.drain_deadline = dp::to_tick(now_ + 5 * dp::kSecond);
        break;
      case 6:
        next->forwarding = !next->forwarding;
        break;
      case 7:
        shared_.set_limit(*table_, i, what >> 6);
        break;
    }
    table_ = std::move(next);
  }

  dp::Nanoseconds now_ = 100 * dp::kSecond;
  std::unique_ptr<dp::SiteTable> table_ = [] {
    const MacAddress macs[] = {kPort0, kPort1};
    return dp::SiteTable::build(site(), macs);
  }();
  dp::TestArena arena_{1 << 20};
  dp::SharedState shared_;
  std::array<std::unique_ptr<dp::FastPath>, kWorkers> workers_;
  std::array<std::deque<Packet>, kWorkers> rings_;
  std::deque<Buffer> buffers_;
  Burst burst_;
  WorkerIndex burst_worker_ = 0;
};

}  // namespace
}  // namespace margay::test

FUZZ_TARGET(fast_path) {
  if (size > 16384) return 0;
  const auto history = std::make_unique<margay::test::History>();
  history->play({data, size});
  history->run_out();
  return 0;
}
