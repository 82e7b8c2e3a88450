// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dpdk/device.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>
#include <rte_errno.h>
#include <spdlog/spdlog.h>

#include "dataplane/dpdk/kernel_interface.h"

namespace margay::dp {
namespace {

// Drivers over sockets that are bound to an interface; its name may pass to another interface, its index does not.
unsigned interface_under(const rte_eth_dev_info& info) {
  const std::string_view driver = info.driver_name;
  return driver == "net_af_packet" || driver == "net_af_xdp" ? info.if_index : 0;
}

}  // namespace

Result<Device> Device::find(const std::string& name) {
  uint16_t id;
  if (rte_eth_dev_get_port_by_name(name.c_str(), &id) != 0) {
    return Error{fmt::format("DPDK has no device {}: no driver took it, or it does not exist", name)};
  }
  return Device(id, name);
}

Device::~Device() {
  if (id_ == kNoDevice) return;
  rte_eth_dev_stop(id_);
  rte_eth_dev_close(id_);
}

int Device::socket() const { return std::max(0, rte_eth_dev_socket_id(id_)); }

Error Device::failed(const std::string& what, int error) const {
  return Error{fmt::format("device {}: {}: {}", name_, what, rte_strerror(-error))};
}

Result<void> Device::configure(const DeviceSetup& setup) {
  rte_eth_dev_info info;
  if (const int error = rte_eth_dev_info_get(id_, &info); error != 0) return failed("no information", error);
  if (setup.mtu < info.min_mtu || setup.mtu > info.max_mtu) {
    return Error{fmt::format("device {}: mtu {} is not one of {} to {}", name_, setup.mtu, info.min_mtu, info.max_mtu)};
  }
  interface_ = interface_under(info);
  rx_queues_ = std::min(setup.queues, info.max_rx_queues);
  tx_queues_ = std::min(setup.queues, info.max_tx_queues);
  rte_eth_conf conf{};
  conf.rxmode.mtu = setup.mtu;
  if (rx_queues_ > 1 && info.flow_type_rss_offloads != 0) {
    conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
    conf.rx_adv_conf.rss_conf.rss_hf =
        info.flow_type_rss_offloads & (RTE_ETH_RSS_IP | RTE_ETH_RSS_TCP | RTE_ETH_RSS_UDP);
  }
  if (setup.one_pool) conf.txmode.offloads = info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE;
  if (const int error = rte_eth_dev_configure(id_, rx_queues_, tx_queues_, &conf); error != 0) {
    return failed(fmt::format("does not take {} RX and {} TX queues with mtu {}", rx_queues_, tx_queues_, setup.mtu),
                  error);
  }
  if (auto mtu = set_mtu(setup.mtu); !mtu) return mtu;
  info.default_txconf.offloads = conf.txmode.offloads;
  return set_up_queues(setup, info);
}

Result<void> Device::set_mtu(uint16_t mtu) {
  const int error = rte_eth_dev_set_mtu(id_, mtu);
  if (error == 0 || error == -ENOTSUP) return {};
  return failed(fmt::format("does not take mtu {}", mtu), error);
}

Result<void> Device::set_up_queues(const DeviceSetup& setup, const rte_eth_dev_info& info) {
  uint16_t rx = setup.rx_descriptors, tx = setup.tx_descriptors;
  if (const int error = rte_eth_dev_adjust_nb_rx_tx_desc(id_, &rx, &tx); error != 0) {
    return failed("no descriptor counts", error);
  }
  const auto node = static_cast<unsigned>(socket());
  for (uint16_t q = 0; q < rx_queues_; ++q) {
    const int error = rte_eth_rx_queue_setup(id_, q, rx, node, &info.default_rxconf, setup.pool);
    if (error != 0) return failed(fmt::format("RX queue {} with {} descriptors", q, rx), error);
  }
  for (uint16_t q = 0; q < tx_queues_; ++q) {
    const int error = rte_eth_tx_queue_setup(id_, q, tx, node, &info.default_txconf);
    if (error != 0) return failed(fmt::format("TX queue {} with {} descriptors", q, tx), error);
  }
  return {};
}

Result<void> Device::use_mac(const MacAddress& wanted) {
  if (mac() == wanted) return {};
  rte_ether_addr address;
  std::memcpy(address.addr_bytes, wanted.bytes.data(), sizeof address.addr_bytes);
  if (rte_eth_dev_default_mac_addr_set(id_, &address) == 0 && mac() == wanted) return {};
  spdlog::info("msg=\"device does not take the MAC address, promiscuous instead\" device={} mac={}", name_,
               wanted.format());
  const int error = rte_eth_promiscuous_enable(id_);
  if (error == 0 || error == -ENOTSUP) return {};  // software devices without it hear everything
  return failed("takes neither a MAC address nor promiscuous mode", error);
}

Result<void> Device::start() {
  if (const int error = rte_eth_dev_start(id_); error != 0) return failed("does not start", error);
  // Neighbour Discovery arrives on multicast addresses (RFC 4861 §2.3).
  if (const int error = rte_eth_allmulticast_enable(id_); error != 0 && error != -ENOTSUP) {
    return failed("does not hear multicast", error);
  }
  return {};
}

MacAddress Device::mac() const {
  rte_ether_addr address{};
  rte_eth_macaddr_get(id_, &address);
  MacAddress mac;
  std::memcpy(mac.bytes.data(), address.addr_bytes, mac.bytes.size());
  return mac;
}

bool Device::link_up() const {
  if (interface_ != 0) {
    const InterfaceState state = interface_gone_ ? InterfaceState::kGone : interface_state(interface_);
    interface_gone_ = state == InterfaceState::kGone;
    return state == InterfaceState::kUp;
  }
  rte_eth_link link{};
  return rte_eth_link_get_nowait(id_, &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
}

void Device::describe(PortInfo& info) const {
  rte_eth_dev_info device;
  if (rte_eth_dev_info_get(id_, &device) == 0) info.driver = device.driver_name;
  info.link_up = link_up();
  rte_eth_link link{};
  if (rte_eth_link_get_nowait(id_, &link) == 0) {
    const bool known = link.link_speed != RTE_ETH_SPEED_NUM_UNKNOWN;
    info.link_mbps = known ? link.link_speed : 0;
  }
  rte_eth_dev_get_mtu(id_, &info.mtu);
  info.rx_queues = rx_queues_;
  info.tx_queues = tx_queues_;
  info.numa_node = rte_eth_dev_socket_id(id_);
  info.promiscuous = rte_eth_promiscuous_get(id_) == 1;
}

PortStats Device::stats() const {
  rte_eth_stats raw{};
  rte_eth_stats_get(id_, &raw);
  return {.rx_packets = raw.ipackets,
          .rx_bytes = raw.ibytes,
          .rx_missed = raw.imissed,
          .rx_errors = raw.ierrors,
          .rx_no_buffer = raw.rx_nombuf,
          .tx_packets = raw.opackets,
          .tx_bytes = raw.obytes,
          .tx_errors = raw.oerrors};
}

std::vector<std::pair<std::string, uint64_t>> Device::xstats() const {
  const int count = rte_eth_xstats_get_names(id_, nullptr, 0);
  if (count <= 0) return {};
  const auto size = static_cast<unsigned>(count);
  std::vector<rte_eth_xstat_name> names(size);
  std::vector<rte_eth_xstat> values(size);
  if (rte_eth_xstats_get_names(id_, names.data(), size) != count) return {};
  if (rte_eth_xstats_get(id_, values.data(), size) != count) return {};
  std::vector<std::pair<std::string, uint64_t>> all;
  for (const rte_eth_xstat& value : values) all.emplace_back(names[value.id].name, value.value);
  return all;
}

Result<void> Device::clear_stats() {
  if (const int error = rte_eth_stats_reset(id_); error != 0) return failed("statistics cannot be cleared", error);
  const int error = rte_eth_xstats_reset(id_);
  if (error != 0 && error != -ENOTSUP) return failed("extended statistics cannot be cleared", error);
  return {};
}

}  // namespace margay::dp
