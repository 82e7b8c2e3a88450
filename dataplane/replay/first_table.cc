// SPDX-License-Identifier: Apache-2.0
#include "dataplane/replay/first_table.h"

#include <algorithm>
#include <vector>

#include "dataplane/core/site_change.h"
#include "dataplane/replay/replay_io.h"

namespace margay::dp {
namespace {

// The port's own `mac`, else 02:00:00:00:0f:NN by its place in the site file.
std::vector<MacAddress> port_macs(const SiteConfig& site) {
  std::vector<MacAddress> macs;
  for (const PortConfig& port : site.ports) {
    const MacAddress fixed{{0x02, 0, 0, 0, 0x0f, static_cast<uint8_t>(macs.size())}};
    macs.push_back(port.mac.value_or(fixed));
  }
  return macs;
}

std::vector<IpAddress> instance_addresses(const SiteConfig& site) {
  std::vector<IpAddress> addresses;
  for (const SciConfig& sci : site.scis) {
    for (const InstanceConfig& i : sci.instances) addresses.push_back(i.address);
  }
  return addresses;
}

}  // namespace

void assume_neighbours(SiteConfig& site, const Recording* recording) {
  const auto instances = recording != nullptr ? recording->instance_addresses() : instance_addresses(site);
  const auto assume = [](PortConfig& port, const IpAddress& address) {
    const bool known = std::any_of(port.neighbours.begin(), port.neighbours.end(),
                                   [&](const auto& neighbour) { return neighbour.first == address; });
    if (!known) port.neighbours.emplace_back(address, assumed_mac(address));
  };
  for (PortConfig& port : site.ports) {
    for (const IpAddress& gateway : port.gateways) assume(port, gateway);
  }
  for (const IpAddress& address : instances) {
    const PortIndex port = port_on_link(site.ports, address);
    if (port != kNoPort) assume(site.ports[port], address);
  }
}

Result<std::unique_ptr<SiteTable>> first_table(const SiteConfig& site, const Recording* recording, Nanoseconds now) {
  if (recording == nullptr) return SiteTable::build(site, port_macs(site));
  const RecordedState& state = recording->state();
  const auto macs = recording->port_macs();
  const SiteChange change{site, recording->instances_max(), recording->scis_max(), [](InstanceIndex) { return false; },
                          [now](Nanoseconds t) { return to_tick(std::max(t, now)); }};
  auto table = state.waiting ? Result(SiteTable::waiting_for_control(site, macs))
                             : change.apply(*SiteTable::without_scis(site, macs), state.table);
  if (!table) return recording->at(1, table.error());
  (*table)->forwarding = state.forwarding;
  return table;
}

}  // namespace margay::dp
