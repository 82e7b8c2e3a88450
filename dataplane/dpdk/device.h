// SPDX-License-Identifier: Apache-2.0
#pragma once

// One DPDK device, a port's or a kernel interface's, from EAL's probing to its end. Internal to dataplane/dpdk.
// Control thread, except that workers use id() and the queue counts, which do not change after configure().

#include <string>
#include <utility>
#include <vector>

#include <rte_ethdev.h>

#include "common/net.h"
#include "common/result.h"
#include "dataplane/data_plane.h"

namespace margay::dp {

struct DeviceSetup {
  uint16_t mtu = 1500;
  uint16_t queues = 1;  // wanted of each kind; the device may have fewer
  uint16_t rx_descriptors = 0, tx_descriptors = 0;
  rte_mempool* pool = nullptr;
  bool one_pool = true;  // every buffer of the process comes from `pool`
};

class Device {
 public:
  // The device that EAL knows by this name. It is stopped and closed with the object.
  static Result<Device> find(const std::string& name);
  Device(Device&& other) noexcept
      : id_(std::exchange(other.id_, kNoDevice)),
        rx_queues_(other.rx_queues_),
        tx_queues_(other.tx_queues_),
        interface_(other.interface_),
        name_(std::move(other.name_)) {}
  Device& operator=(Device&&) = delete;
  ~Device();

  int socket() const;
  Result<void> configure(const DeviceSetup& setup);
  // Takes the address, or else hears every address.
  Result<void> use_mac(const MacAddress& mac);
  Result<void> start();

  uint16_t id() const { return id_; }
  uint16_t rx_queues() const { return rx_queues_; }
  uint16_t tx_queues() const { return tx_queues_; }

  MacAddress mac() const;
  bool link_up() const;
  // The driver takes packets although the link is down, and loses them.
  bool loses_when_down() const { return interface_ != 0; }
  void describe(PortInfo& info) const;
  PortStats stats() const;
  std::vector<std::pair<std::string, uint64_t>> xstats() const;
  Result<void> clear_stats();

 private:
  static constexpr uint16_t kNoDevice = RTE_MAX_ETHPORTS;
  Device(uint16_t id, std::string name) : id_(id), name_(std::move(name)) {}
  Error failed(const std::string& what, int error) const;
  Result<void> set_up_queues(const DeviceSetup& setup, const rte_eth_dev_info& info);
  Result<void> set_mtu(uint16_t mtu);

  uint16_t id_;
  uint16_t rx_queues_ = 0, tx_queues_ = 0;
  unsigned interface_ = 0;               // of the kernel, where the driver does not follow its state; else 0
  mutable bool interface_gone_ = false;  // and the driver's sockets with it: for good, even if the interface comes back
  std::string name_;
};

}  // namespace margay::dp
