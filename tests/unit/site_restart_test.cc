// SPDX-License-Identifier: Apache-2.0
#include "common/site/site_restart.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/site_text.h"

namespace margay {
namespace {

using namespace margay::test;

std::vector<std::string> keys(const std::string& next) {
  const auto now = parse_site(kSiteText, "a"), then = parse_site(next, "b");
  EXPECT_TRUE(now && then) << (then ? "" : then.error().message);
  return now && then ? needs_restart(*now, *then) : std::vector<std::string>{"bad"};
}

TEST(SiteRestart, WhatTheDataPlaneTakesOnce) {
  using Keys = std::vector<std::string>;
  EXPECT_EQ(keys(replaced(kSiteText, "edge-1", "edge-2")), Keys{"site"});
  EXPECT_EQ(keys(with_dataplane("cli: /x")), Keys{"dataplane.cli"});
  EXPECT_EQ(keys(with_dataplane("control: /x")), Keys{"dataplane.control"});
  EXPECT_EQ(keys(with_dataplane("bindings: /x")), Keys{"dataplane.bindings"});
  EXPECT_EQ(keys(with_dataplane("workers: 2")), Keys{"dataplane.workers"});
  EXPECT_EQ(keys(with_dataplane("idle: sleep")), Keys{"dataplane.idle"});
  EXPECT_EQ(keys(with_dataplane("flows: 1000")), Keys{"dataplane.flows"});
  for (const char* line : {"mac: \"02:00:00:00:0f:00\"", "kernel: mg0", "vlan: 7", "mtu: 1400", "gateways: [192.0.2.1]",
                           "gateways: [192.0.2.1]\n      neighbours: {192.0.2.1: \"02:00:00:00:00:01\"}"}) {
    EXPECT_EQ(keys(with_port0(line)), Keys{"dataplane.ports"}) << line;
  }
  EXPECT_EQ(keys(replaced(kSiteText, "net_null0", "net_null1")), Keys{"dataplane.ports"});
  EXPECT_EQ(keys(replaced(kSiteText, "192.0.2.2/24", "192.0.2.2/25")), Keys{"dataplane.ports"});
  EXPECT_EQ(keys(replaced(kSiteText, "{port: net0,", "{port: net1,")), Keys{"forwarders"});
  EXPECT_EQ(keys(replaced(kSiteText, "00:01\"}", "00:02\"}")), Keys{"forwarders"});
  EXPECT_EQ(keys(replaced(kSiteText, "00:01\"}", "00:01\", vlan: 5}")), Keys{"forwarders"});
  EXPECT_EQ(keys(replaced(with_dataplane("workers: 2"), "edge-1", "edge-2")), (Keys{"site", "dataplane.workers"}));
}

TEST(SiteRestart, NotForScisAndInstances) {
  EXPECT_TRUE(keys(kSiteText).empty());
  for (const char* line : {"mode: l2-dsr", "mode: gue", "mss_clamp: auto", "balance: round-robin", "drain_deadline: 5s",
                           "unknown_flow: drop", "timers: {closing: 1s}", "health: {recovery: direct}", "price: 5"}) {
    EXPECT_TRUE(keys(with_sci(line)).empty()) << line;
  }
  EXPECT_TRUE(keys(with_instance("weight: 5")).empty());
  EXPECT_TRUE(keys(replaced(kSiteText, "si-2", "si-3")).empty());
  EXPECT_TRUE(keys(replaced(kSiteText, "csci_id: 192.0.2.10:80", "csci_id: 192.0.2.11:80")).empty());
}

}  // namespace
}  // namespace margay
