// SPDX-License-Identifier: Apache-2.0
// The sections `dataplane` and `forwarders` of the site file.

#include <net/if.h>

#include <algorithm>

#include "common/site/site_sections.h"

namespace margay {
namespace {

constexpr Word<Idle> kIdleWords[] = {{"spin", Idle::kSpin}, {"sleep", Idle::kSleep}};

constexpr size_t kPortNameBytesMax = 31;
constexpr size_t kDeviceBytesMax = 1023;
constexpr size_t kPathBytesMax = 107;   // sockaddr_un, with its zero
constexpr size_t kListEntriesMax = 64;  // addresses, gateways: each is looked through by scanning
constexpr size_t kNeighboursMax = 1024;
constexpr uint64_t kFlowsMax = uint64_t{1} << 28;

// Letters, digits, and . _ - within: safe in a file name, an interface name and on a command line.
bool is_plain_word(std::string_view text) {
  const auto is_alnum = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  };
  return !text.empty() && is_alnum(text.front()) &&
         std::all_of(text.begin(), text.end(), [&](char c) { return is_alnum(c) || c == '.' || c == '_' || c == '-'; });
}

void read_plain_word(const Field& field, size_t bytes_max, std::string& out) {
  std::string word;
  if (!read_text(field, bytes_max, word)) return;
  // `all` stands for every port in commands.
  if (!is_plain_word(word) || word == "all") {
    field.fail_expected("a name of letters, digits, '.', '_' and '-', but not \"all\"");
    return;
  }
  out = word;
}

bool within(const Field& list, size_t entries_max) {
  if (list.size() <= entries_max) return true;
  list.fail("has " + std::to_string(list.size()) + " entries, expected at most " + std::to_string(entries_max));
  return false;
}

void read_addresses(const Field& addresses, PortConfig& port) {
  if (!is_list(addresses) || !within(addresses, kListEntriesMax)) return;
  for (size_t i = 0; i < addresses.size(); ++i) {
    Prefix prefix;
    if (!read_prefix(addresses[i], prefix)) continue;
    if (!prefix.address.may_be_host()) {
      addresses[i].fail_expected("the address of one host (not loopback, multicast, broadcast or unspecified)");
    }
    port.addresses.push_back(prefix);
  }
}

void read_gateways(const Field& gateways, PortConfig& port) {
  if (!is_list(gateways) || !within(gateways, kListEntriesMax)) return;
  for (size_t i = 0; i < gateways.size(); ++i) {
    IpAddress gateway;
    if (read_ip(gateways[i], gateway)) port.gateways.push_back(gateway);
  }
}

void read_neighbours(const Field& neighbours, PortConfig& port) {
  if (!is_map(neighbours) || !within(neighbours, kNeighboursMax)) return;
  for (size_t i = 0; i < neighbours.size(); ++i) {
    const auto address = IpAddress::parse(neighbours.node()->children[i].key);
    if (!address) neighbours[i].fail_key("expected an IP address as the key");
    MacAddress mac;
    if (read_mac(neighbours[i], mac) && address) port.neighbours.emplace_back(*address, mac);
  }
}

void read_port(const Field& field, PortConfig& port) {
  if (!is_map(field)) return;
  refuse_unknown_keys(field, {"name", "device", "mac", "kernel", "vlan", "mtu", "addresses", "gateways", "neighbours"});
  if (require(field["name"])) read_plain_word(field["name"], kPortNameBytesMax, port.name);
  if (require(field["device"])) read_text(field["device"], kDeviceBytesMax, port.device);
  read_mac(field["mac"], port.mac);
  read_plain_word(field["kernel"], IF_NAMESIZE - 1, port.kernel);
  read_integer(field["vlan"], 1, 4094, port.vlan);
  read_integer(field["mtu"], 68, 9000, port.mtu);
  read_addresses(field["addresses"], port);
  read_gateways(field["gateways"], port);
  read_neighbours(field["neighbours"], port);
}

void read_bindings(const Field& field, std::string& path) {
  if (!field.present() || !read_text(field, kPathBytesMax, path)) return;
  if (path == "none") {
    path.clear();
  } else if (path.front() != '/') {
    field.fail_expected("an absolute path or \"none\"");
  }
}

void read_forwarder(const Field& field, ForwarderConfig& forwarder) {
  if (!is_map(field)) return;
  refuse_unknown_keys(field, {"any", "port", "mac", "vlan", "outer_source"});
  refuse_not_built(field["outer_source"]);
  read_bool(field["any"], forwarder.any);
  std::string port;  // check_site finds it
  read_text(field["port"], kPortNameBytesMax, port);
  read_mac(field["mac"], forwarder.mac);
  uint16_t vlan = 0;
  if (read_integer(field["vlan"], 1, 4094, vlan)) forwarder.vlan = vlan;
  const bool says_which = field["port"].present() || field["mac"].present() || field["vlan"].present();
  if (forwarder.any && says_which) field["any"].fail("true contradicts the port, mac or vlan beside it");
  if (!forwarder.any && !says_which) field.fail_missing("says nothing, expected a port, mac or vlan, or \"any: true\"");
}

}  // namespace

void read_dataplane(const Field& dataplane, SiteConfig& config) {
  if (!is_map(dataplane)) return;
  refuse_unknown_keys(dataplane, {"cli", "control", "bindings", "workers", "idle", "flows", "ports"});
  read_text(dataplane["cli"], kPathBytesMax, config.cli_socket);
  read_text(dataplane["control"], kPathBytesMax, config.control_socket);
  if (config.control_socket == "none") config.control_socket.clear();
  read_bindings(dataplane["bindings"], config.bindings);
  read_integer(dataplane["workers"], 1, kWorkersMax, config.workers);
  read_enum(dataplane["idle"], kIdleWords, config.idle);
  read_integer(dataplane["flows"], 1, kFlowsMax, config.flows);
  const Field ports = dataplane["ports"];
  if (!require(ports) || !is_list(ports)) return;
  if (ports.size() < 1 || ports.size() > kPortsMax) {
    ports.fail("has " + std::to_string(ports.size()) + " entries, expected 1 to " + std::to_string(kPortsMax));
    return;
  }
  for (size_t i = 0; i < ports.size(); ++i) read_port(ports[i], config.ports.emplace_back());
}

void read_forwarders(const Field& root, SiteConfig& config) {
  const Field forwarders = root["forwarders"];
  if (!require(forwarders) || !is_list(forwarders)) return;
  if (forwarders.size() == 0) forwarders.fail("lists none, expected who may inject, or \"- any: true\"");
  if (!within(forwarders, kListEntriesMax)) return;
  for (size_t i = 0; i < forwarders.size(); ++i) read_forwarder(forwarders[i], config.forwarders.emplace_back());
}

}  // namespace margay
