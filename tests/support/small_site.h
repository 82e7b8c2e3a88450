// SPDX-License-Identifier: Apache-2.0
#pragma once

// A site of one SCI with some instances and one worker's fast path, for tests of what happens over time: one packet
// at a time goes in, the clock is the test's own. Test code only, one thread.

#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "dataplane/core/bindings_image.h"
#include "dataplane/core/fast_path.h"
#include "tests/support/packet_builder.h"
#include "tests/support/test_arena.h"

namespace margay::test {

inline const MacAddress kSitePort0 = mac("02:00:00:00:0f:00"), kSitePort1 = mac("02:00:00:00:0f:01");
inline const MacAddress kSiteRouter = mac("02:00:00:00:00:01");

// SCI 192.0.2.10:80, instances 10.1.0.11.. port 8080 with `max_sessions` slots each; next hops known.
inline dp::SiteConfig small_site(size_t instances, uint32_t max_sessions,
                                 dp::Balance balance = dp::Balance::kRoundRobin, dp::Mode mode = dp::Mode::kNat,
                                 Protocol protocol = Protocol::kTcp) {
  dp::SiteConfig site;
  site.forwarders.push_back({.any = true, .port = dp::kNoPort, .mac = {}, .vlan = {}});
  dp::PortConfig clients, servers;
  clients.name = "net0";
  clients.addresses = {*Prefix::parse("192.0.2.2/24")};
  clients.gateways = {ip("192.0.2.1")};
  clients.neighbours = {{ip("192.0.2.1"), kSiteRouter}};
  servers.name = "net1";
  servers.addresses = {*Prefix::parse("10.1.0.2/16")};
  site.ports = {clients, servers};
  dp::SciConfig sci;
  sci.csci_id = "192.0.2.10:80";
  sci.cs_id = "web";
  sci.endpoints = {{ip("192.0.2.10"), 80, protocol}};
  sci.mode = mode;
  sci.balance = balance;
  for (size_t i = 0; i < instances; ++i) {
    dp::InstanceConfig instance;
    instance.id = "si-" + std::to_string(i + 1);
    instance.address = IpAddress::v4(to_wire32(0x0a01000bu + static_cast<uint32_t>(i)));
    instance.port = mode == dp::Mode::kNat ? 8080 : 80;
    instance.mac = MacAddress{{0x02, 0, 0, 1, 0, static_cast<uint8_t>(i + 1)}};
    instance.max_sessions = max_sessions;
    sci.instances.push_back(instance);
  }
  site.scis = {sci};
  return site;
}

inline constexpr const char* kSci = "192.0.2.10:80";

// One client of many. REQUIRES: n < 63750.
inline std::string client(unsigned n) {
  return "198.51." + std::to_string(n / 250) + "." + std::to_string(n % 250 + 1) + ":40000";
}
inline PacketBuilder from_client(unsigned n, unsigned flags, uint32_t seq, uint32_t ack = 0) {
  return tcp(client(n), kSci).flags(flags).seq(seq).ack(ack).ether(kSiteRouter, kSitePort0);
}

class SmallSite {
 public:
  // With an image, bindings lie in there. REQUIRES: as many workers and flows as it has.
  explicit SmallSite(const dp::SiteConfig& site, uint32_t flows = 256, dp::WorkerIndex workers = 1,
                     const dp::BindingsImage* image = nullptr, dp::Nanoseconds start = 1000 * dp::kSecond)
      : arena_(size_t{image != nullptr ? 16u : 64u} << 20),
        shared(arena_, workers, std::max<size_t>(64, site.scis[0].instances.size()), site.scis.size()),
        now(start) {
    const MacAddress macs[] = {kSitePort0, kSitePort1};
    table = dp::SiteTable::build(site, macs);
    shared.open_instances(*table);
    for (dp::WorkerIndex w = 0; w < workers; ++w) {
      dp::FastPathConfig config;
      config.self = w;
      config.workers = workers;
      config.flows = flows;
      config.secret = secret();
      if (image != nullptr) config.entries = image->entries(w);
      fast_paths.push_back(std::make_unique<dp::FastPath>(config, shared, arena_, now));
    }
  }

  static dp::HashSecret secret() {
    dp::HashSecret secret;
    for (size_t i = 0; i < secret.words.size(); ++i) secret.words[i] = 0x9e3779b97f4a7c15u * (i + 1);
    return secret;
  }

  dp::FastPath& worker(dp::WorkerIndex w = 0) { return *fast_paths[w]; }
  uint64_t active(dp::InstanceIndex i) const { return shared.active(i); }
  dp::SlotView slots(dp::InstanceIndex i) const { return shared.slots.view(i); }
  uint64_t ended(dp::InstanceIndex i, EndReason reason) const {
    return shared.instance_counters[i].ended[static_cast<size_t>(reason)].get();
  }

  // One packet into a worker; what came of it stands in `outcome`, `sent` and `trace`. A hand-over is followed.
  void send(dp::PortIndex port, const PacketBuilder& packet, dp::WorkerIndex w = 0) {
    const Bytes bytes = packet.build();
    buffers_.emplace_back(2048);
    burst_.count = 1;
    burst_.handed_over = false;
    uint8_t* data = buffers_.back().data() + 128;
    std::memcpy(data, bytes.data(), bytes.size());
    burst_.packets[0] = {
        data, nullptr, static_cast<uint16_t>(bytes.size()), 128, static_cast<uint16_t>(2048 - 128 - bytes.size()),
        port};
    worker(w).process(burst_, *table, now);
    if (burst_.outcomes[0].verdict == dp::Verdict::kHandOver) {
      w = burst_.outcomes[0].target;
      burst_.handed_over = true;
      worker(w).process(burst_, *table, now);
    }
    sent.assign(burst_.packets[0].data, burst_.packets[0].data + burst_.packets[0].length);
    trace = worker(w).trace(0);
    outcome = burst_.outcomes[0];
  }

  // Lets time pass in steps of a tick, timers and all.
  void pass(dp::Nanoseconds time) {
    for (const dp::Nanoseconds end = now + time; now < end;) {
      now += dp::kTickLength;
      for (auto& f : fast_paths) {
        while (f->tick(*table, now)) {
        }
        while (f->release_held(burst_, *table, now)) {
        }
      }
    }
  }

  // Frames the fast path made itself, taken out.
  std::vector<dp::Frame> own_frames(dp::WorkerIndex w = 0) {
    std::vector<dp::Frame> frames(worker(w).outbox().begin(), worker(w).outbox().end());
    worker(w).outbox().clear();
    return frames;
  }

  // Whether everything has ended: no binding, no slot, ledger whole, audit without a difference.
  bool empty() const {
    for (const auto& f : fast_paths) {
      if (f->flows() != 0 || shared.worker_counters[f->self()].audit_differences.get() != 0) return false;
    }
    for (dp::InstanceIndex i = 0; i < table->instances.size(); ++i) {
      const dp::SlotView s = slots(i), p = shared.provisional.view(i);
      if (active(i) != 0 || s.active != 0 || s.over != 0 || p.active != 0) return false;
    }
    return true;
  }

 private:
  dp::TestArena arena_;
  std::deque<Bytes> buffers_;  // held packets stay where they are
  dp::Burst burst_;

 public:
  dp::SharedState shared;
  std::unique_ptr<dp::SiteTable> table;
  std::vector<std::unique_ptr<dp::FastPath>> fast_paths;
  dp::Nanoseconds now;
  dp::Outcome outcome;
  Bytes sent;
  dp::PacketTrace trace;
};

}  // namespace margay::test
