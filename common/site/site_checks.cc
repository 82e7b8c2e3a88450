// SPDX-License-Identifier: Apache-2.0
// What in the site file concerns more than one value: names that must be unique, addresses that must not clash,
// instances that must be reachable in their SCI's mode.

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "common/site/site_sections.h"

namespace margay {
namespace {

constexpr uint16_t kIpv6MtuMin = 1280;   // RFC 8200 §5
constexpr size_t kInstancesMax = 65536;  // next hops that a worker has room for
constexpr size_t kGatewaysMax = 64;

// Reports what was there before; `what` says what it is.
template <class Value>
void refuse_second(std::set<Value>& seen, const Value& value, const Field& field, const std::string& what) {
  if (!seen.insert(value).second) field.fail(what);
}

class SiteChecks {
 public:
  SiteChecks(const Field& root, SiteConfig& config) : root_(root), config_(config) {}

  void run() {
    collect_sci_addresses();
    check_ports();
    find_forwarder_ports();
    for (size_t s = 0; s < config_.scis.size(); ++s) check_sci(root_["scis"][s], config_.scis[s]);
    for (size_t p = 0; p < config_.ports.size(); ++p) check_neighbours(static_cast<PortIndex>(p));
  }

 private:
  void check_ports();
  void check_addresses(const Field& field, const PortConfig& port);
  void check_gateways(const Field& field, PortIndex port);
  void check_neighbours(PortIndex port);
  void refuse_reserved(const Field& field, const IpAddress& address);
  void find_forwarder_ports();
  void collect_sci_addresses();
  void check_sci(const Field& field, SciConfig& sci);
  void check_endpoints(const Field& field, const SciConfig& sci);
  static void check_selection(const Field& field, const SciConfig& sci);
  void check_instance(const Field& field, const SciConfig& sci, InstanceConfig& instance);
  void settle_port(const Field& field, const SciConfig& sci, InstanceConfig& instance);
  void check_reachable(const Field& field, const SciConfig& sci, const InstanceConfig& instance);
  void check_mtu(PortIndex port, const SciConfig& sci, const InstanceConfig& instance);

