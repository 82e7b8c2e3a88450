// SPDX-License-Identifier: Apache-2.0
// The section `scis` of the site file, as far as it is the data plane's.

#include <algorithm>
#include <cctype>
#include <limits>
#include <vector>

#include "common/site/site_sections.h"

namespace margay {
namespace {

constexpr auto kNotBuilt = std::nullopt;
constexpr Word<std::optional<Mode>> kModes[] = {
    {"l2-dsr", Mode::kL2Dsr}, {"nat", Mode::kNat}, {"full-nat", kNotBuilt}, {"ipip", Mode::kIpip}, {"gue", Mode::kGue}};
constexpr Word<Balance> kBalances[] = {{"round-robin", Balance::kRoundRobin},
                                       {"least-connections", Balance::kLeastConnections},
                                       {"weighted-response-time", Balance::kWeightedResponseTime},
                                       {"resource-aware", Balance::kResourceAware},
                                       {"slot-based", Balance::kSlotBased},
                                       {"consistent-hash", Balance::kConsistentHash}};
constexpr Word<std::optional<WhenNoneHealthy>> kWhenNoneHealthy[] = {{"degraded", WhenNoneHealthy::kDegraded},
                                                                     {"reject", WhenNoneHealthy::kReject},
                                                                     {"queue", kNotBuilt},
                                                                     {"fallback", kNotBuilt}};
constexpr Word<std::optional<WhenFull>> kWhenFull[] = {
    {"reject", WhenFull::kReject}, {"queue", kNotBuilt}, {"degraded", kNotBuilt}, {"fallback", kNotBuilt}};
constexpr Word<UnknownFlow> kUnknownFlow[] = {
    {"reset", UnknownFlow::kReset}, {"drop", UnknownFlow::kDrop}, {"adopt", UnknownFlow::kAdopt}};
constexpr Word<OnUnhealthy> kOnUnhealthy[] = {
    {"reset", OnUnhealthy::kReset}, {"rebind", OnUnhealthy::kRebind}, {"keep", OnUnhealthy::kKeep}};
constexpr Word<UdpChecksum> kUdpChecksums[] = {{"computed", UdpChecksum::kComputed}, {"zero", UdpChecksum::kZero}};
constexpr Word<uint16_t> kMssWords[] = {{"off", kMssAsItIs}, {"auto", kMssByMtu}};
constexpr Word<Protocol> kProtocols[] = {{"tcp", Protocol::kTcp}, {"udp", Protocol::kUdp}};

// Words of which the data plane has one only so far.
enum class TheOne : uint8_t { kIt };
constexpr Word<std::optional<TheOne>> kAffinityKeys[] = {
    {"5-tuple", TheOne::kIt}, {"client-ip", kNotBuilt}, {"quic-connection-id", kNotBuilt}};
constexpr Word<std::optional<TheOne>> kSynCookies[] = {
    {"off", TheOne::kIt}, {"on-overflow", kNotBuilt}, {"always", kNotBuilt}};

constexpr std::string_view kSciKeys[] = {
    "csci_id",   "cs_id",       "endpoints",   "protocol",          "mode",           "gue",
    "mss_clamp", "snat",        "balance",     "selection",         "affinity",       "timers",
    "when_full", "queue",       "fallback",    "when_none_healthy", "on_unhealthy",   "unknown_flow",
    "clients",   "provisional", "syn_cookies", "instances",         "drain_deadline", "degradation_factor",
    "ramp"};
constexpr std::string_view kInstanceKeys[] = {
    "id",         "address", "port",           "mac",         "max_sessions",   "weight",
    "preference", "price",   "security_level", "accelerator", "slots_per_flow", "vlan"};

constexpr Nanoseconds kTimerMin = kTickLength;
constexpr Nanoseconds kTimerMax = 24 * 3600 * kSecond;
constexpr Nanoseconds kUdpTimeout = 60 * kSecond;

std::vector<std::string_view> joined(std::span<const std::string_view> a, std::span<const std::string_view> b) {
  std::vector<std::string_view> keys(a.begin(), a.end());
  keys.insert(keys.end(), b.begin(), b.end());
  return keys;
}

// Packets of and to these go from one link to another, which link-local addresses may not (RFC 4291 §2.5.6, RFC 3927
// §2.7).
void read_routed_ip(const Field& field, IpAddress& out) {
  if (!require(field) || !read_ip(field, out)) return;
  if (out.is_link_local()) field.fail_expected("an address that is valid beyond one link (not link-local)");
}

bool read_port_number(const Field& field, uint16_t& out) {
  const bool is_text = field.present() && field.node()->kind == YamlNode::Kind::kText;
  if (is_text && field.node()->text.find('-') != std::string::npos) {
    field.fail("port ranges are not built yet, expected one port from 1 to 65535");
    return false;
  }
  return read_integer(field, 1, 65535, out);
}

void read_endpoint(const Field& field, Protocol protocol, SciConfig& sci) {
  if (!is_map(field)) return;
  refuse_unknown_keys(field, {"address", "port", "protocol"});
  Endpoint endpoint;
  endpoint.protocol = protocol;
  read_routed_ip(field["address"], endpoint.address);
  if (require(field["port"])) read_port_number(field["port"], endpoint.port);
  read_enum(field["protocol"], kProtocols, endpoint.protocol);
  sci.endpoints.push_back(endpoint);
}

void read_endpoints(const Field& field, SciConfig& sci) {
  Protocol protocol = Protocol::kTcp;
  read_enum(field["protocol"], kProtocols, protocol);
  const Field endpoints = field["endpoints"];
  if (is_list(endpoints)) {
    if (endpoints.size() == 0) endpoints.fail("lists none, expected at least one");
    for (size_t i = 0; i < endpoints.size(); ++i) read_endpoint(endpoints[i], protocol, sci);
  }
  if (endpoints.present() || sci.csci_id.empty()) return;
  const auto said = AddressPort::parse(sci.csci_id);
  if (!said || !said->address.may_be_host() || said->address.is_link_local()) {
    field["csci_id"].fail_expected("the address and port of one host, as there are no endpoints");
    return;
  }
  sci.endpoints.push_back({said->address, said->port, protocol});
}

void read_affinity(const Field& affinity, SciConfig& sci) {
  const bool all_udp = std::all_of(sci.endpoints.begin(), sci.endpoints.end(),
                                   [](const Endpoint& e) { return e.protocol == Protocol::kUdp; });
  if (all_udp) sci.affinity_timeout = kUdpTimeout;
  if (!is_map(affinity)) return;
  refuse_unknown_keys(affinity, {"key", "timeout"});
  TheOne key{};
  read_built(affinity["key"], kAffinityKeys, key);
  read_duration(affinity["timeout"], kTimerMin, kTimerMax, sci.affinity_timeout);
}

void read_timers(const Field& field, TimersConfig& timers) {
  if (!is_map(field)) return;
  refuse_unknown_keys(field, {"embryonic", "closing", "time_wait", "reset_grace", "unreplied"});
  read_duration(field["embryonic"], kTimerMin, kTimerMax, timers.embryonic);
  read_duration(field["closing"], kTimerMin, kTimerMax, timers.closing);
  read_duration(field["time_wait"], kTimerMin, kTimerMax, timers.time_wait);
  read_duration(field["reset_grace"], kTimerMin, kTimerMax, timers.reset_grace);
  read_duration(field["unreplied"], kTimerMin, kTimerMax, timers.unreplied);
}

// Only "everybody" is built: prefixes of length 0 for every family that the SCI has.
void read_clients(const Field& clients, const SciConfig& sci) {
  if (!is_map(clients)) return;
  refuse_unknown_keys(clients, {"allow", "new_connections_per_source"});
  refuse_not_built(clients["new_connections_per_source"]);
  const Field allow = clients["allow"];
  if (!is_list(allow)) return;
  bool v4 = false, v6 = false;
  for (size_t i = 0; i < allow.size(); ++i) {
    Prefix prefix;
    if (!read_prefix(allow[i], prefix)) return;
    if (prefix.length != 0) {
      allow[i].fail("a limit on clients is not built yet, expected 0.0.0.0/0 or ::/0");
      return;
    }
    (prefix.address.is_v4() ? v4 : v6) = true;
  }
  for (const Endpoint& e : sci.endpoints) {
    if (e.address.is_v4() ? v4 : v6) continue;
    allow.fail("a limit on clients is not built yet, expected " +
               std::string(e.address.is_v4() ? "0.0.0.0/0" : "::/0") + " for " + e.format());
    return;
  }
}

// Of an instance, or of all that do not say their own.
void read_policy_values(const Field& field, InstanceConfig& instance) {
  read_integer(field["price"], 0, std::numeric_limits<uint32_t>::max(), instance.price);
  read_integer(field["security_level"], 0, kSecurityLevelMax, instance.security_level);
}

void read_instance(const Field& field, InstanceConfig& instance) {
  if (!is_map(field)) return;
  refuse_unknown_keys(field, joined(kInstanceKeys, other_keys_of_instance()));
  for (const char* key : {"accelerator", "vlan"}) refuse_not_built(field[key]);
  uint64_t slots_per_flow = 1;
  if (read_integer(field["slots_per_flow"], 1, kSessionsMax, slots_per_flow) && slots_per_flow != 1) {
    field["slots_per_flow"].fail("more than one slot a flow is not built yet, expected 1");
  }
  if (require(field["id"])) read_text(field["id"], kIdBytesMax, instance.id);
  read_routed_ip(field["address"], instance.address);
  read_port_number(field["port"], instance.port);
  read_mac(field["mac"], instance.mac);
  if (require(field["max_sessions"])) read_integer(field["max_sessions"], 1, kSessionsMax, instance.max_sessions);
  read_integer(field["weight"], 0, 65535, instance.weight);
  read_integer(field["preference"], 0, 255, instance.preference);
  read_policy_values(field, instance);
}

void read_instances(const Field& field, SciConfig& sci) {
  const Field instances = field["instances"];
  if (!require(instances) || !is_list(instances)) return;
  InstanceConfig common;
  read_policy_values(field, common);
  for (size_t i = 0; i < instances.size(); ++i) {
    InstanceConfig& instance = sci.instances.emplace_back(common);
    read_instance(instances[i], instance);
  }
}

void read_gue(const Field& field, SciConfig& sci) {
  if (!is_map(field)) return;
  if (sci.mode != Mode::kGue) {
    field.fail_key("is mode gue's, expected it left out in mode " + std::string(word_of(sci.mode)));
  }
  refuse_unknown_keys(field, {"port", "variant", "checksum"});
  read_integer(field["port"], 1, 65535, sci.gue.port);
  read_integer(field["variant"], 0, 1, sci.gue.variant);
  read_enum(field["checksum"], kUdpChecksums, sci.gue.checksum);
}

// `off`, `auto`, or bytes.
void read_mss_clamp(const Field& field, uint16_t& out) {
  const bool is_text = field.present() && field.node()->kind == YamlNode::Kind::kText;
  for (const auto& word : kMssWords) {
    if (!is_text || field.node()->text != word.name) continue;
    out = word.value;
    return;
  }
  uint64_t bytes = 0;
  if (is_text && !field.node()->text.empty() && !std::isdigit(static_cast<unsigned char>(field.node()->text.front()))) {
    field.fail_expected("off, auto, or an integer from " + std::to_string(kMssMin) + " to " + std::to_string(kMssMax));
  } else if (read_integer(field, kMssMin, kMssMax, bytes)) {
    out = static_cast<uint16_t>(bytes);
  }
}

void read_selection(const Field& field, SciConfig& sci) {
  if (!is_map(field)) return;
  refuse_unknown_keys(field, {"cheapest_first", "security_level_min"});
  read_bool(field["cheapest_first"], sci.cheapest_first);
  read_integer(field["security_level_min"], 0, kSecurityLevelMax, sci.security_level_min);
}

void read_behaviour(const Field& field, SciConfig& sci) {
  for (const char* key : {"snat", "queue", "fallback"}) refuse_not_built(field[key]);
  TheOne one{};
  read_built(field["mode"], kModes, sci.mode);
  read_gue(field["gue"], sci);
  read_mss_clamp(field["mss_clamp"], sci.mss_clamp);
  read_enum(field["balance"], kBalances, sci.balance);
  read_built(field["when_none_healthy"], kWhenNoneHealthy, sci.when_none_healthy);
  read_built(field["when_full"], kWhenFull, sci.when_full);
  read_enum(field["on_unhealthy"], kOnUnhealthy, sci.on_unhealthy);
  read_built(field["syn_cookies"], kSynCookies, one);
  read_enum(field["unknown_flow"], kUnknownFlow, sci.unknown_flow);
  read_number(field["degradation_factor"], 0, 1, sci.degradation_factor);
  read_duration(field["drain_deadline"], 0, kTimerMax, sci.drain_deadline);
  read_duration(field["ramp"], 0, kTimerMax, sci.ramp);
  const Field provisional = field["provisional"];
  if (!is_map(provisional)) return;
  refuse_unknown_keys(provisional, {"share"});
  read_percentage(provisional["share"], 0, 100, sci.provisional_share);
}

void read_sci(const Field& field, SciConfig& sci) {
  if (!is_map(field)) return;
  refuse_unknown_keys(field, joined(kSciKeys, other_keys_of_sci()));
  if (require(field["csci_id"])) read_text(field["csci_id"], kIdBytesMax, sci.csci_id);
  if (require(field["cs_id"])) read_text(field["cs_id"], kIdBytesMax, sci.cs_id);
  read_endpoints(field, sci);
  read_behaviour(field, sci);
  read_affinity(field["affinity"], sci);
  read_timers(field["timers"], sci.timers);
  read_clients(field["clients"], sci);
  read_selection(field["selection"], sci);
  read_instances(field, sci);
}

}  // namespace

void read_scis(const Field& root, SiteConfig& config) {
  const Field scis = root["scis"];
  if (!require(scis) || !is_list(scis)) return;
  if (scis.size() == 0) scis.fail("lists none, expected at least one");
  for (size_t i = 0; i < scis.size(); ++i) read_sci(scis[i], config.scis.emplace_back());
}

}  // namespace margay
