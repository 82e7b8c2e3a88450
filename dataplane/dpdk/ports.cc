// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dpdk/ports.h"

#include <set>

#include <fmt/format.h>
#include <rte_errno.h>
#include <spdlog/spdlog.h>

#include "dataplane/dpdk/eal_plan.h"
#include "dataplane/dpdk/kernel_interface.h"
#include "dataplane/dpdk/wiring.h"

namespace margay::dp {
namespace {

static_assert(RTE_PKTMBUF_HEADROOM == 128, "buffer_plan.cc counts on it");

// Many producers, one consumer. RTS: a producer that loses its core while it enqueues holds up no other one.
Result<RingPointer> make_ring(const std::string& name, int socket) {
  rte_ring* ring = rte_ring_create(name.c_str(), kRingPackets, socket, RING_F_MP_RTS_ENQ | RING_F_SC_DEQ);
  if (ring == nullptr) return Error{fmt::format("no memory for ring {}: {}", name, rte_strerror(rte_errno))};
  return RingPointer(ring);
}

rte_mempool* pool_on(const Wiring& wiring, int socket) {
  for (const auto& [node, pool] : wiring.pools) {
    if (node == socket) return pool.get();
  }
  return wiring.pools.front().second.get();
}

// A memif queue that the peer does not have takes nothing and does not say so; the first one is always there.
uint16_t queues_wanted(const PortConfig& config, uint16_t workers) {
  return device_name(config).starts_with("net_memif") ? uint16_t{1} : workers;
}

Result<void> add_transmit_rings(Link& link, const std::string& name, uint16_t workers) {
  if (link.device.tx_queues() == 0) return Error{fmt::format("{}: the device has no TX queue", name)};
  if (link.device.tx_queues() >= workers) return {};
  for (uint16_t q = 0; q < link.device.tx_queues(); ++q) {
    auto ring = make_ring(fmt::format("tx_{}_{}", name, q), link.device.socket());
    if (!ring) return ring.error();
    link.transmit_rings.push_back(std::move(*ring));
  }
  return {};
}

}  // namespace

Ports::Ports(const SiteConfig& config)
    : config_(config.ports),
      links_up_(config.ports.size(), true),
      workers_(config.workers),
      wiring_(std::make_unique<Wiring>()) {
  wiring_->dead = std::vector<std::atomic<bool>>(config.ports.size());
}

Ports::~Ports() {
  // Devices give their buffers back when they close, rings when they are freed, and only then may pools go.
  wiring_->ports.clear();
  wiring_->kernels.clear();
  wiring_->hand_over.clear();
}

Result<std::unique_ptr<Ports>> Ports::open(const SiteConfig& config, const BufferPlan& buffers) {
  auto ports = std::unique_ptr<Ports>(new Ports(config));
  Wiring& wiring = *ports->wiring_;
  for (const PortConfig& port : config.ports) {
    auto device = Device::find(device_name(port));
    if (!device) return in("port " + port.name, device.error());
    wiring.ports.push_back(Link{std::move(*device), {}});
  }
  if (auto pools = ports->make_pools(buffers); !pools) return pools.error();
  for (size_t i = 0; i < config.ports.size(); ++i) {
    if (auto done = ports->configure_port(i); !done) return in("port " + config.ports[i].name, done.error());
    if (auto done = ports->configure_kernel(i); !done) return in("port " + config.ports[i].name, done.error());
  }
  if (auto rings = ports->make_transmit_rings(); !rings) return rings.error();
  if (auto rings = ports->make_hand_over_rings(); !rings) return rings.error();
  return ports;
}

Result<void> Ports::make_pools(const BufferPlan& buffers) {
  std::set<int> sockets;
  for (const Link& link : wiring_->ports) sockets.insert(link.device.socket());
  for (const int socket : sockets) {
    const std::string name = fmt::format("packets_{}", socket);
    rte_mempool* pool = rte_pktmbuf_pool_create(name.c_str(), buffers.count, kCachedPackets, 0, buffers.room, socket);
    if (pool == nullptr) {
      return Error{fmt::format("no memory for {} packet buffers of {} bytes ({} MiB) on NUMA node {}: {}",
                               buffers.count, buffers.room, buffers.bytes() >> 20, socket, rte_strerror(rte_errno))};
    }
    wiring_->pools.emplace_back(socket, PoolPointer(pool));
  }
  return {};
}

Result<void> Ports::configure_port(size_t port) {
  Device& device = wiring_->ports[port].device;
  const PortConfig& config = config_[port];
  if (config.mtu > kMtuMax) return Error{fmt::format("mtu {} is above {}", config.mtu, kMtuMax)};
  const DeviceSetup setup{.mtu = config.mtu,
                          .queues = queues_wanted(config, workers_),
                          .rx_descriptors = kRxDescriptors,
                          .tx_descriptors = kTxDescriptors,
                          .pool = pool_on(*wiring_, device.socket()),
                          .one_pool = wiring_->pools.size() == 1};
  if (auto done = device.configure(setup); !done) return done;
  if (config.mac) return device.use_mac(*config.mac);
  if (device.mac().is_zero()) return Error{"the device has no MAC address of its own: give the port a `mac:`"};
  return {};
}

Result<void> Ports::configure_kernel(size_t port) {
  const PortConfig& config = config_[port];
  wiring_->kernels.emplace_back();
  if (config.kernel.empty()) return {};
  auto device = Device::find(kernel_device_name(static_cast<PortIndex>(port)));
  if (!device) return in("kernel interface " + config.kernel, device.error());
  Device& tap = wiring_->kernels.back().emplace(Link{std::move(*device), {}}).device;
  const DeviceSetup setup{.mtu = config.mtu,
                          .queues = workers_,
                          .rx_descriptors = kKernelDescriptors,
                          .tx_descriptors = kKernelDescriptors,
                          .pool = pool_on(*wiring_, tap.socket()),
                          .one_pool = wiring_->pools.size() == 1};
  if (auto done = tap.configure(setup); !done) return in("kernel interface " + config.kernel, done.error());
  return tap.use_mac(macs()[port]);
}

Result<void> Ports::make_transmit_rings() {
  for (size_t i = 0; i < config_.size(); ++i) {
    if (auto done = add_transmit_rings(wiring_->ports[i], fmt::format("port{}", i), workers_); !done) {
      return in("port " + config_[i].name, done.error());
    }
    if (!wiring_->kernels[i]) continue;
    if (auto done = add_transmit_rings(*wiring_->kernels[i], fmt::format("kernel{}", i), workers_); !done) {
      return in("port " + config_[i].name, done.error());
    }
  }
  return {};
}

Result<void> Ports::make_hand_over_rings() {
  for (uint16_t w = 0; w < workers_; ++w) {
    auto ring = make_ring(fmt::format("worker{}", w), wiring_->ports.front().device.socket());
    if (!ring) return ring.error();
    wiring_->hand_over.push_back(std::move(*ring));
  }
  return {};
}

Result<void> Ports::start() {
  for (size_t i = 0; i < config_.size(); ++i) {
    const auto index = static_cast<PortIndex>(i);
    if (auto done = wiring_->ports[i].device.start(); !done) return in("port " + config_[i].name, done.error());
    if (wiring_->kernels[i]) {
      if (auto done = wiring_->kernels[i]->device.start(); !done) return in("port " + config_[i].name, done.error());
      set_up_kernel_interface(config_[i], macs()[i]);
    }
    const PortInfo port = info(index);
    spdlog::info(
        "msg=\"port ready\" port={} device={} driver={} mac={} mtu={} rx_queues={} tx_queues={} link={} kernel={}",
        port.name, device_name(config_[i]), port.driver, port.mac.format(), port.mtu, port.rx_queues, port.tx_queues,
        port.link_up ? "up" : "down", port.kernel.empty() ? "none" : port.kernel);
  }
  return {};
}

std::vector<MacAddress> Ports::macs() const {
  std::vector<MacAddress> macs;
  for (size_t i = 0; i < config_.size(); ++i) {
    macs.push_back(config_[i].mac ? *config_[i].mac : wiring_->ports[i].device.mac());
  }
  return macs;
}

PortInfo Ports::info(PortIndex port) const {
  PortInfo info;
  info.name = config_[port].name;
  info.device = config_[port].device;
  info.kernel = config_[port].kernel;
  wiring_->ports[port].device.describe(info);
  info.mac = macs()[port];
  return info;
}

PortStats Ports::stats(PortIndex port) const { return wiring_->ports[port].device.stats(); }

std::vector<std::pair<std::string, uint64_t>> Ports::xstats(PortIndex port) const {
  return wiring_->ports[port].device.xstats();
}

Result<void> Ports::clear_stats(PortIndex port) { return wiring_->ports[port].device.clear_stats(); }

std::vector<LinkChange> Ports::follow_links() {
  std::vector<LinkChange> changes;
  for (size_t p = 0; p < links_up_.size(); ++p) {
    const Device& device = wiring_->ports[p].device;
    const bool up = device.link_up();
    if (up == links_up_[p]) continue;
    links_up_[p] = up;
    wiring_->dead[p].store(!up && device.loses_when_down(), std::memory_order_relaxed);
    changes.push_back({static_cast<PortIndex>(p), up});
  }
  return changes;
}

}  // namespace margay::dp
