// SPDX-License-Identifier: Apache-2.0
// What a site file may not say.
#include <gtest/gtest.h>

#include <string>

#include "common/site/site_reader.h"
#include "tests/support/site_text.h"

namespace margay {
namespace {

using namespace margay::test;

std::string base(const std::string& from, const std::string& to) { return replaced(kSiteText, from, to); }

constexpr const char* kRule = "- {port: net0, mac: \"02:00:00:00:00:01\"}";
constexpr const char* kLeftOut = "is not built yet, expected it left out";
constexpr const char* kNoNextHop =
    ": expected a gateway of this port, or an instance on its networks that has no `mac`; other hosts are not built "
    "yet";

TEST(SiteChecks, TheFileIsAMapOfSections) {
  check_rows({{"^", "expected a map, got nothing"},
              {"^- a\n", "expected a map, got a list"},
              {"^a\n", "expected a map, got \"a\""},
              {"^site: a\n", "dataplane: is missing"},
              {base("site:", "^sit:"), "unknown key \"sit\", the nearest known one is \"site\""},
              {base("dataplane:", "^datplane:"), "unknown key \"datplane\", the nearest known one is \"dataplane\""},
              {base("site: edge-1", "site: ^[edge-1]"), "site: expected text of 1 to 255 bytes, got a list"},
              {base("site: edge-1", "site: ^''"), "site: expected text of 1 to 255 bytes, got \"\""},
              {"^accelerators: {}\n" + std::string(kSiteText), std::string("accelerators: ") + kLeftOut}});
}

TEST(SiteChecks, Dataplane) {
  const std::string list = "dataplane:\n  ports:\n    - name: net0\n";
  check_rows({
      {with_dataplane("^worker: 1"), "dataplane: unknown key \"worker\", the nearest known one is \"workers\""},
      {with_dataplane("workers: ^0"), "dataplane.workers: expected an integer from 1 to 32, got \"0\""},
      {with_dataplane("workers: ^33"), "dataplane.workers: expected an integer from 1 to 32, got \"33\""},
      {with_dataplane("flows: ^0"), "dataplane.flows: expected an integer from 1 to 268435456, got \"0\""},
      {with_dataplane("flows: ^268435457"),
       "dataplane.flows: expected an integer from 1 to 268435456, got \"268435457\""},
      {with_dataplane("idle: ^nap"), "dataplane.idle: expected one of spin, sleep, got \"nap\""},
      {with_dataplane("^control:"), "dataplane.control: expected text of 1 to 107 bytes, got nothing"},
      {with_dataplane("bindings: ^x"), "dataplane.bindings: expected an absolute path or \"none\", got \"x\""},
      {with_dataplane("cli: ^" + std::string(108, 'a')),
       "dataplane.cli: expected text of 1 to 107 bytes, got \"" + std::string(60, 'a') + "...\""},
      {"dataplane: ^{}\nforwarders: [{any: true}]\nscis: [{csci_id: \"1.2.3.4:5\", cs_id: a, instances: []}]\n",
       "dataplane.ports: is missing"},
      {"dataplane: {ports: ^[]}\n", "dataplane.ports: has 0 entries, expected 1 to 16"},
  });
}

std::string ports(size_t count) {
  std::string text = "dataplane:\n  ports: ^[";
  for (size_t i = 0; i < count; ++i) {
    text += "{name: p" + std::to_string(i) + ", device: net_null" + std::to_string(i) + ", addresses: [10.0." +
            std::to_string(i) + ".1/24]}, ";
  }
  return text + "]\nforwarders: [{any: true}]\nscis: [{csci_id: \"192.0.2.1:5\", cs_id: a, instances: []}]\n";
}

TEST(SiteChecks, NumberOfPorts) {
  const auto most = parse_site(MarkedText(ports(16)).text, "site.yaml");
  EXPECT_TRUE(most) << most.error().message;
  check_rows({{ports(17), "dataplane.ports: has 17 entries, expected 1 to 16"}});
}

TEST(SiteChecks, Ports) {
  const std::string p1 = "dataplane.ports[1]";
  const std::string name = ": expected a name of letters, digits, '.', '_' and '-', but not \"all\", got ";
  check_rows({
      {base("- name: net1\n      device", "- ^device"), p1 + ".name: is missing"},
      {base("- name: net1\n      device: net_null0", "- ^name: net1"), p1 + ".device: is missing"},
      {base("name: net1", "name: ^net0"), p1 + ".name: another port is called \"net0\" already"},
      {base("name: net1", "name: ^all"), p1 + ".name" + name + "\"all\""},
      {base("name: net1", "name: ^a/b"), p1 + ".name" + name + "\"a/b\""},
      {base("name: net1", "name: ^-a"), p1 + ".name" + name + "\"-a\""},
      {base("net_null0", "^\"0000:3b:02.0\""), p1 + ".device: another port has this device already"},
      {with_port1("^kernal: mg0"), p1 + ": unknown key \"kernal\", the nearest known one is \"kernel\""},
      {with_port1("kernel: ^abcdefghijklmnop"),
       p1 + ".kernel: expected text of 1 to 15 bytes, got \"abcdefghijklmnop\""},
      {with_port1("kernel: ^\"a b\""), p1 + ".kernel" + name + "\"a b\""},
      {replaced(with_port1("kernel: ^mg0"), "net0\n", "net0\n      kernel: mg0\n"),
       p1 + ".kernel: another port has the kernel interface \"mg0\" already"},
      {with_port1("vlan: ^0"), p1 + ".vlan: expected an integer from 1 to 4094, got \"0\""},
      {with_port1("vlan: ^4095"), p1 + ".vlan: expected an integer from 1 to 4094, got \"4095\""},
      {with_port1("mtu: ^67"), p1 + ".mtu: expected an integer from 68 to 9000, got \"67\""},
      {with_port1("mtu: ^9001"), p1 + ".mtu: expected an integer from 68 to 9000, got \"9001\""},
      {with_port0("mtu: ^1279"), "dataplane.ports[0].mtu: IPv6 needs at least 1280, got 1279"},  // RFC 8200 section 5
      {with_port1("mac: ^01:00:5e:00:00:01"),
       p1 + ".mac: expected the MAC address of one station (not multicast, not zero), got \"01:00:5e:00:00:01\""},
      {base("[10.1.0.2/24]", "^10.1.0.2/24"), p1 + ".addresses: expected a list, got \"10.1.0.2/24\""},
      {base("[10.1.0.2/24]", "[^10.1.0.2]"),
       p1 + ".addresses[0]: expected an address with its prefix length such as 192.0.2.2/24 or 2001:db8::2/64, "
            "got \"10.1.0.2\""},
      {base("[10.1.0.2/24]", "[10.1.0.2/24, ^192.0.2.2/16]"), p1 + ".addresses[1]: 192.0.2.2 stands twice in the site"},
      {with_port1("gateways: [^10.2.0.1]"), p1 + ".gateways[0]: 10.2.0.1 is on none of this port's networks"},
      {with_port1("gateways: [^192.0.2.1]"), p1 + ".gateways[0]: 192.0.2.1 is on the network of the port \"net0\""},
      {with_port1("gateways: [^10.1.0.2]"), p1 + ".gateways[0]: 10.1.0.2 is an address of this site's own"},
      {replaced(with_port1("gateways: [^10.1.0.9]"), "192.0.2.10:80", "10.1.0.9:80"),
       p1 + ".gateways[0]: 10.1.0.9 is an address of this site's own"},
      {with_port1("neighbours: {^10.1.0: \"02:00:00:00:00:01\"}"),
       p1 + ".neighbours[\"10.1.0\"]: expected an IP address as the key"},
      {with_port1("neighbours: {10.1.0.3: ^x}"),
       p1 + ".neighbours[\"10.1.0.3\"]: expected a MAC address such as 02:00:00:00:0f:00, got \"x\""},
      {with_port0("gateways: [\"2001:db8::3\"]\n      neighbours: {\"2001:db8::3\": \"02:00:00:00:00:01\", "
                  "\"2001:DB8::3\": ^\"02:00:00:00:00:01\"}"),
       "dataplane.ports[0].neighbours[\"2001:DB8::3\"]: 2001:db8::3 stands twice"},
      {with_port1("neighbours: {^10.1.0.3: \"02:00:00:00:00:01\"}"), p1 + ".neighbours[\"10.1.0.3\"]" + kNoNextHop},
      {with_port1("neighbours: {^192.0.2.1: \"02:00:00:00:00:01\"}"), p1 + ".neighbours[\"192.0.2.1\"]" + kNoNextHop},
      {replaced(with_instance("mac: \"02:00:00:00:00:0b\""), "[10.1.0.2/24]",
                "[10.1.0.2/24]\n      neighbours: {^10.1.0.11: \"02:00:00:00:00:0b\"}"),
       p1 + ".neighbours[\"10.1.0.11\"]" + kNoNextHop},
  });
}

TEST(SiteChecks, IndividualMtuBoundOfIpv6) { EXPECT_TRUE(parse_site(with_port0("mtu: 1280"), "site.yaml")); }

TEST(SiteChecks, Forwarders) {  // SCI-132
  check_rows({
      {base("forwarders:\n  " + std::string(kRule) + "\n", "").insert(0, "^"), "forwarders: is missing"},
      {base("forwarders:\n  " + std::string(kRule), "^forwarders:"), "forwarders: expected a list, got nothing"},
      {base("forwarders:\n  " + std::string(kRule), "forwarders: ^[]"),
       "forwarders: lists none, expected who may inject, or \"- any: true\""},
      {base(kRule, "- ^{}"), "forwarders[0]: says nothing, expected a port, mac or vlan, or \"any: true\""},
      {base(kRule, "- ^{any: false}"), "forwarders[0]: says nothing, expected a port, mac or vlan, or \"any: true\""},
      {base(kRule, "- {any: ^true, port: net0}"),
       "forwarders[0].any: true contradicts the port, mac or vlan beside it"},
      {base(kRule, "- {any: ^yes}"), "forwarders[0].any: expected true or false, got \"yes\""},
      {base(kRule, "- {port: ^net2}"), "forwarders[0].port: expected the name of a port, got \"net2\""},
      {base(kRule, "- {vlan: ^4095}"), "forwarders[0].vlan: expected an integer from 1 to 4094, got \"4095\""},
      {base(kRule, "- {port: net0, ^outer_source: 192.0.2.1}"), std::string("forwarders[0].outer_source: ") + kLeftOut},
      {base(kRule, "- {^prot: net0}"), "forwarders[0]: unknown key \"prot\", the nearest known one is \"port\""},
  });
}

TEST(SiteChecks, NamesOfScisAndInstances) {  // D-25, D-47, D-56, SCI-12
  const std::string second = "  - csci_id: ^192.0.2.10:80\n    cs_id: ARS\n    instances: []\n";
  const std::string long_name(256, 'a');
  const std::string too_long = "expected text of 1 to 255 bytes, got \"" + std::string(60, 'a') + "...\"";
  check_rows({
      {base("- csci_id: 192.0.2.10:80\n    ", "- ^"), "scis[0].csci_id: is missing"},
      {base("    cs_id: ARS\n", "").replace(std::string(kSiteText).find("csci_id"), 0, "^"),
       "scis[0].cs_id: is missing"},
      {base("192.0.2.10:80", "^" + long_name), "scis[0].csci_id: " + too_long},
      {base("cs_id: ARS", "cs_id: ^" + long_name), "scis[0].cs_id: " + too_long},
      {base("id: si-1", "id: ^" + long_name), "scis[0].instances[0].id: " + too_long},
      {base("192.0.2.10:80", "^ARS-1"),
       "scis[0].csci_id: expected the address and port of one host, as there are no endpoints, got \"ARS-1\""},
      {base("192.0.2.10:80", "^224.0.0.1:80"),
       "scis[0].csci_id: expected the address and port of one host, as there are no endpoints, got \"224.0.0.1:80\""},
      {kSiteText + second, "scis[1].csci_id: another SCI is called \"192.0.2.10:80\" already"},
      {base("id: si-2", "id: ^si-1"), "scis[0].instances[1].id: another instance is called \"si-1\" already"},
  });
  // Two SCIs may each have an instance of one name: it is local (D-47).
  EXPECT_TRUE(parse_site(std::string(kSiteText) + "  - csci_id: 192.0.2.11:80\n    cs_id: ARS\n    instances:\n"
                                                  "      - {id: si-1, address: 10.1.0.11, max_sessions: 200}\n",
                         "site.yaml"));
  EXPECT_TRUE(parse_site(replaced(with_sci("endpoints: [{address: 192.0.2.10, port: 80}]"), "csci_id: 192.0.2.10:80",
                                  "csci_id: " + std::string(255, 'a')),
                         "site.yaml"));
}

TEST(SiteChecks, Endpoints) {
  const std::string other = "  - csci_id: other\n    cs_id: ARS\n    instances: []\n    endpoints: ";
  const std::string clash = "192.0.2.10:80/tcp belongs to the SCI \"192.0.2.10:80\" already";
  check_rows({
      {kSiteText + other + "[{address: 192.0.2.9, port: 80}, ^{address: 192.0.2.10, port: 80}]\n",
       "scis[1].endpoints[1]: " + clash},
      {with_sci("endpoints: [{address: 192.0.2.10, port: 80}, ^{address: 192.0.2.10, port: 80}]"),
       "scis[0].endpoints[1]: " + clash},
      {with_sci("endpoints: ^[]"), "scis[0].endpoints: lists none, expected at least one"},
      {with_sci("endpoints: [^{port: 80}]"), "scis[0].endpoints[0].address: is missing"},
      {with_sci("endpoints: [^{address: 192.0.2.10}]"), "scis[0].endpoints[0].port: is missing"},
      {with_sci("endpoints: [{address: 192.0.2.10, port: ^0}]"),
       "scis[0].endpoints[0].port: expected an integer from 1 to 65535, got \"0\""},
      {with_sci("endpoints: [{address: 192.0.2.10, port: ^65536}]"),
       "scis[0].endpoints[0].port: expected an integer from 1 to 65535, got \"65536\""},
      {with_sci("endpoints: [{address: 192.0.2.10, port: ^80-90}]"),
       "scis[0].endpoints[0].port: port ranges are not built yet, expected one port from 1 to 65535"},
      {with_sci("endpoints: [{address: 192.0.2.10, port: 80, protocol: ^sctp}]"),
       "scis[0].endpoints[0].protocol: expected one of tcp, udp, got \"sctp\""},
      {with_sci("protocol: ^icmp"), "scis[0].protocol: expected one of tcp, udp, got \"icmp\""},
      {with_sci("endpoints: [{address: 192.0.2.10, port: 80}, ^{address: 192.0.2.10, port: 80, protocol: udp}]"),
       "scis[0].endpoints[1]: tcp and udp in one SCI is not built yet in mode nat, expected one protocol"},
  });
  // The same address and port for TCP and UDP are two SCIs (D-56).
  EXPECT_TRUE(parse_site(kSiteText + other + "[{address: 192.0.2.10, port: 80, protocol: udp}]\n", "site.yaml"));
}

TEST(SiteChecks, WhatIsNotBuiltInAnSci) {
  const std::string sci = "scis[0].", instance = "scis[0].instances[0].";
  check_rows({
      {with_sci("mode: ^full-nat"), sci + "mode: full-nat is not built yet, expected l2-dsr or nat or ipip or gue"},
      {with_sci("mode: ^dsr"), sci + "mode: expected one of l2-dsr, nat, full-nat, ipip, gue, got \"dsr\""},
      {with_sci("affinity: {key: ^client-ip}"), sci + "affinity.key: client-ip is not built yet, expected 5-tuple"},
      {with_sci("affinity: {key: ^quic-connection-id}"),
       sci + "affinity.key: quic-connection-id is not built yet, expected 5-tuple"},
      {with_sci("when_none_healthy: ^queue"),
       sci + "when_none_healthy: queue is not built yet, expected degraded or reject"},
      {with_sci("when_none_healthy: ^fallback"),
       sci + "when_none_healthy: fallback is not built yet, expected degraded or reject"},
      {with_sci("when_full: ^queue"), sci + "when_full: queue is not built yet, expected reject"},
      {with_sci("when_full: ^degraded"), sci + "when_full: degraded is not built yet, expected reject"},
      {with_sci("when_full: ^fallback"), sci + "when_full: fallback is not built yet, expected reject"},
      {with_sci("syn_cookies: ^on-overflow"), sci + "syn_cookies: on-overflow is not built yet, expected off"},
      {with_sci("syn_cookies: ^always"), sci + "syn_cookies: always is not built yet, expected off"},
      {with_sci("^snat: {}"), sci + "snat: " + kLeftOut},
      {with_sci("^queue: {limit: 1}"), sci + "queue: " + kLeftOut},
      {with_sci("^fallback: 10.1.0.99:8080"), sci + "fallback: " + kLeftOut},
      {with_sci("clients: {^new_connections_per_source: 1/s}"),
       sci + "clients.new_connections_per_source: " + kLeftOut},
      {with_sci("clients: {allow: [^10.0.0.0/8]}"),
       sci + "clients.allow[0]: a limit on clients is not built yet, expected 0.0.0.0/0 or ::/0"},
      {with_sci("clients: {allow: ^[\"::/0\"]}"),
       sci + "clients.allow: a limit on clients is not built yet, expected 0.0.0.0/0 for 192.0.2.10:80/tcp"},
      {with_sci("clients: {allow: ^[]}"),
       sci + "clients.allow: a limit on clients is not built yet, expected 0.0.0.0/0 for 192.0.2.10:80/tcp"},
      {with_instance("^accelerator: gpu-0"), instance + "accelerator: " + kLeftOut},
      {with_instance("^vlan: 1"), instance + "vlan: " + kLeftOut},
      {with_instance("slots_per_flow: ^2"),
       instance + "slots_per_flow: more than one slot a flow is not built yet, expected 1"},
      {with_instance("port: ^80-81"),
       instance + "port: port ranges are not built yet, expected one port from 1 to 65535"},
  });
}

TEST(SiteChecks, SelectionOfAnInstance) {  // SCI-77, SCI-78
  const std::string sci = "scis[0].", i0 = sci + "instances[0]";
  check_rows({
      {with_sci("balance: ^maglev"),
       sci + "balance: expected one of round-robin, least-connections, weighted-response-time, resource-aware, "
             "slot-based, consistent-hash, got \"maglev\""},
      {with_sci("mode: l2-dsr\n    balance: ^weighted-response-time"),
       sci + "balance: replies are not seen in mode l2-dsr, expected another word than weighted-response-time"},
      {with_sci("selection: ^cheapest"), sci + "selection: expected a map, got \"cheapest\""},
      {with_sci("selection: {^cheapest: true}"),
       sci + "selection: unknown key \"cheapest\", the nearest known one is \"cheapest_first\""},
      {with_sci("price: 1\n    selection: {cheapest_first: ^1}"),
       sci + "selection.cheapest_first: expected true or false, got \"1\""},
      {with_sci("selection: {security_level_min: ^11}"),
       sci + "selection.security_level_min: expected an integer from 0 to 10, got \"11\""},
      {with_instance("preference: ^256"), i0 + ".preference: expected an integer from 0 to 255, got \"256\""},
      {with_instance("price: ^4294967296"),
       i0 + ".price: expected an integer from 0 to 4294967295, got \"4294967296\""},
      {with_instance("security_level: ^11"), i0 + ".security_level: expected an integer from 0 to 10, got \"11\""},
      {replaced(with_sci("selection: {cheapest_first: true}"), "- {id: si-1", "- ^{id: si-1"),
       i0 + ".price: is missing here and in the SCI, as selection.cheapest_first goes by it"},
      {replaced(with_sci("selection: {security_level_min: 1}"), "- {id: si-1", "- ^{id: si-1"),
       i0 + ".security_level: is missing here and in the SCI, as selection.security_level_min goes by it"},
  });
}

TEST(SiteChecks, ValuesOfAnSci) {
  const std::string sci = "scis[0].";
  const std::string range = "expected a duration from 10ms to 24h, got ";
  check_rows({
      {with_sci("^blance: slot-based"), "scis[0]: unknown key \"blance\", the nearest known one is \"balance\""},
      {with_sci("timers: {embryonic: ^5}"),
       sci + "timers.embryonic: expected a duration such as 300s or 200ms, got \"5\""},
      {with_sci("timers: {embryonic: ^9ms}"), sci + "timers.embryonic: " + range + "\"9ms\""},
      {with_sci("timers: {closing: ^25h}"), sci + "timers.closing: " + range + "\"25h\""},
      {with_sci("timers: {time_wait: ^0s}"), sci + "timers.time_wait: " + range + "\"0s\""},
      {with_sci("timers: {reset_grace: ^0s}"), sci + "timers.reset_grace: " + range + "\"0s\""},
      {with_sci("timers: {unreplied: ^0s}"), sci + "timers.unreplied: " + range + "\"0s\""},
      {with_sci("timers: {^idle: 1s}"), sci + "timers: unknown key \"idle\", the nearest known one is \"closing\""},
      {with_sci("affinity: {timeout: ^9ms}"), sci + "affinity.timeout: " + range + "\"9ms\""},
      {with_sci("affinity: ^5-tuple"), sci + "affinity: expected a map, got \"5-tuple\""},
      {with_sci("ramp: ^25h"), sci + "ramp: expected a duration from 0s to 24h, got \"25h\""},
      {with_sci("drain_deadline: ^25h"), sci + "drain_deadline: expected a duration from 0s to 24h, got \"25h\""},
      {with_sci("provisional: {share: ^101%}"),
       sci + "provisional.share: expected a percentage from 0% to 100%, got \"101%\""},
      {with_sci("degradation_factor: ^1.1"), sci + "degradation_factor: expected a number from 0 to 1, got \"1.1\""},
      {with_sci("unknown_flow: ^keep"), sci + "unknown_flow: expected one of reset, drop, adopt, got \"keep\""},
      {std::string(kSiteText).substr(0, std::string(kSiteText).find("scis:")) + "scis: ^[]\n",
       "scis: lists none, expected at least one"},
  });
}

TEST(SiteChecks, Instances) {
  const std::string i0 = "scis[0].instances[0]", i1 = "scis[0].instances[1]";
  check_rows({
      {base("{id: si-1, ", "^{"), i0 + ".id: is missing"},
      {base("{id: si-1, address: 10.1.0.11", "^{id: si-1"), i0 + ".address: is missing"},
      {base("{id: si-1, address: 10.1.0.11, max_sessions: 200}", "^{id: si-1, address: 10.1.0.11}"),
       i0 + ".max_sessions: is missing"},
      {base("10.1.0.11, max_sessions: 200", "10.1.0.11, max_sessions: ^0"),
       i0 + ".max_sessions: expected an integer from 1 to 16777215, got \"0\""},
      {base("10.1.0.11, max_sessions: 200", "10.1.0.11, max_sessions: ^16777216"),
       i0 + ".max_sessions: expected an integer from 1 to 16777215, got \"16777216\""},
      {with_instance("weight: ^65536"), i0 + ".weight: expected an integer from 0 to 65535, got \"65536\""},
      {with_instance("weight: ^-1"), i0 + ".weight: expected an integer from 0 to 65535, got \"-1\""},
      {with_instance("port: ^0"), i0 + ".port: expected an integer from 1 to 65535, got \"0\""},
      {with_instance("port: ^65536"), i0 + ".port: expected an integer from 1 to 65535, got \"65536\""},
      {with_instance("^wieght: 1"), i0 + ": unknown key \"wieght\", the nearest known one is \"weight\""},
      {base("10.1.0.12", "^10.1.0.11"), i1 + ".address: another instance of this SCI is at 10.1.0.11:80 already"},
      {base("10.1.0.11", "^192.0.2.10"), i0 + ".address: 192.0.2.10 is the address of an SCI"},
      {base("10.1.0.11", "^10.1.0.2"), i0 + ".address: 10.1.0.2 is an address of a port"},
      {base("10.1.0.11", "^2001:db8::11"),
       i0 + ".address: IPv4 and IPv6 cannot be mixed between an SCI and its instances in this mode"},
      {replaced(with_sci("mode: l2-dsr"), "10.1.0.11", "^2001:db8::11"),
       i0 + ".address: IPv4 and IPv6 cannot be mixed between an SCI and its instances in this mode"},
      {base("10.1.0.11", "^10.9.0.11"),
       i0 + ".address: 10.9.0.11 is on no port's network and there is no gateway of its family"},
      {replaced(with_port0("gateways: [\"2001:db8::1\"]"), "10.1.0.11", "^10.9.0.11"),
       i0 + ".address: 10.9.0.11 is on no port's network and there is no gateway of its family"},
      {replaced(replaced(with_sci("mode: l2-dsr"), "10.1.0.11", "^10.9.0.11"), "/64\"]",
                "/64\"]\n      gateways: [192.0.2.1]"),
       i0 + ".address: 10.9.0.11 is on no port's network, which l2-dsr needs"},
      {replaced(with_sci("mode: l2-dsr"), "10.1.0.11,", "10.1.0.11, port: ^81,"),
       i0 + ".port: l2-dsr cannot change the port, expected the endpoint's 80 or the key left out"},
      {replaced(with_sci("endpoints: [{address: 192.0.2.10, port: 80}, {address: 192.0.2.10, port: 81}]"), "{id: si-1",
                "^{id: si-1"),
       i0 + ".port: is missing, as the endpoints' ports differ"},
      {replaced(with_port0("gateways: [192.0.2.1]"), "10.1.0.11,", "10.9.0.11, ^mac: \"02:00:00:00:00:0b\","),
       i0 + ".mac: expected an instance on a port's network: 10.9.0.11 is on no port's network"},
  });
}

TEST(SiteChecks, WhatComesCloseIsAccepted) {
  const std::string rows[] = {
      // An instance behind a gateway of its family.
      replaced(with_port0("gateways: [192.0.2.1]"), "10.1.0.11", "10.9.0.11"),
      // MAC addresses of next hops: a gateway's, an instance's.
      with_port0("gateways: [192.0.2.1]\n      neighbours: {192.0.2.1: \"02:00:00:00:00:01\"}"),
      with_port1("neighbours: {10.1.0.11: \"02:00:00:00:00:0b\"}"),
      // One address, two ports.
      replaced(base("10.1.0.12", "10.1.0.11"), "si-2, address: 10.1.0.11", "si-2, address: 10.1.0.11, port: 8080"),
      // Direct server return with the endpoint's port.
      replaced(with_sci("mode: l2-dsr"), "10.1.0.11,", "10.1.0.11, port: 80,"),
      // Two ports of an SCI with one of the instances, which says which.
      replaced(replaced(with_sci("endpoints: [{address: 192.0.2.10, port: 80}, {address: 192.0.2.10, port: 81}]"),
                        "10.1.0.11,", "10.1.0.11, port: 8080,"),
               "10.1.0.12,", "10.1.0.12, port: 8080,"),
      // Direct server return keeps both ports and both protocols.
      with_sci("mode: l2-dsr\n    endpoints: [{address: 192.0.2.10, port: 80}, "
               "{address: 192.0.2.10, port: 81, protocol: udp}]"),
  };
  for (const std::string& text : rows) {
    const auto site = parse_site(text, "site.yaml");
    EXPECT_TRUE(site) << site.error().message << "\n" << text;
  }
}

TEST(SiteChecks, TheFirstOfSeveralErrorsIsTold) {
  check_rows({{replaced(with_sci("mode: full-nat"), "site: edge-1", "site: ^''"),
               "site: expected text of 1 to 255 bytes, got \"\""},
              {replaced(base("10.1.0.12", "10.1.0.11"), "id: si-2, ", "^di: si-2, "),
               "scis[0].instances[1]: unknown key \"di\", the nearest known one is \"id\""}});
}

TEST(SiteChecks, BoundsOnTheWholeSite) {
  std::string text = replaced(kSiteText, "[10.1.0.2/24]", "[10.0.0.2/8]");
  text.resize(text.find("    instances:"));
  text += "    instances: [";
  for (uint32_t i = 0; i < 65536; ++i) {
    text += "{id: " + std::to_string(i) + ", max_sessions: 1, address: 10.1." + std::to_string(i >> 8) + '.' +
            std::to_string(i & 255) + "}, ";
  }
  // That the error stands at the last one shows that as many as may be are taken.
  check_rows({{text + "^{id: x, max_sessions: 1, address: 10.2.0.1}]\n",
               "scis[0].instances[65536]: more than 65536 in the site"}});

  std::string gateways;
  for (uint32_t i = 0; i < 64; ++i) gateways += "10.1.0." + std::to_string(i + 100) + ", ";
  EXPECT_TRUE(parse_site(with_port1("gateways: [" + gateways + "]"), "site.yaml"));
  check_rows({{with_port1("gateways: ^[" + gateways + "10.1.0.99]"),
               "dataplane.ports[1].gateways: has 65 entries, expected at most 64"},
              {replaced(replaced(with_port1("gateways: [" + gateways + "]"), "10.1.0.163", "^10.1.0.163"), "net0\n",
                        "net0\n      gateways: [192.0.2.1]\n"),
               "dataplane.ports[1].gateways[63]: more than 64 in the site"}});
}

}  // namespace
}  // namespace margay