  const Field& root_;
  SiteConfig& config_;
  std::set<IpAddress> own_addresses_, sci_addresses_;
  std::set<std::string> csci_ids_;
  std::map<Endpoint, std::string> endpoints_;            // whose each is
  std::set<std::pair<PortIndex, IpAddress>> asked_for_;  // next hops whose MAC address is not given yet
  size_t gateways_ = 0, instances_ = 0;
};

std::string quoted(const std::string& name) { return '"' + name + '"'; }

void SiteChecks::check_ports() {
  std::set<std::string> names, devices, kernels;
  for (size_t p = 0; p < config_.ports.size(); ++p) {
    const PortConfig& port = config_.ports[p];
    const Field field = root_["dataplane"]["ports"][p];
    refuse_second(names, port.name, field["name"], "another port is called " + quoted(port.name) + " already");
    refuse_second(devices, port.device, field["device"], "another port has this device already");
    if (!port.kernel.empty()) {
      refuse_second(kernels, port.kernel, field["kernel"],
                    "another port has the kernel interface " + quoted(port.kernel) + " already");
    }
    check_addresses(field, port);
  }
  for (size_t p = 0; p < config_.ports.size(); ++p) {
    check_gateways(root_["dataplane"]["ports"][p]["gateways"], static_cast<PortIndex>(p));
  }
}

void SiteChecks::check_addresses(const Field& field, const PortConfig& port) {
  for (size_t i = 0; i < port.addresses.size(); ++i) {
    const IpAddress& address = port.addresses[i].address;
    refuse_second(own_addresses_, address, field["addresses"][i], address.format() + " stands twice in the site");
    refuse_reserved(field["addresses"][i], address);
    if (!address.is_v4() && port.mtu < kIpv6MtuMin) {
      field["mtu"].fail("IPv6 needs at least 1280, got " + std::to_string(port.mtu));
    }
  }
  std::set<IpAddress> neighbours;
  for (size_t i = 0; i < port.neighbours.size(); ++i) {
    const IpAddress& address = port.neighbours[i].first;
    refuse_second(neighbours, address, field["neighbours"][i], address.format() + " stands twice");
  }
}

void SiteChecks::check_gateways(const Field& field, PortIndex port) {
  const std::vector<IpAddress>& gateways = config_.ports[port].gateways;
  for (size_t i = 0; i < gateways.size(); ++i) {
    const IpAddress& gateway = gateways[i];
    const PortIndex on = port_on_link(config_.ports, gateway);
    if (on == kNoPort) field[i].fail(gateway.format() + " is on none of this port's networks");
    if (on != kNoPort && on != port) {
      field[i].fail(gateway.format() + " is on the network of the port " + quoted(config_.ports[on].name));
    }
    refuse_reserved(field[i], gateway);
    asked_for_.emplace(port, gateway);
    if (own_addresses_.contains(gateway) || sci_addresses_.contains(gateway)) {
      field[i].fail(gateway.format() + " is an address of this site's own");
    }
    if (++gateways_ == kGatewaysMax + 1) field[i].fail("more than " + std::to_string(kGatewaysMax) + " in the site");
  }
}

// An address of a network of ours that stands for no host of it.
void SiteChecks::refuse_reserved(const Field& field, const IpAddress& address) {
  for (const PortConfig& port : config_.ports) {
    for (const Prefix& prefix : port.addresses) {
      if (!prefix.reserves(address)) continue;
      field.fail(address.format() + " is the network or broadcast address of " + prefix.format() +
                 ", expected one host's");
    }
  }
}

void SiteChecks::check_neighbours(PortIndex port) {
  const auto& neighbours = config_.ports[port].neighbours;
  const Field field = root_["dataplane"]["ports"][port]["neighbours"];
  for (size_t i = 0; i < neighbours.size(); ++i) {
    if (asked_for_.contains({port, neighbours[i].first})) continue;
    field[i].fail_key(
        "expected a gateway of this port, or an instance on its networks that has no `mac`; other hosts "
        "are not built yet");
  }
}

void SiteChecks::find_forwarder_ports() {
  for (size_t f = 0; f < config_.forwarders.size(); ++f) {
    const Field field = root_["forwarders"][f]["port"];
    if (!field.present()) continue;
    const auto it = std::find_if(config_.ports.begin(), config_.ports.end(),
                                 [&](const PortConfig& port) { return port.name == field.node()->text; });
    if (it == config_.ports.end()) field.fail_expected("the name of a port");
    config_.forwarders[f].port = static_cast<PortIndex>(it - config_.ports.begin());
  }
}

void SiteChecks::collect_sci_addresses() {
  for (const SciConfig& sci : config_.scis) {
    for (const Endpoint& e : sci.endpoints) sci_addresses_.insert(e.address);
  }
}

void SiteChecks::check_endpoints(const Field& field, const SciConfig& sci) {
  const Field endpoints = field["endpoints"];
  for (size_t e = 0; e < sci.endpoints.size(); ++e) {
    const Field place = endpoints.present() ? endpoints[e] : field["csci_id"];
    const auto [it, is_new] = endpoints_.emplace(sci.endpoints[e], sci.csci_id);
    refuse_reserved(endpoints.present() ? place["address"] : place, sci.endpoints[e].address);
    if (!is_new) place.fail(it->first.format() + " belongs to the SCI " + quoted(it->second) + " already");
    // An instance has one port, so one protocol (D-43).
    if (sci.mode == Mode::kNat && sci.endpoints[e].protocol != sci.endpoints.front().protocol) {
      place.fail("tcp and udp in one SCI is not built yet in mode nat, expected one protocol");
    }
  }
}

void SiteChecks::check_sci(const Field& field, SciConfig& sci) {
  refuse_second(csci_ids_, sci.csci_id, field["csci_id"], "another SCI is called " + quoted(sci.csci_id) + " already");
  check_endpoints(field, sci);
  check_selection(field, sci);
  std::set<std::string> ids;
  std::set<std::tuple<IpAddress, uint16_t>> instances;
  for (size_t i = 0; i < sci.instances.size(); ++i) {
    InstanceConfig& instance = sci.instances[i];
    const Field place = field["instances"][i];
    refuse_second(ids, instance.id, place["id"], "another instance is called " + quoted(instance.id) + " already");
    check_instance(place, sci, instance);
    refuse_second(
        instances, {instance.address, instance.port}, place["address"],
        "another instance of this SCI is at " + AddressPort{instance.address, instance.port}.format() + " already");
    if (++instances_ == kInstancesMax + 1) place.fail("more than " + std::to_string(kInstancesMax) + " in the site");
  }
}

// What the choice of an instance goes by must be known of each one.
void SiteChecks::check_selection(const Field& field, const SciConfig& sci) {
  if (sci.balance == Balance::kWeightedResponseTime && is_one_way(sci.mode)) {
    field["balance"].fail("replies are not seen in mode " + std::string(word_of(sci.mode)) +
                          ", expected another word than weighted-response-time");
  }
  for (const auto& [key, needed, by] :
       {std::tuple("price", sci.cheapest_first, "selection.cheapest_first"),
        std::tuple("security_level", sci.security_level_min > 0, "selection.security_level_min")}) {
    if (!needed || field[key].present()) continue;
    for (size_t i = 0; i < sci.instances.size(); ++i) {
      const Field its = field["instances"][i][key];
      if (!its.present()) its.fail_missing("is missing here and in the SCI, as " + std::string(by) + " goes by it");
    }
  }
}

void SiteChecks::check_instance(const Field& field, const SciConfig& sci, InstanceConfig& instance) {
  settle_port(field["port"], sci, instance);
  const IpAddress& address = instance.address;
  const bool mixed = std::any_of(sci.endpoints.begin(), sci.endpoints.end(),
                                 [&](const Endpoint& e) { return e.address.is_v4() != address.is_v4(); });
  if (mixed && !is_tunnel(sci.mode))
    field["address"].fail("IPv4 and IPv6 cannot be mixed between an SCI and its instances in this mode");
  if (sci_addresses_.contains(address)) field["address"].fail(address.format() + " is the address of an SCI");
  if (own_addresses_.contains(address)) field["address"].fail(address.format() + " is an address of a port");
  refuse_reserved(field["address"], address);
  check_reachable(field, sci, instance);
}

// The endpoint's port where none is given. One-way modes leave the port as it is.
void SiteChecks::settle_port(const Field& field, const SciConfig& sci, InstanceConfig& instance) {
  const uint16_t first = sci.endpoints.front().port;
  const auto differs_from = [&](uint16_t port) {
    return std::any_of(sci.endpoints.begin(), sci.endpoints.end(), [&](const Endpoint& e) { return e.port != port; });
  };
  if (instance.port == 0) {
    instance.port = first;
    if (sci.mode == Mode::kNat && differs_from(first)) field.fail_missing("is missing, as the endpoints' ports differ");
  } else if (is_one_way(sci.mode) && differs_from(instance.port)) {
    field.fail(std::string(word_of(sci.mode)) + " cannot change the port, expected the endpoint's " +
               std::to_string(first) + " or the key left out");
  }
}

void SiteChecks::check_reachable(const Field& field, const SciConfig& sci, const InstanceConfig& instance) {
  const IpAddress& address = instance.address;
  const PortIndex on = port_on_link(config_.ports, address);
  if (on != kNoPort) {
    if (!instance.mac) asked_for_.emplace(on, address);
    return check_mtu(on, sci, instance);
  }
  const auto leads_there = [&](const PortConfig& port) {
    return std::any_of(port.gateways.begin(), port.gateways.end(),
                       [&](const IpAddress& gateway) { return gateway.is_v4() == address.is_v4(); });
  };
  const auto by = std::find_if(config_.ports.begin(), config_.ports.end(), leads_there);
  const bool has_gateway = by != config_.ports.end();
  const std::string nowhere = address.format() + " is on no port's network";
  if (sci.mode == Mode::kL2Dsr) field["address"].fail(nowhere + ", which l2-dsr needs");
  if (!has_gateway) field["address"].fail(nowhere + " and there is no gateway of its family");
  if (instance.mac) field["mac"].fail_key("expected an instance on a port's network: " + nowhere);
  if (has_gateway) check_mtu(static_cast<PortIndex>(by - config_.ports.begin()), sci, instance);
}

// What a tunnel puts in front must leave room for packets that everybody may send.
void SiteChecks::check_mtu(PortIndex port, const SciConfig& sci, const InstanceConfig& instance) {
  const uint16_t mtu = config_.ports[port].mtu, needed = mtu_needed(sci, instance.address);
  if (!is_tunnel(sci.mode) || mtu >= needed) return;
  root_["dataplane"]["ports"][port]["mtu"].fail(std::string(word_of(sci.mode)) + " to " + instance.address.format() +
                                                " adds " + std::to_string(bytes_added(sci, instance.address)) +
                                                " bytes to a client's packet, expected at least " +
                                                std::to_string(needed) + ", got " + std::to_string(mtu));
}

}  // namespace

void check_site(const Field& root, SiteConfig& config) { SiteChecks(root, config).run(); }

}  // namespace margay
