// SPDX-License-Identifier: Apache-2.0
// show config: the effective configuration, defaults filled in, with what an operator has set since.
#include <fmt/format.h>

#include "dataplane/cli/commands.h"
#include "dataplane/cli/names.h"

namespace margay::dp {
namespace {

template <class List, class Format>
std::vector<std::string> texts_of(const List& list, Format format) {
  std::vector<std::string> texts;
  for (const auto& item : list) texts.push_back(format(item));
  return texts;
}

void show_site(const DataPlane& plane, Reply& reply) {
  const SiteConfig& c = plane.config;
  reply.field("file", c.file);
  reply.field("site", c.site);
  reply.field("cli", c.cli_socket);
  reply.field("control", c.control_socket.empty() ? "none" : c.control_socket);
  reply.field("workers", c.workers);
  reply.field("idle", word_of(c.idle));
  reply.field("flows", c.flows);
  reply.field("bindings", c.bindings.empty() ? "none" : c.bindings);
  reply.field("forwarding", plane.table().forwarding);
  reply.field("table_version", plane.table().version);
}

void show_ports(const DataPlane& plane, Reply& reply) {
  reply.table("ports", {"port", "device", "mac", "kernel", "vlan", "mtu", "addresses", "gateways", "neighbours"},
              Reply::Layout::kBlocks);
  for (size_t p = 0; p < plane.config.ports.size(); ++p) {
    const PortConfig& port = plane.config.ports[p];
    reply.row({port.name, port.device, plane.table().ports[p].mac.format(),
               port.kernel.empty() ? Cell() : Cell(port.kernel), port.vlan > 0 ? Cell(port.vlan) : Cell(), port.mtu,
               texts_of(port.addresses, [](const Prefix& a) { return a.format(); }),
               texts_of(port.gateways, [](const IpAddress& a) { return a.format(); }),
               texts_of(port.neighbours, [](const auto& n) { return n.first.format() + "=" + n.second.format(); })});
  }
}

void show_forwarders(const DataPlane& plane, Reply& reply) {
  reply.table("forwarders", {"any", "port", "mac", "vlan"});
  for (const ForwarderConfig& f : plane.config.forwarders) {
    const bool named = f.port < plane.config.ports.size();
    reply.row({f.any, named ? Cell(plane.config.ports[f.port].name) : Cell(), f.mac ? Cell(f.mac->format()) : Cell(),
               f.vlan ? Cell(*f.vlan) : Cell()});
  }
}

Cell mss_clamp_of(const Sci& s) {
  if (s.mss_clamp == kMssAsItIs) return "off";
  return s.mss_clamp == kMssByMtu ? Cell("auto") : Cell(s.mss_clamp);
}

void show_scis(const DataPlane& plane, Reply& reply) {
  reply.table("scis",
              {"csci_id",
               "cs_id",
               "endpoints",
               "mode",
               "gue_port",
               "gue_variant",
               "gue_checksum",
               "mss_clamp",
               "balance",
               "cheapest_first",
               "security_level_min",
               "affinity_timeout",
               "embryonic",
               "closing",
               "time_wait",
               "reset_grace",
               "unreplied",
               "when_none_healthy",
               "when_full",
               "on_unhealthy",
               "unknown_flow",
               "provisional_share",
               "drain_deadline",
               "ramp"},
              Reply::Layout::kBlocks);
  for (const Sci& s : plane.table().scis) {
    if (s.gone()) continue;
    const bool gue = s.mode == Mode::kGue;
    reply.row({s.csci_id,
               s.cs_id,
               texts_of(s.endpoints, [](const Endpoint& e) { return e.format(); }),
               word_of(s.mode),
               gue ? Cell(s.gue.port) : Cell(),
               gue ? Cell(s.gue.variant) : Cell(),
               gue ? Cell(word_of(s.gue.checksum)) : Cell(),
               mss_clamp_of(s),
               word_of(s.balance),
               s.cheapest_first,
               s.security_level_min,
               seconds_of(s.affinity_timeout),
               seconds_of(s.timers.embryonic),
               seconds_of(s.timers.closing),
               seconds_of(s.timers.time_wait),
               seconds_of(s.timers.reset_grace),
               seconds_of(s.timers.unreplied),
               word_of(s.when_none_healthy),
               word_of(s.when_full),
               word_of(s.on_unhealthy),
               word_of(s.unknown_flow),
               s.provisional_share,
               seconds_of(s.drain_deadline),
               seconds_of(s.record->policy.ramp)});
  }
}

// From the running table: limits and weights as they hold now.
void show_instances(const DataPlane& plane, Reply& reply) {
  const SiteTable& table = plane.table();
  reply.table("instances", {"csci_id", "si_id", "address", "mac", "max_sessions", "weight", "preference", "price",
                            "security_level", "admin"});
  for (const Sci& sci : table.scis) {
    for (size_t k = 0; k < sci.instances.size(); ++k) {
      const Instance& instance = table.instances[sci.instances[k]];
      const InstanceConfig& config = sci.record->instances[k].config;
      const bool has_hop = instance.next_hop < table.next_hops.size();
      const MacAddress mac = has_hop ? table.next_hops[instance.next_hop].mac : MacAddress{};
      reply.row({sci.csci_id, instance.si_id, address_of(instance), mac.is_zero() ? Cell() : Cell(mac.format()),
                 instance.max_sessions, instance.weight, config.preference, config.price, config.security_level,
                 name_of(instance.admin)});
    }
  }
}

}  // namespace

void add_show_config(CommandTable& table, DataPlane& plane) {
  table.add({"show config", "the configuration in force, defaults and operator's changes included",
             "reads the site table", [&plane](const Arguments&, Reply& reply) -> CommandResult {
               show_site(plane, reply);
               show_ports(plane, reply);
               show_forwarders(plane, reply);
               show_scis(plane, reply);
               show_instances(plane, reply);
               return {};
             }});
}

}  // namespace margay::dp
