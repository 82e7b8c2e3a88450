// SPDX-License-Identifier: Apache-2.0
#include "tests/support/cli_plane.h"

#include <cstring>

#include "dataplane/cli/commands.h"

namespace margay::test {
namespace {

dp::SciConfig sci(const std::string& name, Protocol protocol, std::vector<dp::InstanceConfig> instances) {
  const AddressPort shown = *AddressPort::parse(name);
  dp::SciConfig s;
  s.csci_id = name;
  s.cs_id = "service";
  s.endpoints = {{shown.address, shown.port, protocol}};
  s.instances = std::move(instances);
  return s;
}

dp::InstanceConfig instance(const char* id, const char* address, uint32_t max_sessions) {
  const AddressPort at = *AddressPort::parse(address);
  dp::InstanceConfig i;
  i.id = id;
  i.address = at.address;
  i.port = at.port;
  i.mac = mac("02:00:00:00:01:0b");
  i.max_sessions = max_sessions;
  return i;
}

std::unique_ptr<dp::SiteTable> build(const dp::SiteConfig& site, bool waiting) {
  const MacAddress macs[] = {mac("02:00:00:00:0f:00"), mac("02:00:00:00:0f:01")};
  return waiting ? dp::SiteTable::waiting_for_control(site, macs) : dp::SiteTable::build(site, macs);
}

dp::FastPathConfig fast_path_config(size_t self) {
  dp::FastPathConfig c;
  c.self = static_cast<dp::WorkerIndex>(self);
  c.workers = CliPlane::kWorkers;
  c.flows = CliPlane::kFlows;
  for (size_t i = 0; i < c.secret.words.size(); ++i) c.secret.words[i] = 0x9e3779b97f4a7c15u * (i + 1);
  return c;
}

}  // namespace

dp::SiteConfig small_site() {
  dp::SiteConfig site;
  site.file = "site.yaml";
  site.site = "edge-1";
  site.workers = CliPlane::kWorkers;
  site.flows = CliPlane::kWorkers * CliPlane::kFlows;
  site.ports.resize(2);
  site.ports[0].name = "net0";
  site.ports[0].device = "net_null0";
  site.ports[0].addresses = {*Prefix::parse("192.0.2.2/24"), *Prefix::parse("2001:db8::2/64")};
  site.ports[0].gateways = {ip("192.0.2.1"), ip("2001:db8::1")};
  site.ports[0].neighbours = {{ip("192.0.2.1"), mac("02:00:00:00:00:01")}};
  site.ports[1].name = "odd port";
  site.ports[1].device = "net_null1";
  site.ports[1].vlan = 100;
  site.ports[1].addresses = {*Prefix::parse("10.1.0.2/24"), *Prefix::parse("2001:db8:1::2/64")};
  dp::ForwarderConfig forwarder;
  forwarder.port = 0;
  forwarder.mac = mac("02:00:00:00:00:01");
  site.forwarders = {forwarder};
  site.scis = {sci("192.0.2.10:80", Protocol::kTcp,
                   {instance("si-1", "10.1.0.11:8080", 200), instance("si-2", "10.1.0.12:8080", 100)}),
               sci("[2001:db8::10]:53", Protocol::kUdp, {instance("si-1", "[2001:db8:1::11]:5353", 50)})};
  return site;
}

dp::PortInfo FakePorts::info(dp::PortIndex port) const {
  dp::PortInfo info;
  info.name = port == 0 ? "net0" : "odd port";
  info.device = port == 0 ? "net_null0" : "net_null1";
  info.driver = "net_null";
  info.mac = mac(port == 0 ? "02:00:00:00:0f:00" : "02:00:00:00:0f:01");
  info.link_up = port == 0;
  info.link_mbps = port == 0 ? 10'000 : 0;
  info.mtu = 1500;
  info.rx_queues = info.tx_queues = 2;
  return info;
}

dp::PortStats FakePorts::stats(dp::PortIndex port) const {
  if (port == 1) return {};
  return {.rx_packets = 1,
          .rx_bytes = 2,
          .rx_missed = 3,
          .rx_errors = 4,
          .rx_no_buffer = 5,
          .tx_packets = 6,
          .tx_bytes = 7,
          .tx_errors = 8};
}

std::vector<std::pair<std::string, uint64_t>> FakePorts::xstats(dp::PortIndex port) const {
  if (port == 1) return {};
  return {{"rx_good_packets", 11}, {"tx_good_packets", 12}};
}

Result<void> FakePorts::clear_stats(dp::PortIndex port) {
  if (fails) return Error{"the driver refuses"};
  cleared[port] = true;
  return {};
}

CliPlane::CliPlane(bool waiting)
    : arena_(size_t{4} << 20),
      mailboxes_(kWorkers),
      shared(arena_, kWorkers, 8, 2),
      plane(small_site(), build(small_site(), waiting), shared, mailboxes_, ports),
      executor(table, control_, [this] { plane.begin_turn(); }) {
  plane.now = [] { return kNow; };
  shared.open_instances(plane.table());
  for (size_t w = 0; w < kWorkers; ++w) {
    fast_paths.push_back(std::make_unique<dp::FastPath>(fast_path_config(w), shared, arena_, kNow));
  }
  dp::register_commands(table, plane);
}

CliPlane::~CliPlane() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
  UrcuQsbr::drain();
}

std::string CliPlane::run(std::string_view line, bool json) {
  std::string out;
  const Answer a = executor.run(line, json, [&](std::string_view piece) {
    out += piece;
    return true;
  });
  if (!a.result) out += std::to_string(a.result.error().position) + ": " + a.result.error().message;
  return out;
}

size_t CliPlane::receive(dp::PortIndex port, const PacketBuilder& frame) {
  for (size_t w = 0;;) {
    alignas(64) std::array<uint8_t, 4096> buffer{};
    const Bytes bytes = frame.build();
    dp::Burst burst;
    std::memcpy(&buffer[128], bytes.data(), bytes.size());
    burst.packets[0] = {&buffer[128], nullptr, static_cast<uint16_t>(bytes.size()), 128, 256, port};
    burst.count = 1;
    burst.handed_over = w != 0;
    fast_paths[w]->process(burst, plane.table(), kNow);
    fast_paths[w]->outbox().clear();
    if (burst.outcomes[0].verdict != dp::Verdict::kHandOver) return w;
    w = burst.outcomes[0].target;
  }
}

void CliPlane::serve(size_t silent, std::function<void()> between) {
  thread_ = std::thread([this, silent, work = std::move(between)] { serve_all(silent, work); });
}

void CliPlane::serve_all(size_t silent, const std::function<void()>& between) {
  UrcuQsbr::register_reader();
  while (!stop_.load(std::memory_order_relaxed)) {
    const dp::SiteTable& current = *plane.table_pointer().read();
    for (size_t w = 0; w < kWorkers; ++w) {
      if (w != silent) mailboxes_[w].serve(*fast_paths[w], current);
    }
    between();
    UrcuQsbr::quiescent();
    std::this_thread::yield();
  }
  UrcuQsbr::unregister_reader();
}

}  // namespace margay::test
