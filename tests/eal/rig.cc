// SPDX-License-Identifier: Apache-2.0
#include "tests/eal/rig.h"

#include <cstring>

#include <gtest/gtest.h>
#include <rte_eth_ring.h>

#include "common/check.h"

namespace margay::dp {
namespace {

rte_ring* new_ring(unsigned size) {
  static int number = 0;
  rte_ring* ring = rte_ring_create(("rig" + std::to_string(number++)).c_str(), size, 0, 0);
  MARGAY_CHECK(ring != nullptr);
  return ring;
}

Result<std::unique_ptr<Ports>> open_started(const SiteConfig& config) {
  auto ports = Ports::open(config, plan_buffers(config));
  if (!ports) return ports.error();
  if (auto started = (*ports)->start(); !started) return started.error();
  return ports;
}

}  // namespace

Rig::Rig(SiteConfig config, uint16_t queues, unsigned ring_size) : config_(std::move(config)) {
  static int number = 0;
  for (PortConfig& port : config_.ports) {
    Rings rings;
    for (uint16_t q = 0; q < queues; ++q) {
      rings.rx.push_back(new_ring(ring_size));
      rings.tx.push_back(new_ring(ring_size));
    }
    const std::string name = "rig" + std::to_string(number++);
    MARGAY_CHECK(rte_eth_from_rings(name.c_str(), rings.rx.data(), queues, rings.tx.data(), queues, 0) >= 0);
    port.device = "net_ring_" + name;
    rings_.push_back(rings);
  }
  auto ports = open_started(config_);
  if (!ports) std::fprintf(stderr, "rig: %s\n", ports.error().message.c_str());
  MARGAY_CHECK(ports.has_value());
  ports_ = std::move(*ports);
}

Rig::~Rig() {
  const auto drain = [](rte_ring* ring) { FreeRing()(ring); };
  std::vector<rte_ring*> all;
  for (const Rings& rings : rings_) {
    for (rte_ring* ring : rings.rx) all.push_back(ring);
    for (rte_ring* ring : rings.tx) all.push_back(ring);
  }
  for (rte_ring* ring : all) drain(ring);
}

rte_mbuf* Rig::make(const test::Bytes& frame) {
  rte_mbuf* m = rte_pktmbuf_alloc(pool());
  MARGAY_CHECK(m != nullptr);
  std::memcpy(rte_pktmbuf_append(m, static_cast<uint16_t>(frame.size())), frame.data(), frame.size());
  return m;
}

void Rig::arrive(PortIndex port, uint16_t queue, rte_mbuf* packet) {
  MARGAY_CHECK(rte_ring_enqueue(rings_[port].rx[queue], packet) == 0);
}

std::vector<test::Bytes> Rig::sent(PortIndex port, uint16_t queue) {
  std::vector<test::Bytes> frames;
  void* packet;
  while (rte_ring_dequeue(rings_[port].tx[queue], &packet) == 0) {
    auto* m = static_cast<rte_mbuf*>(packet);
    const auto* data = rte_pktmbuf_mtod(m, const uint8_t*);
    EXPECT_EQ(rte_pktmbuf_pkt_len(m), rte_pktmbuf_data_len(m));
    frames.emplace_back(data, data + rte_pktmbuf_data_len(m));
    rte_pktmbuf_free(m);
  }
  return frames;
}

SiteConfig two_port_site(uint16_t workers) {
  SiteConfig config;
  config.file = "test";
  config.site = "test";
  config.workers = workers;
  config.flows = 4096;
  for (const char* name : {"net0", "net1"}) {
    PortConfig port;
    port.name = name;
    port.mac = test::mac(config.ports.empty() ? "02:00:00:00:0f:00" : "02:00:00:00:0f:01");
    config.ports.push_back(port);
  }
  config.ports[0].addresses = {Prefix::parse("192.0.2.2/24").value()};
  config.ports[1].addresses = {Prefix::parse("10.1.0.2/24").value()};
  config.ports[0].gateways = {test::ip("192.0.2.1")};
  config.ports[0].neighbours = {{test::ip("192.0.2.1"), test::mac("02:00:00:00:00:01")}};
  config.forwarders.emplace_back().any = true;
  SciConfig sci;
  sci.csci_id = "192.0.2.10:80";
  sci.endpoints = {Endpoint{test::ip("192.0.2.10"), 80, Protocol::kTcp}};
  InstanceConfig& instance = sci.instances.emplace_back();
  instance.id = "si-1";
  instance.address = test::ip("10.1.0.11");
  instance.port = 8080;
  instance.mac = test::mac("02:00:00:00:01:11");
  instance.max_sessions = 4096;
  config.scis = {sci};
  return config;
}

}  // namespace margay::dp
