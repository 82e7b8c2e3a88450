// SPDX-License-Identifier: Apache-2.0
// What the table of a site says about addresses (SCI-132, D-47, D-56).
#include "dataplane/core/site_table.h"

#include <set>

#include <gtest/gtest.h>

#include "tests/support/small_site.h"

namespace margay::test {
namespace {

using dp::LocalKind;
using dp::SiteTable;

const MacAddress kMacs[] = {kSitePort0, kSitePort1};

std::unique_ptr<SiteTable> built(const dp::SiteConfig& config) { return SiteTable::build(config, kMacs); }

TEST(SiteTable, SCI123FrontendsByAddressPortAndProtocol) {
  const auto table = built(small_site(3, 10));
  EXPECT_EQ(table->find_frontend(ip("192.0.2.10"), to_wire16(80), Protocol::kTcp), 0u);
  EXPECT_EQ(table->find_frontend(ip("192.0.2.10"), to_wire16(80), Protocol::kUdp), dp::kNoIndex);
  EXPECT_EQ(table->find_frontend(ip("192.0.2.10"), to_wire16(81), Protocol::kTcp), dp::kNoIndex);
  EXPECT_EQ(table->find_frontend(ip("192.0.2.11"), to_wire16(80), Protocol::kTcp), dp::kNoIndex);
  EXPECT_EQ(table->find_endpoint(ip("10.1.0.12"), to_wire16(8080), Protocol::kTcp), 1u);
  EXPECT_EQ(table->find_endpoint(ip("10.1.0.12"), to_wire16(80), Protocol::kTcp), dp::kNoIndex);
}

// What is asked for once is one next hop; a static MAC of its own makes another.
TEST(SiteTable, NextHopsByPortAndAddress) {
  dp::SiteConfig config = small_site(4, 10);
  for (size_t n = 0; n < 3; ++n) {
    config.scis[0].instances[n].address = ip("10.1.0.11");
    config.scis[0].instances[n].port = static_cast<uint16_t>(8080 + n);
    config.scis[0].instances[n].mac.reset();
  }
  config.scis[0].instances[2].mac = mac("02:00:00:01:00:03");
  const auto table = built(config);
  EXPECT_EQ(table->next_hops.size(), 4u);  // the gateway, two of .11, one of .14
  EXPECT_EQ(table->instances[0].next_hop, table->instances[1].next_hop);
  std::set<dp::NextHopIndex> found;
  for (auto h = table->find_next_hop(1, ip("10.1.0.11")); h != dp::kNoIndex; h = table->next_hops[h].same_address) {
    EXPECT_TRUE(found.insert(h).second);
  }
  EXPECT_EQ(found, (std::set{table->instances[0].next_hop, table->instances[2].next_hop}));
  EXPECT_EQ(table->find_next_hop(0, ip("192.0.2.1")), table->layout().gateways_v4[0]);
  EXPECT_EQ(table->find_next_hop(1, ip("192.0.2.1")), dp::kNoIndex);
  EXPECT_EQ(table->find_next_hop(0, ip("10.1.0.11")), dp::kNoIndex);
  EXPECT_EQ(table->find_next_hop(1, ip("10.1.0.99")), dp::kNoIndex);
}

TEST(SiteTable, LocalAddressesAndWhoAnswersForThem) {
  dp::SiteConfig config = small_site(1, 10);
  config.scis[0].endpoints.push_back({ip("203.0.113.7"), 80, Protocol::kTcp});  // on no port's network
  const auto table = built(config);
  EXPECT_EQ(table->local(ip("192.0.2.2")), LocalKind::kPort);
  EXPECT_EQ(table->local(ip("192.0.2.10")), LocalKind::kSci);
  EXPECT_EQ(table->local(ip("192.0.2.1")), LocalKind::kNone);
  EXPECT_TRUE(table->answers_for(0, ip("192.0.2.10")));
  EXPECT_FALSE(table->answers_for(1, ip("192.0.2.10")));
  EXPECT_TRUE(table->answers_for(0, ip("203.0.113.7")));
  EXPECT_TRUE(table->answers_for(1, ip("203.0.113.7")));
  EXPECT_FALSE(table->answers_for(0, ip("10.1.0.2")));
}

TEST(SiteTable, LongestPrefixDecides) {
  dp::SiteConfig config = small_site(1, 10);
  config.ports[0].addresses.push_back(*Prefix::parse("10.1.2.1/24"));
  const auto table = built(config);
  EXPECT_EQ(table->on_link(ip("10.1.2.77")), 0);
  EXPECT_EQ(table->on_link(ip("10.1.3.77")), 1);
  EXPECT_EQ(table->on_link(ip("198.51.100.1")), dp::kNoPort);
}

TEST(SiteTable, SCI132EveryMemberOfARuleMustMatch) {
  dp::SiteConfig config = small_site(1, 10);
  config.forwarders = {{.any = false, .port = 0, .mac = kSiteRouter, .vlan = {}},
                       {.any = false, .port = dp::kNoPort, .mac = {}, .vlan = uint16_t{7}}};
  const auto table = built(config);
  const MacAddress other = mac("02:00:00:00:00:99");
  EXPECT_TRUE(table->authorised(0, kSiteRouter, 0));
  EXPECT_FALSE(table->authorised(1, kSiteRouter, 0));
  EXPECT_FALSE(table->authorised(0, other, 0));
  EXPECT_TRUE(table->authorised(1, other, 7));
  EXPECT_FALSE(table->authorised(1, other, 8));
}

TEST(SiteTable, D47NamesAreLocalToTheSci) {
  const auto table = built(small_site(2, 10));
  EXPECT_EQ(table->instance_by_name("192.0.2.10:80", "si-2"), 1u);
  EXPECT_EQ(table->instance_by_name("192.0.2.10:80", "si-3"), dp::kNoIndex);
  EXPECT_EQ(table->instance_by_name("192.0.2.11:80", "si-2"), dp::kNoIndex);
}

TEST(SiteTable, InstancesShareAnEndpointAcrossScis) {
  dp::SiteConfig config = small_site(1, 10);
  dp::SciConfig second = config.scis[0];
  second.csci_id = "192.0.2.11:80";
  second.endpoints = {{ip("192.0.2.11"), 80, Protocol::kTcp}};
  config.scis.push_back(second);
  const auto table = built(config);
  EXPECT_EQ(table->endpoints.size(), 1u);
  EXPECT_EQ(table->endpoint_of_instance[0], 0u);
  EXPECT_EQ(table->endpoint_of_instance[1], 0u);
}

// D-45: rounded down, at least one; none of nothing.
TEST(SiteTable, D45ProvisionalShare) {
  EXPECT_EQ(dp::provisional_limit(0.5, 10), 5u);
  EXPECT_EQ(dp::provisional_limit(0.5, 5), 2u);
  EXPECT_EQ(dp::provisional_limit(0.5, 1), 1u);
  EXPECT_EQ(dp::provisional_limit(0.5, 0), 0u);
  EXPECT_EQ(dp::provisional_limit(1.0, 7), 7u);
}

}  // namespace
}  // namespace margay::test
