// SPDX-License-Identifier: Apache-2.0
#include "tests/support/site_yaml.h"

#include <cstdio>
#include <sstream>
#include <vector>

namespace margay::test {
namespace {

using namespace dp;

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

// Enough digits to give the same double again.
std::string exact(double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%.20f", value);
  return text;
}

std::string milliseconds(Nanoseconds t) { return std::to_string(t / kMillisecond) + "ms"; }

template <class List>
std::string list_of(const List& values) {
  std::string text = "[";
  for (const auto& value : values) text += (text.size() > 1 ? ", " : "") + quoted(value.format());
  return text + "]";
}

void write_port(std::ostream& out, const PortConfig& port) {
  out << "    - name: " << quoted(port.name) << "\n      device: " << quoted(port.device)
      << "\n      mtu: " << port.mtu;
  if (port.mac) out << "\n      mac: " << quoted(port.mac->format());
  if (!port.kernel.empty()) out << "\n      kernel: " << quoted(port.kernel);
  if (port.vlan != 0) out << "\n      vlan: " << port.vlan;
  out << "\n      addresses: " << list_of(port.addresses) << "\n      gateways: " << list_of(port.gateways)
      << "\n      neighbours: {";
  for (const auto& [address, mac] : port.neighbours) {
    out << quoted(address.format()) << ": " << quoted(mac.format()) << ", ";
  }
  out << "}\n";
}

void write_forwarder(std::ostream& out, const ForwarderConfig& forwarder, const SiteConfig& config) {
  out << "  - {any: " << (forwarder.any ? "true" : "false");
  if (forwarder.port != kNoPort) out << ", port: " << quoted(config.ports[forwarder.port].name);
  if (forwarder.mac) out << ", mac: " << quoted(forwarder.mac->format());
  if (forwarder.vlan) out << ", vlan: " << *forwarder.vlan;
  out << "}\n";
}

void write_sci(std::ostream& out, const SciConfig& sci) {
  out << "  - csci_id: " << quoted(sci.csci_id) << "\n    cs_id: " << quoted(sci.cs_id) << "\n    endpoints:\n";
  for (const Endpoint& e : sci.endpoints) {
    out << "      - {address: " << quoted(e.address.format()) << ", port: " << e.port
        << ", protocol: " << (e.protocol == Protocol::kTcp ? "tcp" : "udp") << "}\n";
  }
  const TimersConfig& t = sci.timers;
  out << "    mode: " << word_of(sci.mode);
  if (sci.mode == Mode::kGue) {
    out << "\n    gue: {port: " << sci.gue.port << ", variant: " << unsigned{sci.gue.variant}
        << ", checksum: " << word_of(sci.gue.checksum) << "}";
  }
  out << "\n    mss_clamp: ";
  if (sci.mss_clamp == kMssAsItIs || sci.mss_clamp == kMssByMtu) {
    out << (sci.mss_clamp == kMssAsItIs ? "off" : "auto");
  } else {
    out << sci.mss_clamp;
  }
  out << "\n    balance: " << word_of(sci.balance)
      << "\n    selection: {cheapest_first: " << (sci.cheapest_first ? "true" : "false")
      << ", security_level_min: " << unsigned{sci.security_level_min} << "}"
      << "\n    affinity: {key: 5-tuple, timeout: " << milliseconds(sci.affinity_timeout)
      << "}\n    timers: {embryonic: " << milliseconds(t.embryonic) << ", closing: " << milliseconds(t.closing)
      << ", time_wait: " << milliseconds(t.time_wait) << ", reset_grace: " << milliseconds(t.reset_grace)
      << ", unreplied: " << milliseconds(t.unreplied) << "}\n    when_none_healthy: " << word_of(sci.when_none_healthy)
      << "\n    when_full: " << word_of(sci.when_full) << "\n    on_unhealthy: " << word_of(sci.on_unhealthy)
      << "\n    unknown_flow: " << word_of(sci.unknown_flow)
      << "\n    provisional: {share: " << exact(sci.provisional_share * 100)
      << "%}\n    degradation_factor: " << exact(sci.degradation_factor)
      << "\n    drain_deadline: " << milliseconds(sci.drain_deadline) << "\n    ramp: " << milliseconds(sci.ramp)
      << "\n    instances:" << (sci.instances.empty() ? " []\n" : "\n");
  for (const InstanceConfig& i : sci.instances) {
    out << "      - {id: " << quoted(i.id) << ", address: " << quoted(i.address.format()) << ", port: " << i.port
        << ", max_sessions: " << i.max_sessions << ", weight: " << i.weight
        << ", preference: " << unsigned{i.preference} << ", price: " << i.price
        << ", security_level: " << unsigned{i.security_level};
    if (i.mac) out << ", mac: " << quoted(i.mac->format());
    out << "}\n";
  }
}

}  // namespace

std::string site_yaml(const SiteConfig& config) {
  std::ostringstream out;
  if (!config.site.empty()) out << "site: " << quoted(config.site) << "\n";
  out << "dataplane:\n  cli: " << quoted(config.cli_socket)
      << "\n  control: " << quoted(config.control_socket.empty() ? "none" : config.control_socket)
      << "\n  bindings: none\n  workers: " << config.workers << "\n  idle: " << word_of(config.idle)
      << "\n  flows: " << config.flows << "\n  ports:\n";
  for (const PortConfig& port : config.ports) write_port(out, port);
  out << "forwarders:\n";
  for (const ForwarderConfig& forwarder : config.forwarders) write_forwarder(out, forwarder, config);
  out << "scis:\n";
  for (const SciConfig& sci : config.scis) write_sci(out, sci);
  return out.str();
}

}  // namespace margay::test
