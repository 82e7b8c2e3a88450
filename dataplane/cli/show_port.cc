// SPDX-License-Identifier: Apache-2.0
// show port info|stats|xstats {all|PORT}
#include "dataplane/cli/commands.h"
#include "dataplane/cli/kinds.h"

namespace margay::dp {
namespace {

using ShowPort = void (*)(const DataPlane&, PortIndex, Reply&);

void show_info(const DataPlane& plane, PortIndex port, Reply& reply) {
  const PortInfo info = plane.ports.info(port);
  const TablePort& t = plane.table().ports[port];
  std::vector<std::string> addresses;
  for (const Prefix& prefix : t.addresses) addresses.push_back(prefix.format());
  reply.row({info.name, info.device, info.driver, info.mac.format(), info.link_up ? "up" : "down",
             info.link_mbps > 0 ? Cell(info.link_mbps) : Cell(), info.mtu, t.vlan > 0 ? Cell(t.vlan) : Cell(),
             addresses, info.rx_queues, info.tx_queues, info.numa_node >= 0 ? Cell(info.numa_node) : Cell(),
             info.promiscuous, info.kernel.empty() ? Cell() : Cell(info.kernel)});
}

void show_stats(const DataPlane& plane, PortIndex port, Reply& reply) {
  const PortStats s = plane.ports.stats(port);
  reply.row({plane.config.ports[port].name, s.rx_packets, s.rx_bytes, s.rx_missed, s.rx_errors, s.rx_no_buffer,
             s.tx_packets, s.tx_bytes, s.tx_errors});
}

void show_xstats(const DataPlane& plane, PortIndex port, Reply& reply) {
  for (const auto& [name, value] : plane.ports.xstats(port)) {
    reply.row({plane.config.ports[port].name, name, value});
  }
}

void add(CommandTable& table, DataPlane& plane, const std::string& word, const std::string& help,
         const std::vector<std::string>& columns, Reply::Layout layout, ShowPort show) {
  const std::string safety = "asks the driver; takes no lock that a worker takes";
  const auto begin = [columns, layout](Reply& reply) { reply.table("ports", columns, layout); };
  table.add({"show port " + word + " all", help + " of every port", safety,
             [&plane, begin, show](const Arguments&, Reply& reply) -> CommandResult {
               begin(reply);
               for (size_t p = 0; p < plane.config.ports.size(); ++p) show(plane, static_cast<PortIndex>(p), reply);
               return {};
             }});
  table.add({"show port " + word + " PORT", help + " of one port", safety,
             [&plane, begin, show](const Arguments& arguments, Reply& reply) -> CommandResult {
               const std::optional<PortIndex> port = port_of(plane, arguments[0]);
               if (!port) return arguments[0].error("there is no such port");
               begin(reply);
               show(plane, *port, reply);
               return {};
             }});
}

}  // namespace

void add_show_port(CommandTable& table, DataPlane& plane) {
  add(table, plane, "info", "device, link and addresses",
      {"port", "device", "driver", "mac", "link", "link_mbps", "mtu", "vlan", "addresses", "rx_queues", "tx_queues",
       "numa_node", "promiscuous", "kernel"},
      Reply::Layout::kBlocks, show_info);
  add(table, plane, "stats", "packets, bytes and losses",
      {"port", "rx_packets", "rx_bytes", "rx_missed", "rx_errors", "rx_no_buffer", "tx_packets", "tx_bytes",
       "tx_errors"},
      Reply::Layout::kBlocks, show_stats);
  add(table, plane, "xstats", "the driver's own counters", {"port", "name", "value"}, Reply::Layout::kColumns,
      show_xstats);
}

}  // namespace margay::dp
