// SPDX-License-Identifier: Apache-2.0
#pragma once

// All devices of the site: configures them with their queues and pools, starts and ends them, answers commands
// about them. RX and TX queues: one a worker, or as many as the device has (net_memif: one). No checksum or
// segmentation offload is asked for. Control thread only; workers get at the devices through PortIo. EAL must
// outlive it.

#include <memory>
#include <vector>

#include "common/net.h"
#include "common/result.h"
#include "dataplane/core/site_config.h"
#include "dataplane/data_plane.h"
#include "dataplane/dpdk/buffer_plan.h"

namespace margay::dp {

struct Wiring;

class Ports : public PortInspector {
 public:
  static Result<std::unique_ptr<Ports>> open(const SiteConfig& config, const BufferPlan& buffers);
  ~Ports() override;

  // Devices up; kernel interfaces get their addresses. REQUIRES: no worker polls yet.
  Result<void> start();

  std::vector<MacAddress> macs() const;
  Wiring& wiring() { return *wiring_; }

  PortInfo info(PortIndex port) const override;
  PortStats stats(PortIndex port) const override;
  std::vector<std::pair<std::string, uint64_t>> xstats(PortIndex port) const override;
  Result<void> clear_stats(PortIndex port) override;
  std::vector<LinkChange> follow_links() override;

 private:
  explicit Ports(const SiteConfig& config);
  Result<void> make_pools(const BufferPlan& buffers);
  Result<void> configure_port(size_t port);
  Result<void> configure_kernel(size_t port);
  Result<void> make_transmit_rings();
  Result<void> make_hand_over_rings();

  std::vector<PortConfig> config_;
  std::vector<bool> links_up_;  // as follow_links() saw them last
  uint16_t workers_;
  std::unique_ptr<Wiring> wiring_;
};

}  // namespace margay::dp
