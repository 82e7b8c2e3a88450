// SPDX-License-Identifier: Apache-2.0
// From one table to the next by a snapshot: all or nothing, stable indices, at the price of what changed.
#include "dataplane/core/site_change.h"

#include <functional>
#include <set>

#include <gtest/gtest.h>

namespace margay::dp {
namespace {

using shared_table::InstanceRecord;
using shared_table::SciRecord;
using shared_table::Snapshot;

const MacAddress kMacs[] = {MacAddress{{2, 0, 0, 0, 0x0f, 0}}};

IpAddress ip(const std::string& text) { return *IpAddress::parse(text); }

SiteConfig ports() {
  SiteConfig config;
  PortConfig& port = config.ports.emplace_back();
  port.name = "net0";
  port.addresses = {*Prefix::parse("192.0.2.2/24"), *Prefix::parse("10.1.0.2/16")};
  port.gateways = {ip("192.0.2.1")};
  config.forwarders.push_back({true, kNoPort, {}, {}});
  return config;
}

InstanceRecord instance(uint32_t index, uint16_t generation = 1) {
  InstanceRecord i;
  i.index = index;
  i.generation = generation;
  i.health = HealthState::kHealthy;
  i.limit = 100;
  i.config.id = "si-" + std::to_string(index);
  i.config.address = ip("10.1." + std::to_string(1 + index / 250) + "." + std::to_string(1 + index % 250));
  i.config.port = 8080;
  i.config.max_sessions = 100;
  return i;
}

// SCI `index` at 192.0.2.(10 + index):80 with instances first .. first + count - 1.
SciRecord sci(uint32_t index, uint32_t first, uint32_t count) {
  SciRecord s;
  s.index = index;
  s.policy.csci_id = "192.0.2." + std::to_string(10 + index) + ":80";
  s.policy.cs_id = "ARS";
  s.policy.endpoints = {{ip("192.0.2." + std::to_string(10 + index)), 80, Protocol::kTcp}};
  for (uint32_t i = first; i < first + count; ++i) s.instances.push_back(instance(i));
  return s;
}

class SiteChangeTest : public ::testing::Test {
 protected:
  Result<std::unique_ptr<SiteTable>> apply(std::vector<SciRecord> scis, bool complete = true,
                                           std::vector<uint32_t> removed = {}) {
    Snapshot s;
    s.generation = table_->generation + 1;
    s.base = complete ? 0 : table_->generation;
    s.scis = std::move(scis);
    s.removed = std::move(removed);
    return change_.apply(*table_, s);
  }
  void take(std::vector<SciRecord> scis, bool complete = true, std::vector<uint32_t> removed = {}) {
    auto next = apply(std::move(scis), complete, std::move(removed));
    ASSERT_TRUE(next) << next.error().message;
    table_ = std::move(*next);
  }
  std::string error(std::vector<SciRecord> scis, bool complete = true, std::vector<uint32_t> removed = {}) {
    auto next = apply(std::move(scis), complete, std::move(removed));
    return next ? "" : next.error().message;
  }
  FrontendIndex frontend(const std::string& address) const {
    return table_->find_frontend(ip(address), to_wire16(80), Protocol::kTcp);
  }
  EndpointIndex endpoint(const std::string& address) const {
    return table_->find_endpoint(ip(address), to_wire16(8080), Protocol::kTcp);
  }

