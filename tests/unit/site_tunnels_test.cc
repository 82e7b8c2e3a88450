// SPDX-License-Identifier: Apache-2.0
// Modes ipip and gue in the site file, and mss_clamp.
#include <gtest/gtest.h>

#include <string>

#include "common/site/site_reader.h"
#include "tests/support/site_text.h"

namespace margay {
namespace {

using namespace margay::test;

std::string in_mode(const std::string& mode, const std::string& port1, const std::string& sci_lines = "") {
  return replaced(with_port1(port1), "    cs_id: ARS\n", "    cs_id: ARS\n    mode: " + mode + "\n" + sci_lines);
}
std::string v6_clients(const std::string& mode, const std::string& port1) {
  return in_mode(mode, port1, "    endpoints: [{address: \"2001:db8::10\", port: 80}]\n");
}

// What ipip puts in front of a client's packet: 20 bytes towards IPv4, 40 towards IPv6 (RFC 2003, RFC 2473); gue 8
// of UDP and 4 of its own more.
TEST(SiteTunnels, WhatIsRefused) {
  const std::string sci = "scis[0].", mtu = "dataplane.ports[1].mtu: ";
  check_rows({
      {with_sci("^gue: {}"), sci + "gue: is mode gue's, expected it left out in mode nat"},
      {with_sci("mode: ipip\n    ^gue: {port: 5555}"), sci + "gue: is mode gue's, expected it left out in mode ipip"},
      {with_sci("mode: gue\n    gue: {port: ^0}"), sci + "gue.port: expected an integer from 1 to 65535, got \"0\""},
      {with_sci("mode: gue\n    gue: {variant: ^2}"), sci + "gue.variant: expected an integer from 0 to 1, got \"2\""},
      {with_sci("mode: gue\n    gue: {checksum: ^off}"),
       sci + "gue.checksum: expected one of computed, zero, got \"off\""},
      {with_sci("mode: gue\n    gue: {^prot: 1}"),
       sci + "gue: unknown key \"prot\", the nearest known one is \"port\""},
      {with_sci("mss_clamp: ^535"), sci + "mss_clamp: expected an integer from 536 to 8960, got \"535\""},
      {with_sci("mss_clamp: ^8961"), sci + "mss_clamp: expected an integer from 536 to 8960, got \"8961\""},
      {with_sci("mss_clamp: ^on"), sci + "mss_clamp: expected off, auto, or an integer from 536 to 8960, got \"on\""},
      {with_sci("mss_clamp: ^{}"), sci + "mss_clamp: expected an integer from 536 to 8960, got a map"},
      {replaced(with_sci("mode: gue"), "10.1.0.11,", "10.1.0.11, port: ^81,"),
       "scis[0].instances[0].port: gue cannot change the port, expected the endpoint's 80 or the key left out"},
      {in_mode("ipip", "mtu: ^87"),
       mtu + "ipip to 10.1.0.11 adds 20 bytes to a client's packet, expected at least 88, got 87"},
      {in_mode("gue", "mtu: ^99"),
       mtu + "gue to 10.1.0.11 adds 32 bytes to a client's packet, expected at least 100, got 99"},
      {in_mode("gue", "mtu: ^95", "    gue: {variant: 1}\n"),
       mtu + "gue to 10.1.0.11 adds 28 bytes to a client's packet, expected at least 96, got 95"},
      {v6_clients("ipip", "mtu: ^1299"),
       mtu + "ipip to 10.1.0.11 adds 20 bytes to a client's packet, expected at least 1300, got 1299"},
      {v6_clients("gue", "mtu: ^1311"),
       mtu + "gue to 10.1.0.11 adds 32 bytes to a client's packet, expected at least 1312, got 1311"},
      {replaced(replaced(in_mode("ipip", "mtu: ^1319"), "10.1.0.2/24", "\"2001:db8:1::2/64\", 10.1.0.2/24"),
                "10.1.0.12", "\"2001:db8:1::12\"") +
           "  - csci_id: \"[2001:db8::10]:80\"\n    cs_id: ARS\n    mode: ipip\n"
           "    instances: [{id: si-1, address: \"2001:db8:1::12\", max_sessions: 1}]\n",
       mtu + "ipip to 2001:db8:1::12 adds 40 bytes to a client's packet, expected at least 1320, got 1319"},
      // Behind the first gateway of its family.
      {replaced(replaced(with_port0("mtu: ^87\n      gateways: [192.0.2.1]"), ", \"2001:db8::2/64\"", ""), "10.1.0.12",
                "10.9.0.12") +
           "    mode: ipip\n",
       "dataplane.ports[0].mtu: ipip to 10.9.0.12 adds 20 bytes to a client's packet, expected at least 88, got 87"},
  });
}

TEST(SiteTunnels, WhatComesCloseIsAccepted) {
  const std::string close[] = {
      in_mode("ipip", "mtu: 88"),
      in_mode("gue", "mtu: 100"),
      v6_clients("ipip", "mtu: 1300"),
      v6_clients("gue", "mtu: 1312"),
      // Families may differ, and instances of both may serve one SCI.
      replaced(replaced(with_sci("mode: ipip"), "10.1.0.2/24", "\"2001:db8:1::2/64\", 10.1.0.2/24"), "10.1.0.12",
               "\"2001:db8:1::12\""),
      // Behind a gateway.
      replaced(replaced(with_port0("gateways: [192.0.2.1]"), "10.1.0.11", "10.9.0.11"), "    cs_id: ARS\n",
               "    cs_id: ARS\n    mode: gue\n"),
      // Each endpoint's port and protocol arrives as it is.
      with_sci("mode: ipip\n    endpoints: [{address: 192.0.2.10, port: 80}, "
               "{address: 192.0.2.10, port: 81, protocol: udp}]"),
  };
  for (const std::string& text : close) {
    const auto site = parse_site(text, "site.yaml");
    EXPECT_TRUE(site) << site.error().message << "\n" << text;
  }
}

}  // namespace
}  // namespace margay
