// SPDX-License-Identifier: Apache-2.0
// The values of the site file: defaults, what each key means, both sides of each boundary.
#include "common/site/site_reader.h"

#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/file_text.h"
#include "tests/support/site_text.h"
#include "tests/support/site_yaml.h"

namespace margay {
namespace {

using namespace margay::test;

SiteConfig good(const std::string& text) {
  auto site = parse_site(text, "site.yaml");
  if (site) return *site;
  ADD_FAILURE() << site.error().message << "\n" << text;
  return {};
}

IpAddress ip(const char* text) { return IpAddress::parse(text).value(); }

// The document's first example.
std::string shortest() {
  const std::string document = test::file_text(MARGAY_TEST_DATA "/../../../docs/site-file.md"), begin = "```yaml\n";
  const size_t from = document.find(begin) + begin.size();
  return document.substr(from, document.find("```\n", from) - from);
}

TEST(SiteReader, ShortestFileHasAllDefaultsOfTheSite) {
  const SiteConfig site = good(shortest());
  EXPECT_EQ(site.file, "site.yaml");
  EXPECT_EQ(site.site, "");
  EXPECT_EQ(site.cli_socket, "/run/margay/cli.sock");
  EXPECT_EQ(site.workers, 1);
  EXPECT_EQ(site.idle, Idle::kSpin);
  EXPECT_EQ(site.flows, 1'000'000u);
  ASSERT_EQ(site.ports.size(), 1u);
  EXPECT_EQ(site.ports[0].name, "net0");
  EXPECT_EQ(site.ports[0].device, "net_af_packet0,iface=sci0");
  EXPECT_EQ(site.ports[0].mtu, 1500);
  EXPECT_EQ(site.ports[0].vlan, 0);
  EXPECT_EQ(site.ports[0].kernel, "");
  EXPECT_FALSE(site.ports[0].mac);
  ASSERT_EQ(site.forwarders.size(), 1u);
  EXPECT_EQ(site.forwarders[0].port, 0);
  EXPECT_FALSE(site.forwarders[0].any);
  EXPECT_EQ(site.forwarders[0].mac->format(), "02:00:00:00:00:01");
  EXPECT_FALSE(site.forwarders[0].vlan);
}

// Part C of the requirement catalogue (SCI-87), D-7, D-45, D-46.
TEST(SiteReader, ShortestFileHasAllDefaultsOfAnSci) {
  const SiteConfig site = good(shortest());
  ASSERT_EQ(site.scis.size(), 1u);
  const SciConfig& sci = site.scis[0];
  EXPECT_EQ(sci.csci_id, "192.0.2.10:80");
  EXPECT_EQ(sci.cs_id, "ARS");
  EXPECT_EQ(sci.endpoints, (std::vector<Endpoint>{{ip("192.0.2.10"), 80, Protocol::kTcp}}));
  EXPECT_EQ(sci.mode, Mode::kNat);
  EXPECT_EQ(sci.balance, Balance::kSlotBased);
  EXPECT_EQ(sci.affinity_timeout, 300 * kSecond);
  EXPECT_EQ(sci.timers.embryonic, 5 * kSecond);
  EXPECT_EQ(sci.timers.closing, 10 * kSecond);
  EXPECT_EQ(sci.timers.time_wait, 60 * kSecond);
  EXPECT_EQ(sci.timers.reset_grace, 2 * kSecond);
  EXPECT_EQ(sci.timers.unreplied, 5 * kSecond);
  EXPECT_EQ(sci.when_none_healthy, WhenNoneHealthy::kDegraded);
  EXPECT_EQ(sci.when_full, WhenFull::kReject);
  EXPECT_EQ(sci.unknown_flow, UnknownFlow::kReset);
  EXPECT_EQ(sci.provisional_share, 0.5);
  EXPECT_EQ(sci.drain_deadline, 600 * kSecond);
  ASSERT_EQ(sci.instances.size(), 2u);
  EXPECT_EQ(sci.instances[0].id, "si-1");
  EXPECT_EQ(sci.instances[0].address, ip("10.1.0.11"));
  EXPECT_EQ(sci.instances[0].port, 80) << "the endpoint's";
  EXPECT_EQ(sci.instances[0].max_sessions, 200u);
  EXPECT_EQ(sci.instances[0].weight, 1);
  EXPECT_FALSE(sci.instances[0].mac);
  EXPECT_EQ(sci.instances[1].id, "si-2");
}

TEST(SiteReader, UdpHasAShorterTimeout) {  // Part C: UDP 60 s
  EXPECT_EQ(good(with_sci("protocol: udp")).scis[0].affinity_timeout, 60 * kSecond);
  EXPECT_EQ(good(with_sci("protocol: udp")).scis[0].endpoints[0].protocol, Protocol::kUdp);
  EXPECT_EQ(good(with_sci("endpoints: [{address: 192.0.2.10, port: 53, protocol: udp}]")).scis[0].affinity_timeout,
            60 * kSecond);
  EXPECT_EQ(good(with_sci("protocol: udp\n    affinity: {timeout: 7s}")).scis[0].affinity_timeout, 7 * kSecond);
}

TEST(SiteReader, EndpointsStandForTheCsciId) {  // D-25, D-43
  const std::string named = replaced(with_sci("protocol: udp\n    endpoints:\n"
                                              "      - {address: 192.0.2.10, port: 53}\n"
                                              "      - {address: 192.0.2.11, port: 53, protocol: udp}"),
                                     "192.0.2.10:80", "the resolver");
  const SciConfig sci = good(named).scis[0];
  EXPECT_EQ(sci.csci_id, "the resolver");
  EXPECT_EQ(sci.endpoints,
            (std::vector<Endpoint>{{ip("192.0.2.10"), 53, Protocol::kUdp}, {ip("192.0.2.11"), 53, Protocol::kUdp}}));
  EXPECT_EQ(sci.instances[0].port, 53);
}

TEST(SiteReader, Ipv6CsciId) {
  std::string text = replaced(kSiteText, "192.0.2.10:80", "\"[2001:db8::10]:80\"");
  text = replaced(text, "10.1.0.11", "\"2001:db8::11\"");
  text = replaced(text, "10.1.0.12", "\"2001:db8::12\"");
  EXPECT_EQ(good(text).scis[0].endpoints[0], (Endpoint{ip("2001:db8::10"), 80, Protocol::kTcp}));
}

// Each key of a value that stands for itself: what is written, and what is read.
TEST(SiteReader, ReadsEachKeyToItsBounds) {
  struct Row {
    std::string text;
    std::function<uint64_t(const SiteConfig&)> get;
    uint64_t expected;
  };
  const auto sci = [](auto get) { return [get](const SiteConfig& s) { return uint64_t{get(s.scis[0])}; }; };
  const auto instance = [](auto get) {
    return [get](const SiteConfig& s) { return uint64_t{get(s.scis[0].instances[0])}; };
  };
  const auto port = [](auto get) { return [get](const SiteConfig& s) { return uint64_t{get(s.ports[1])}; }; };
  const auto workers = [](const SiteConfig& s) { return uint64_t{s.workers}; };
  const auto flows = [](const SiteConfig& s) { return uint64_t{s.flows}; };
  const auto mtu = port([](const PortConfig& p) { return p.mtu; });
  const auto vlan = port([](const PortConfig& p) { return p.vlan; });
  const auto weight = instance([](const InstanceConfig& i) { return i.weight; });
  const auto max_sessions = [](const SiteConfig& s) { return uint64_t{s.scis[0].instances[1].max_sessions}; };
  const auto limit = [](const std::string& n) {
    return replaced(kSiteText, "12, max_sessions: 200", "12, max_sessions: " + n);
  };
  const auto instance_port = instance([](const InstanceConfig& i) { return i.port; });
  const auto drain = sci([](const SciConfig& s) { return s.drain_deadline; });
  const auto percent = sci([](const SciConfig& s) { return static_cast<uint64_t>(s.provisional_share * 100 + 0.5); });
  const Row rows[] = {
      {with_dataplane("workers: 1"), workers, 1},
      {with_dataplane("workers: 32"), workers, 32},
      {with_dataplane("flows: 1"), flows, 1},
      {with_dataplane("flows: 268435456"), flows, 1u << 28},
      {with_port1("mtu: 68"), mtu, 68},
      {with_port1("mtu: 9000"), mtu, 9000},
      {with_port1("vlan: 1"), vlan, 1},
      {with_port1("vlan: 4094"), vlan, 4094},
      {with_instance("weight: 0"), weight, 0},
      {with_instance("weight: 65535"), weight, 65535},
      {limit("1"), max_sessions, 1},
      {limit("16777215"), max_sessions, 16'777'215},
      {with_instance("port: 1"), instance_port, 1},
      {with_instance("port: 65535"), instance_port, 65535},
      {with_sci("affinity: {timeout: 10ms}"), sci([](const SciConfig& s) { return s.affinity_timeout; }),
       10 * kMillisecond},
      {with_sci("affinity: {key: 5-tuple, timeout: 24h}"), sci([](const SciConfig& s) { return s.affinity_timeout; }),
       86400 * kSecond},
      {with_sci("timers: {embryonic: 1s}"), sci([](const SciConfig& s) { return s.timers.embryonic; }), kSecond},
      {with_sci("timers: {closing: 2s}"), sci([](const SciConfig& s) { return s.timers.closing; }), 2 * kSecond},
      {with_sci("timers: {time_wait: 3s}"), sci([](const SciConfig& s) { return s.timers.time_wait; }), 3 * kSecond},
      {with_sci("timers: {reset_grace: 4s}"), sci([](const SciConfig& s) { return s.timers.reset_grace; }),
       4 * kSecond},
      {with_sci("timers: {unreplied: 6s}"), sci([](const SciConfig& s) { return s.timers.unreplied; }), 6 * kSecond},
      {with_sci("drain_deadline: 0s"), drain, 0},
      {with_sci("drain_deadline: 24h"), drain, 86400 * kSecond},
      {with_sci("ramp: 0s"), sci([](const SciConfig& s) { return s.ramp; }), 0},
      {with_sci("ramp: 30s"), sci([](const SciConfig& s) { return s.ramp; }), 30 * kSecond},
      {with_sci("provisional: {share: 0%}"), percent, 0},
      {with_sci("provisional: {share: 100%}"), percent, 100},
  };
  for (const Row& row : rows) EXPECT_EQ(row.get(good(row.text)), row.expected) << row.text;
}

TEST(SiteReader, ReadsEachWord) {
  EXPECT_EQ(good(with_dataplane("idle: sleep")).idle, Idle::kSleep);
  EXPECT_EQ(good(with_sci("mode: nat")).scis[0].mode, Mode::kNat);
  EXPECT_EQ(good(with_sci("mode: l2-dsr")).scis[0].mode, Mode::kL2Dsr);
  EXPECT_EQ(good(with_sci("mode: ipip")).scis[0].mode, Mode::kIpip);
  EXPECT_EQ(good(with_sci("mode: gue")).scis[0].mode, Mode::kGue);
  EXPECT_EQ(good(with_sci("mode: gue")).scis[0].gue, (GueConfig{6080, 0, UdpChecksum::kComputed}));
  EXPECT_EQ(good(with_sci("mode: gue\n    gue: {port: 5555, variant: 1, checksum: zero}")).scis[0].gue,
            (GueConfig{5555, 1, UdpChecksum::kZero}));
  EXPECT_EQ(good(with_sci("mode: gue\n    gue: {checksum: computed}")).scis[0].gue.checksum, UdpChecksum::kComputed);
  EXPECT_EQ(good(with_sci("mss_clamp: off")).scis[0].mss_clamp, 0);
  EXPECT_EQ(good(with_sci("mss_clamp: auto")).scis[0].mss_clamp, kMssByMtu);
  EXPECT_EQ(good(with_sci("mss_clamp: 536")).scis[0].mss_clamp, 536);
  EXPECT_EQ(good(with_sci("mss_clamp: 8960")).scis[0].mss_clamp, 8960);
  EXPECT_EQ(good(kSiteText).scis[0].mss_clamp, 0);
  for (const auto& [word, balance] :
       {std::pair("round-robin", Balance::kRoundRobin), std::pair("least-connections", Balance::kLeastConnections),
        std::pair("weighted-response-time", Balance::kWeightedResponseTime),
        std::pair("resource-aware", Balance::kResourceAware), std::pair("slot-based", Balance::kSlotBased),
        std::pair("consistent-hash", Balance::kConsistentHash)}) {
    EXPECT_EQ(good(with_sci(std::string("balance: ") + word)).scis[0].balance, balance);
  }
  EXPECT_EQ(good(with_sci("unknown_flow: reset")).scis[0].unknown_flow, UnknownFlow::kReset);
  EXPECT_EQ(good(with_sci("unknown_flow: drop")).scis[0].unknown_flow, UnknownFlow::kDrop);
  EXPECT_EQ(good(with_sci("unknown_flow: adopt")).scis[0].unknown_flow, UnknownFlow::kAdopt);
  EXPECT_EQ(good(with_sci("when_none_healthy: degraded")).scis[0].when_none_healthy, WhenNoneHealthy::kDegraded);
  EXPECT_EQ(good(with_sci("when_none_healthy: reject")).scis[0].when_none_healthy, WhenNoneHealthy::kReject);
  EXPECT_EQ(good(with_sci("when_full: reject")).scis[0].when_full, WhenFull::kReject);
  for (const OnUnhealthy word : {OnUnhealthy::kReset, OnUnhealthy::kRebind, OnUnhealthy::kKeep}) {
    EXPECT_EQ(good(with_sci("on_unhealthy: " + std::string(word_of(word)))).scis[0].on_unhealthy, word);
  }
  good(with_sci("degradation_factor: 0.5"));
  good(with_sci("syn_cookies: off"));
  good(with_sci("clients: {allow: [0.0.0.0/0, \"::/0\"]}"));
  good(with_instance("slots_per_flow: 1"));
  EXPECT_EQ(good(with_dataplane("control: none")).control_socket, "");
  EXPECT_EQ(good(with_dataplane("control: /run/margay/dataplane.sock")).control_socket, "/run/margay/dataplane.sock");
  good(with_dataplane("bindings: none"));
}

// SCI-78. What an instance does not say, its SCI says for it.
TEST(SiteReader, ReadsWhatPoliciesGoBy) {
  const SciConfig plain = good(kSiteText).scis[0];
  EXPECT_FALSE(plain.cheapest_first);
  EXPECT_EQ(plain.security_level_min, 0);
  EXPECT_EQ(plain.instances[0].preference, 100);
  const SciConfig sci =
      good(replaced(with_sci("price: 10\n    security_level: 3\n    selection: {cheapest_first: true, "
                             "security_level_min: 2}"),
                    "10.1.0.11,", "10.1.0.11, price: 4, security_level: 1, preference: 0,"))
          .scis[0];
  EXPECT_TRUE(sci.cheapest_first);
  EXPECT_EQ(sci.security_level_min, 2);
  EXPECT_EQ(sci.instances[0].price, 4u);
  EXPECT_EQ(sci.instances[0].security_level, 1);
  EXPECT_EQ(sci.instances[0].preference, 0);
  EXPECT_EQ(sci.instances[1].price, 10u);
  EXPECT_EQ(sci.instances[1].security_level, 3);
  EXPECT_EQ(sci.instances[1].preference, 100);
}

TEST(SiteReader, ReadsTheOtherKeysOfPortsForwardersAndInstances) {
  const SiteConfig site =
      good(with_port0("kernel: abcdefghijklmno\n      mac: \"02:00:00:00:0f:00\"\n"
                      "      gateways: [192.0.2.1, \"2001:db8::1\"]\n"
                      "      neighbours: {192.0.2.1: \"02:00:00:00:00:01\"}"));
  EXPECT_EQ(site.ports[0].kernel, "abcdefghijklmno") << "15 bytes are the kernel's most";
  EXPECT_EQ(site.ports[0].mac->format(), "02:00:00:00:0f:00");
  EXPECT_EQ(site.ports[0].gateways, (std::vector<IpAddress>{ip("192.0.2.1"), ip("2001:db8::1")}));
  ASSERT_EQ(site.ports[0].neighbours.size(), 1u);
  EXPECT_EQ(site.ports[0].neighbours[0].first, ip("192.0.2.1"));
  EXPECT_EQ(site.ports[0].neighbours[0].second.format(), "02:00:00:00:00:01");
  ASSERT_EQ(site.ports[0].addresses.size(), 2u);
  EXPECT_EQ(site.ports[0].addresses[1].format(), "2001:db8::2/64");

  const std::string rule = "{port: net0, mac: \"02:00:00:00:00:01\"}";
  EXPECT_TRUE(good(replaced(kSiteText, rule, "{any: true}")).forwarders[0].any);
  EXPECT_EQ(good(replaced(kSiteText, rule, "{any: true}")).forwarders[0].port, kNoPort);
  const ForwarderConfig tagged = good(replaced(kSiteText, rule, "{port: net1, vlan: 100, any: false}")).forwarders[0];
  EXPECT_EQ(tagged.port, 1);
  EXPECT_EQ(tagged.vlan, 100);
  EXPECT_FALSE(tagged.mac);

  EXPECT_EQ(good(with_instance("mac: \"02:00:00:00:00:0b\"")).scis[0].instances[0].mac->format(), "02:00:00:00:00:0b");
  const std::string none = replaced(replaced(kSiteText, "    instances:\n", "    instances: []\n"),
                                    "      - {id: si-1, address: 10.1.0.11, max_sessions: 200}\n", "");
  EXPECT_TRUE(good(replaced(none, "      - {id: si-2, address: 10.1.0.12, max_sessions: 200}\n", ""))
                  .scis[0]
                  .instances.empty());
}

// The reference file uses what is not built. Each is named in turn, at its line; with all of it turned off the file
// is read.
TEST(SiteReader, TheReferenceFileNamesWhatIsNotBuilt) {
  struct Step {
    std::string error;  // of the file so far
    std::string from, to;
  };
  const Step steps[] = {
      {"35:1: accelerators: is not built yet, expected it left out", "accelerators:", "# accelerators:"},
      {"43:11: scis[0].mode: full-nat is not built yet, expected l2-dsr or nat or ipip or gue", "mode: full-nat",
       "mode: nat"},
      {"44:5: scis[0].snat: is not built yet, expected it left out", "    snat:", "    # snat:"},
      {"51:5: scis[0].queue: is not built yet, expected it left out", "    queue:", "    # queue:"},
      {"52:5: scis[0].fallback: is not built yet, expected it left out", "    fallback:", "    # fallback:"},
      {"56:18: scis[0].syn_cookies: on-overflow is not built yet, expected off", "on-overflow   ", "off   "},
      {"57:35: scis[0].clients.new_connections_per_source: is not built yet, expected it left out",
       ", new_connections_per_source: 200/s", ""},
      {"67:82: scis[0].instances[1].accelerator: is not built yet, expected it left out", ", accelerator: gpu-0}", "}"},
  };
  std::string text = replaced(test::file_text(MARGAY_TEST_DATA "/reference_site.yaml"), "  gpu-0:", "# gpu-0:");
  text = replaced(text, "accelerators:", "accelerators: {}");  // so that the lines stay
  for (const Step& step : steps) {
    const auto site = parse_site(text, "site.yaml");
    ASSERT_FALSE(site) << "expected " << step.error;
    EXPECT_EQ(site.error().message, "site.yaml:" + step.error);
    text = replaced(text, step.from, step.to);
  }
  const SiteConfig site = good(text);
  EXPECT_EQ(site.site, "edge-1");
  EXPECT_EQ(site.control_socket, "/run/margay/dataplane.sock");
  EXPECT_EQ(site.workers, 2);
  ASSERT_EQ(site.ports.size(), 2u);
  EXPECT_EQ(site.ports[0].device, "0000:3b:02.0");
  EXPECT_EQ(site.ports[0].kernel, "mg0");
  EXPECT_EQ(site.ports[1].vlan, 100);
  ASSERT_EQ(site.scis.size(), 1u);
  EXPECT_EQ(site.scis[0].mode, Mode::kNat);
  EXPECT_EQ(site.scis[0].drain_deadline, 600 * kSecond);
  ASSERT_EQ(site.scis[0].instances.size(), 2u);
  EXPECT_EQ(site.scis[0].instances[1].id, "si-2");
  EXPECT_EQ(site.scis[0].instances[1].port, 8080);
}

TEST(SiteReader, WhatIsReadCanBeWrittenAndReadAgain) {
  for (const std::string& text :
       {shortest(), std::string(kSiteText), with_sci("mode: l2-dsr\n    provisional: {share: 33.3%}"),
        with_sci("mode: gue\n    gue: {port: 5555, variant: 1, checksum: zero}\n    mss_clamp: auto"),
        with_sci("mode: ipip\n    mss_clamp: 1300"),
        with_port0("vlan: 7\n      gateways: [192.0.2.1]\n      neighbours: {192.0.2.1: \"02:00:00:00:00:01\"}")}) {
    const std::string written = site_yaml(good(text));
    EXPECT_EQ(site_yaml(good(written)), written);
  }
}

TEST(SiteReader, ReadsFiles) {
  const std::string path = testing::TempDir() + "site_reader_test.yaml";
  std::ofstream(path) << shortest();
  const auto site = read_site_file(path);
  ASSERT_TRUE(site) << site.error().message;
  EXPECT_EQ(site->file, path);
  EXPECT_EQ(site->scis.size(), 1u);
  std::ofstream(path) << "site: [\n";
  const auto broken = read_site_file(path);
  ASSERT_FALSE(broken);
  EXPECT_TRUE(broken.error().message.starts_with(path + ":2:1: ")) << broken.error().message;
  std::remove(path.c_str());
  EXPECT_EQ(read_site_file(path).error().message, path + ": cannot open: No such file or directory");
}

}  // namespace
}  // namespace margay