  SiteConfig config_ = ports();
  std::set<InstanceIndex> in_use_;
  SiteChange change_{config_, 1000, 100, [this](InstanceIndex i) { return in_use_.count(i) > 0; },
                     [](Nanoseconds t) { return to_tick(t); }};
  std::unique_ptr<SiteTable> table_ = SiteTable::without_scis(config_, kMacs);
};

TEST_F(SiteChangeTest, ACompleteSnapshotIsTheSite) {
  SciRecord first = sci(0, 0, 2);
  first.instances[1].health = HealthState::kDegraded;
  first.instances[1].limit = 50;
  first.instances[1].admin = Admin::kDraining;
  first.instances[1].drain_deadline = 20 * kSecond;
  first.instances[1].serves_since = 7 * kSecond;
  first.policy.ramp = 30 * kSecond;
  first.policy.on_unhealthy = OnUnhealthy::kKeep;
  take({first, sci(3, 7, 1)});
  EXPECT_EQ(table_->generation, 1u);
  ASSERT_NE(frontend("192.0.2.10"), kNoIndex);
  EXPECT_EQ(table_->frontends[frontend("192.0.2.10")].sci, 0u);
  EXPECT_EQ(table_->frontends[frontend("192.0.2.13")].sci, 3u);
  EXPECT_EQ(table_->instances[1].health, HealthState::kDegraded);
  EXPECT_EQ(table_->instances[1].limit, 50u);
  EXPECT_EQ(table_->instances[1].max_sessions, 100u);
  EXPECT_EQ(table_->instances[1].drain_deadline, 2000u) << "20 s in ticks of 10 ms";
  EXPECT_EQ(table_->instances[1].ramp_end, 3700u);
  EXPECT_EQ(table_->scis[0].ramp, 3000u);
  EXPECT_EQ(table_->instances[1].on_unhealthy, OnUnhealthy::kKeep);
  EXPECT_EQ(table_->instances[7].sci, 3u);
  EXPECT_EQ(table_->endpoint_of_instance[7], endpoint("10.1.1.8"));
  EXPECT_TRUE(table_->scis[1].gone()) << "never used";
  EXPECT_EQ(snapshot_of(*table_).scis, (std::vector{first, sci(3, 7, 1)}));
}

TEST_F(SiteChangeTest, AChangeOfHealthSharesTheRest) {
  std::vector<SciRecord> all;
  for (uint32_t s = 0; s < 40; ++s) all.push_back(sci(s, s * 20, 20));
  take(all);
  all[5].instances[3].health = HealthState::kUnhealthy;
  auto next = apply({all[5]}, false);
  ASSERT_TRUE(next);
  EXPECT_EQ((*next)->instances[103].health, HealthState::kUnhealthy);
  EXPECT_EQ(table_->instances[103].health, HealthState::kHealthy) << "readers of the old table see the old one";
  EXPECT_EQ(&(*next)->layout(), &table_->layout());
  EXPECT_NE(&(*next)->instances[103], &table_->instances[103]);
  EXPECT_EQ(&(*next)->instances[700], &table_->instances[700]);
  EXPECT_EQ(&(*next)->scis[39], &table_->scis[39]);
}

TEST_F(SiteChangeTest, WhatStaysKeepsItsIndices) {
  take({sci(0, 0, 3), sci(1, 10, 3)});
  const auto was_frontend = frontend("192.0.2.11");
  const auto was_endpoint = endpoint("10.1.1.11");
  const auto was_hop = table_->instances[10].next_hop;
  SciRecord grown = sci(1, 10, 4);
  take({grown}, false, {0});
  EXPECT_EQ(frontend("192.0.2.11"), was_frontend);
  EXPECT_EQ(endpoint("10.1.1.11"), was_endpoint);
  EXPECT_EQ(table_->instances[10].next_hop, was_hop);
  EXPECT_NE(endpoint("10.1.1.14"), kNoIndex) << "the new instance";
  EXPECT_EQ(frontend("192.0.2.10"), kNoIndex) << "the removed SCI";
  EXPECT_EQ(endpoint("10.1.1.1"), kNoIndex);
  EXPECT_EQ(table_->local(ip("192.0.2.10")), LocalKind::kNone) << "no ARP answer for it any more";
  EXPECT_TRUE(table_->instances[0].gone);
  EXPECT_FALSE(table_->instances[0].keeps_sessions(0));
  EXPECT_FALSE(table_->instances[0].takes_new_flows(HealthState::kHealthy));
  EXPECT_EQ(table_->next_hops[0].address, ip("192.0.2.1")) << "the gateway's";
}

TEST_F(SiteChangeTest, IndicesThatBindingsNameAreKept) {
  take({sci(0, 0, 2), sci(1, 10, 1)});
  const auto old_frontend = frontend("192.0.2.10");
  const auto old_endpoint = endpoint("10.1.1.1");
  in_use_ = {0};
  take({}, false, {0});
  EXPECT_EQ(table_->endpoint_of_instance[0], old_endpoint) << "its bindings are found by it";
  EXPECT_NE(table_->endpoint_of_instance[1], kNoIndex) << "a worker that has the older table may bind a flow yet";
  take({sci(2, 20, 4)}, false);
  EXPECT_EQ(table_->endpoint_of_instance[1], kNoIndex);
  EXPECT_NE(frontend("192.0.2.12"), old_frontend);
  for (InstanceIndex i = 20; i < 24; ++i) EXPECT_NE(table_->instances[i].endpoint, old_endpoint);
  in_use_.clear();
  take({sci(3, 30, 1)}, false);  // nobody names them now: free for the next one
  std::set<EndpointIndex> endpoints;
  std::set<FrontendIndex> frontends;
  take({sci(4, 40, 3)}, false);
  for (InstanceIndex i = 40; i < 43; ++i) endpoints.insert(table_->instances[i].endpoint);
  EXPECT_EQ(endpoints.count(old_endpoint), 1u);
  EXPECT_EQ(frontend("192.0.2.14"), old_frontend);
}

// A worker binds flows by a frontend until it has passed the table without it.
TEST_F(SiteChangeTest, AFrontendStaysUntilEveryWorkerHasPassedTheTableWithoutIt) {
  SciRecord two = sci(0, 0, 1);
  two.policy.endpoints.push_back({ip("192.0.2.99"), 80, Protocol::kTcp});
  take({two});
  const auto second = frontend("192.0.2.99");
  take({sci(0, 0, 1)}, false);
  change_.passed = false;
  for (uint32_t s = 1; s < 4; ++s) {
    take({sci(s, 10 * s, 1)}, false);
    EXPECT_EQ(table_->frontends[second].sci, 0u) << "a binding made meanwhile finds its SCI";
  }
  change_.passed = true;
  take({sci(4, 40, 1)}, false);  // free for the layout after this one
  take({sci(5, 50, 1)}, false);
  EXPECT_EQ(frontend("192.0.2.15"), second);
}

// A binding is found by its frontend: nobody else gets the frontend's index while one may be there.
TEST_F(SiteChangeTest, AFrontendThatBindingsNameIsNotGivenAway) {
  SciRecord two = sci(0, 0, 1);
  two.policy.endpoints.push_back({ip("192.0.2.99"), 80, Protocol::kTcp});
  take({two});
  const auto second = frontend("192.0.2.99");
  in_use_ = {0};
  take({sci(0, 0, 1)}, false);  // the SCI has that endpoint no longer, its instance still has bindings
  for (uint32_t s = 1; s < 5; ++s) {
    take({sci(s, 10 * s, 1)}, false);
    EXPECT_NE(frontend("192.0.2." + std::to_string(10 + s)), second);
  }
}

TEST_F(SiteChangeTest, AnInstanceThatLeftBeforeItsSciStillCounts) {
  take({sci(0, 0, 2)});
  const auto old_frontend = frontend("192.0.2.10");
  in_use_ = {1};
  take({sci(0, 0, 1)}, false);  // instance 1 leaves and still has bindings
  take({}, false, {0});
  for (uint32_t s = 1; s < 5; ++s) {
    take({sci(s, 10 * s, 1)}, false);
    EXPECT_NE(frontend("192.0.2." + std::to_string(10 + s)), old_frontend);
  }
  SciRecord other = sci(0, 50, 1);
  other.policy.csci_id = "other";
  EXPECT_EQ(error({other}, false), "scis[other]: index 0 is still in use by 192.0.2.10:80");
  in_use_.clear();
  EXPECT_EQ(error({other}, false), "");
}

TEST_F(SiteChangeTest, AnIndexServesAgainUnderAHigherGenerationOnly) {
  take({sci(0, 0, 2)});
  SciRecord other = sci(0, 0, 2);
  other.instances[1] = instance(1);
  other.instances[1].config.id = "si-new";
  EXPECT_EQ(
      error({other}, false),
      "scis[192.0.2.10:80].instances[si-new]: index 1 is si-1's in generation 1, expected a higher one for another "
      "instance");
  // Another host, another port, or the same in another SCI are other instances too.
  const std::string si1 = "index 1 is si-1's in generation 1, expected a higher one for another instance";
  for (const auto& change : std::initializer_list<std::function<void(SciRecord&)>>{
           [](SciRecord& s) { s.instances[1].config.address = ip("10.1.9.9"); },
           [](SciRecord& s) { s.instances[1].config.port = 8081; }}) {
    SciRecord same_name = sci(0, 0, 2);
    change(same_name);
    EXPECT_EQ(error({same_name}, false), "scis[192.0.2.10:80].instances[si-1]: " + si1);
  }
  SciRecord elsewhere = sci(1, 5, 1);
  elsewhere.instances.push_back(instance(1));
  EXPECT_EQ(error({sci(0, 0, 1), elsewhere}), "scis[192.0.2.11:80].instances[si-1]: " + si1);
  other.instances[1].generation = 2;
  const std::string in_use = "scis[192.0.2.10:80].instances[si-new]: index 1 is still in use by si-1";
  EXPECT_EQ(error({other}, false), in_use) << "it is there: a worker may bind a flow to it at any moment";
  take({sci(0, 0, 1)}, false);
  in_use_ = {1};
  EXPECT_EQ(error({other}, false), in_use);
  in_use_.clear();
  take({other}, false);
  EXPECT_EQ(table_->instances[1].si_id, "si-new");
  EXPECT_EQ(table_->instances[1].generation, 2);
}

// The index of an SCI that went is used again after one of its instances' indices was.
TEST_F(SiteChangeTest, AnIndexThatAnotherSciHasIsNotTakenAwayWithItsFirstOne) {
  take({sci(0, 0, 2), sci(1, 5, 1)});
  take({}, false, {0});
  SciRecord second = sci(1, 5, 1);
  second.instances.push_back(instance(1, 2));
  take({second}, false);
  SciRecord again = sci(0, 7, 1);
  again.policy.csci_id = "another";
  take({again}, false);
  EXPECT_FALSE(table_->instances[1].gone);
  EXPECT_EQ(table_->instances[1].sci, 1u);
  EXPECT_TRUE(table_->instances[0].gone);
  // In one snapshot: SCI 0 goes, and SCI 1 would take its instance's index.
  second.instances.push_back(instance(7, 2));
  EXPECT_EQ(error({second}, false, {0}), "scis[192.0.2.11:80].instances[si-7]: index 7 is still in use by si-7");
  take({}, false, {0});
  take({second}, false);
  EXPECT_FALSE(table_->instances[7].gone);
}

TEST_F(SiteChangeTest, WhatDoesNotFitIsRefusedWhole) {
  take({sci(0, 0, 2), sci(1, 10, 1)});
  const uint64_t before = table_->version;
  const auto with = [](SciRecord record, const std::function<void(SciRecord&)>& change) {
    change(record);
    return std::vector{record};
  };
  EXPECT_EQ(error(with(sci(2, 0, 0), [](SciRecord& s) { s.policy.csci_id = "192.0.2.10:80"; }), false),
            "scis[192.0.2.10:80]: index 2, expected 0, which it has");
  EXPECT_EQ(error(with(sci(1, 10, 1), [](SciRecord& s) { s.policy.csci_id = "other"; }), false),
            "scis[other]: index 1 is still in use by 192.0.2.11:80");
  EXPECT_EQ(error(with(sci(2, 20, 1), [](SciRecord& s) { s.policy.endpoints[0].address = ip("192.0.2.10"); }), false),
            "scis[192.0.2.12:80].endpoints: 192.0.2.10:80/tcp belongs to another SCI already");
  EXPECT_EQ(error({sci(2, 999, 2)}, false), "scis[192.0.2.12:80].instances[si-1000]: index 1000, expected below 1000");
  EXPECT_EQ(error(with(sci(2, 20, 1), [](SciRecord& s) { s.instances[0].config.address = ip("192.0.2.2"); }), false),
            "scis[192.0.2.12:80].instances[si-20].address: 192.0.2.2 is an address of the SCI itself");
  EXPECT_EQ(
      error(with(sci(2, 20, 1), [](SciRecord& s) { s.instances[0].config.address = ip("2001:db8::1"); }), false),
      "scis[192.0.2.12:80].instances[si-20].address: 2001:db8::1 is on no port's network and there is no gateway of "
      "its family");
  EXPECT_EQ(error(with(sci(2, 20, 1),
                       [](SciRecord& s) {
                         s.policy.mode = Mode::kL2Dsr;
                         s.instances[0].config.address = ip("203.0.113.1");
                       }),
                  false),
            "scis[192.0.2.12:80].instances[si-20].address: 203.0.113.1 is on no port's network, which l2-dsr needs");
  in_use_ = {10};
  EXPECT_EQ(error(with(sci(1, 10, 1), [](SciRecord& s) { s.policy.mode = Mode::kL2Dsr; }), false),
            "scis[192.0.2.11:80]: mode cannot change while bindings of the other mode are there");
  EXPECT_EQ(error({sci(100, 20, 1)}, false), "scis[192.0.2.110:80]: index 100, expected below 100");
  EXPECT_EQ(error({}, false, {7}), "removed: SCI 7 is no part of the site");
  EXPECT_EQ(table_->version, before);
  EXPECT_EQ(frontend("192.0.2.12"), kNoIndex);
}

TEST_F(SiteChangeTest, TunnelsBeginAtOurAddressOnTheNextHopsNetwork) {
  SciRecord s = sci(0, 0, 2);
  s.policy.mode = Mode::kGue;
  s.instances[1].config.address = ip("203.0.113.1");  // behind 192.0.2.1
  take({s});
  EXPECT_EQ(table_->instances[0].tunnel, (Tunnel{ip("10.1.0.2"), to_wire16(6080), 32, true, true}));
  EXPECT_EQ(table_->instances[1].tunnel, (Tunnel{ip("192.0.2.2"), to_wire16(6080), 32, true, true}));
  EXPECT_EQ(table_->instances[0].bytes_added, 32);
  EXPECT_EQ(table_->instances[0].endpoint, kNoIndex) << "replies do not come by here";
  EXPECT_EQ(table_->mtu_to(table_->instances[0]), 1468);

  s.policy.gue = {5555, 1, UdpChecksum::kZero};
  s.instances[0].config.weight = 7;
  in_use_ = {0, 1};
  take({s}, false);
  EXPECT_EQ(table_->instances[0].tunnel, (Tunnel{ip("10.1.0.2"), to_wire16(5555), 28, false, false}));
  EXPECT_EQ(table_->mtu_to(table_->instances[0]), 1472);

  in_use_ = {};
  s.policy.mode = Mode::kIpip;
  take({s}, false);
  EXPECT_EQ(table_->instances[0].tunnel, (Tunnel{ip("10.1.0.2"), 0, 20, false, true}));
  s.policy.mode = Mode::kL2Dsr;
  s.instances.pop_back();
  take({s}, false);
  EXPECT_EQ(table_->instances[0].bytes_added, 0);
  EXPECT_EQ(table_->mtu_to(table_->instances[0]), 1500);
}

TEST_F(SiteChangeTest, TunnelsNeedRoomForIpv6) {
  config_.ports[0].mtu = 1311;
  SciRecord s = sci(2, 20, 1);
  s.policy.endpoints[0].address = ip("2001:db8::12");
  s.policy.mode = Mode::kGue;
  const std::string expected = "mtu 1311 of its port, expected at least 1312 in mode gue";
  EXPECT_EQ(error({s}), "scis[192.0.2.12:80].instances[si-20].address: " + expected);
  s.policy.gue.variant = 1;
  take({s});
  s.policy.gue.variant = 0;
  EXPECT_EQ(error({s}), "scis[192.0.2.12:80].instances[si-20].address: " + expected);
}

TEST_F(SiteChangeTest, WhatACompleteSnapshotDoesNotNameIsGone) {
  take({sci(0, 0, 2), sci(1, 10, 1)});
  take({sci(0, 0, 2)});
  EXPECT_EQ(frontend("192.0.2.11"), kNoIndex);
  EXPECT_TRUE(table_->instances[10].gone);
  EXPECT_NE(frontend("192.0.2.10"), kNoIndex);
  EXPECT_EQ(error({}, false, {1}), "removed: SCI 1 is no part of the site");
}

TEST_F(SiteChangeTest, GenerationsRiseFromWhatRuns) {
  take({sci(0, 0, 1)});
  Snapshot s;
  s.generation = 1;
  EXPECT_EQ(change_.apply(*table_, s).error().message, "generation 1, expected above 1, which runs");
  s.generation = 9;
  s.base = 5;
  EXPECT_EQ(change_.apply(*table_, s).error().message, "a change of generation 5, but 1 runs");
  s.base = 1;
  EXPECT_TRUE(change_.apply(*table_, s));
}

}  // namespace
}  // namespace margay::dp
