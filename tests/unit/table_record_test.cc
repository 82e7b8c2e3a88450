// SPDX-License-Identifier: Apache-2.0
// The lines of a recorded table: every field comes back as it went, and what is wrong is named.
#include "dataplane/table_record.h"

#include <gtest/gtest.h>

#include "tests/support/random_snapshot.h"
#include "tests/support/seed.h"

namespace margay::dp {
namespace {

using shared_table::Snapshot;
using test::Random;

RecordedSetting random_setting(Random& random) {
  RecordedSetting s{test::random_text(random), test::random_text(random), {}, {}, {}, {}};
  if (random.one_in(2)) s.admin = static_cast<Admin>(random.below(3));
  if (s.admin == Admin::kDraining) s.drain_deadline = random.next();
  if (random.one_in(2)) s.max_sessions = random.below(kSessionsMax + 1);
  if (random.one_in(2)) s.weight = static_cast<uint16_t>(random.below(65536));
  return s;
}

RecordedState random_state(Random& random) {
  RecordedState s;
  if (random.one_in(2)) s.site = test::random_text(random);
  s.monotonic = random.next();
  for (uint32_t p = 0; p < random.below(4); ++p) {
    RecordedPort& port = s.ports.emplace_back();
    port.name = test::random_text(random);
    port.mac = MacAddress{{2, 0, 0, 0, 0, static_cast<uint8_t>(p)}};
    const IpAddress address = test::random_address(random);
    port.addresses = {{address, static_cast<uint8_t>(random.below(address.is_v4() ? 33 : 129))}};
  }
  s.forwarding = random.one_in(2);
  s.waiting = random.one_in(2);
  s.table = test::random_snapshot(random);
  s.table.base = 0;
  s.table.removed.clear();
  for (uint32_t n = 0; n < random.below(4); ++n) s.set.push_back(random_setting(random));
  return s;
}

TEST(TableRecord, IsReadAsItWasWritten) {
  const uint64_t seed = test::test_seed();
  SCOPED_TRACE(test::seed_text(seed));
  Random random(seed);
  for (int round = 0; round < 300; ++round) {
    const TableLine lines[] = {{random.next(), random_state(random)},
                               {random.next(), test::random_snapshot(random)},
                               {random.next(), random_setting(random)},
                               {random.next(), RecordedForwarding{random.one_in(2)}}};
    for (const TableLine& line : lines) {
      const auto read = parse_line(format_line(line));
      ASSERT_TRUE(read) << read.error().message << format_line(line);
      ASSERT_EQ(*read, line) << format_line(line);
    }
  }
}

const std::string kInstance =
    R"({"index":7,"generation":1,"health":"DEGRADED","admin":"enabled","drain_deadline":0,)"
    R"("health_since":1700000000000000000,"serves_since":0,"limit":100,"load":0.25,"load_active":40,)"
    R"("load_until":1700000000000000003,"load_lifetime":15.0,"id":"si-1","address":"10.1.0.11","port":8080,)"
    R"("mac":"02:00:00:00:01:0b","max_sessions":200,"weight":1,"preference":100,"price":10,"security_level":5})";
const std::string kSnapshot =
    R"({"time":1700000000000000001,"snapshot":{"generation":5,"base":4,"scis":[{"index":3,"csci_id":"192.0.2.10:80",)"
    R"("cs_id":"ARS","endpoints":[{"address":"192.0.2.10","port":80,"protocol":"tcp"}],"mode":"nat",)"
    R"("gue.port":6080,"gue.variant":0,"gue.checksum":"computed","mss_clamp":0,)"
    R"("balance":"slot-based","selection.cheapest_first":true,"selection.security_level_min":4,)"
    R"("affinity.timeout":300.0,"timers.embryonic":0.5,"timers.closing":10.0,)"
    R"("timers.time_wait":60.0,"timers.reset_grace":2.0,"timers.unreplied":5.0,"when_none_healthy":"degraded",)"
    R"("when_full":"reject","on_unhealthy":"reset","unknown_flow":"reset","provisional.share":0.5,)"
    R"("degradation_factor":0.5,"drain_deadline":600.0,"ramp":10.0,"instances":[)" +
    kInstance + R"(]}],"removed":[{"index":9}]}})";
const std::string kState =
    R"({"time":1700000000000000000,"state":{"site":"edge-1","monotonic":5,"ports":[{"name":"net0",)"
    R"("mac":"02:00:00:00:0f:00","addresses":[{"address":"192.0.2.2/24"}]}],"forwarding":true,"waiting":false,)"
    R"("table":{"generation":1,"base":0,"scis":[],"removed":[]},"set":[{"csci_id":"192.0.2.10:80","si_id":"si-1",)"
    R"("admin":"draining","drain_deadline":1700000000000000002,"max_sessions":3,"weight":0}]}})";

TEST(TableRecord, FieldsHaveTheNamesOfTheSiteFile) {
  Snapshot s;
  s.generation = 5, s.base = 4;
  s.removed = {9};
  shared_table::SciRecord& sci = s.scis.emplace_back();
  sci.index = 3;
  sci.policy.csci_id = "192.0.2.10:80", sci.policy.cs_id = "ARS";
  sci.policy.endpoints = {{*IpAddress::parse("192.0.2.10"), 80, Protocol::kTcp}};
  sci.policy.timers.embryonic = 500 * kMillisecond;
  sci.policy.cheapest_first = true, sci.policy.security_level_min = 4;
  shared_table::InstanceRecord& i = sci.instances.emplace_back();
  i.index = 7;
  i.health = HealthState::kDegraded;
  i.health_since = 1'700'000'000 * kSecond;
  i.limit = 100;
  i.load = 0.25, i.load_active = 40;
  i.load_until = 1'700'000'000 * kSecond + 3, i.load_lifetime = 15 * kSecond;
  i.config = {"si-1", *IpAddress::parse("10.1.0.11"), 8080, MacAddress::parse("02:00:00:00:01:0b").value(), 200, 1};
  i.config.price = 10, i.config.security_level = 5;
  EXPECT_EQ(format_line({1'700'000'000 * kSecond + 1, s}), kSnapshot);

  RecordedState state;
  state.site = "edge-1", state.monotonic = 5;
  state.ports = {{"net0", MacAddress::parse("02:00:00:00:0f:00").value(), {Prefix::parse("192.0.2.2/24").value()}}};
  state.table.generation = 1;
  state.set = {{"192.0.2.10:80", "si-1", Admin::kDraining, 1'700'000'000 * kSecond + 2, 3, uint16_t{0}}};
  EXPECT_EQ(format_line({1'700'000'000 * kSecond, state}), kState);
  EXPECT_EQ(format_line({5, RecordedForwarding{false}}), R"({"time":5,"forwarding":false})");
  EXPECT_EQ(format_line({5, RecordedSetting{"c", "s", {}, {}, {}, {}}}),
            R"({"time":5,"instance":{"csci_id":"c","si_id":"s"}})");
}

TEST(TableRecord, WhatIsWrongIsNamed) {
  const std::string sci = "snapshot.scis[0].", instance = sci + "instances[0].";
  const struct {
    const std::string& line;
    std::string from, to, error;
  } rows[] = {
      {kSnapshot, "{\"time\"", "[\"time\"", "expected one JSON object"},
      {kSnapshot, "{\"time\":1700000000000000001,", "{", "time: is missing, expected 0 to 18446744073709551615"},
      {kSnapshot, "1700000000000000001", "-1", "time: -1, expected 0 to 18446744073709551615"},
      {kSnapshot, "1700000000000000001", "1.5", "time: 1.5, expected 0 to 18446744073709551615"},
      {kSnapshot, "\"snapshot\"", "\"snap\"", "forwarding: is missing, expected true or false"},
      {kSnapshot, "\"generation\":5", "\"generation\":4", "base: 4, expected below the generation 4"},
      {kSnapshot, "\"removed\":[{\"index\":9}]", "\"removed\":9",
       "snapshot.removed: 9, expected a list of at most 65536"},
      {kSnapshot, "[{\"index\":9}]", "[9]", "snapshot.removed[0]: expected an object"},
      {kSnapshot, "\"index\":3", "\"index\":65536", sci + "index: 65536, expected 0 to 65535"},
      {kSnapshot, "\"192.0.2.10:80\"", "\"\"", sci + "csci_id: \"\", expected a text of 1 to 255 bytes"},
      {kSnapshot, "\"ARS\"", "\"" + std::string(256, 'x') + "\"",
       sci + "cs_id: \"" + std::string(39, 'x') + "..., expected a text of 1 to 255 bytes"},
      {kSnapshot, "\"ARS\"", "\"a\\u0001\"", "scis[0].cs_id: holds a control character"},
      {kSnapshot, "\"tcp\"", "\"icmp\"", sci + "endpoints[0].protocol: \"icmp\", expected tcp or udp"},
      {kSnapshot, "\"nat\"", "6", sci + "mode: 6, expected nat, l2-dsr, ipip or gue"},
      {kSnapshot, "\"computed\"", "\"none\"", sci + "gue.checksum: \"none\", expected computed or zero"},
      {kSnapshot, "\"gue.variant\":0", "\"gue.variant\":2", sci + "gue.variant: 2, expected 0 to 1"},
      {kSnapshot, "\"slot-based\"", "\"best\"",
       sci + "balance: \"best\", expected round-robin, least-connections, slot-based, weighted-response-time, "
             "resource-aware or consistent-hash"},
      {kSnapshot, "first\":true", "first\":1", sci + "selection.cheapest_first: 1, expected true or false"},
      {kSnapshot, "300.0", "86401", sci + "affinity.timeout: 86401, expected 0 to 86400 seconds"},
      {kSnapshot, "300.0", "\"300s\"", sci + "affinity.timeout: \"300s\", expected 0 to 86400 seconds"},
      {kSnapshot, "share\":0.5", "share\":1.5", sci + "provisional.share: 1.5, expected 0 to 1"},
      {kSnapshot, "\"ramp\":10.0,", "", sci + "ramp: is missing, expected 0 to 86400 seconds"},
      {kSnapshot, "\"DEGRADED\"", "\"degraded\"",
       instance + "health: \"degraded\", expected HEALTHY, DEGRADED, UNHEALTHY or UNKNOWN"},
      {kSnapshot, "\"limit\":100", "\"limit\":201",
       "scis[192.0.2.10:80].instances[si-1]: limit 201, expected at most max_sessions 200"},
      {kSnapshot, "10.1.0.11", "10.1.0.256", instance + "address: \"10.1.0.256\", expected an IPv4 or IPv6 address"},
      {kSnapshot, "02:00:00:00:01:0b", "02:00", instance + "mac: \"02:00\", expected a MAC address"},
      {kSnapshot, "\"load\":0.25", "\"load\":1.5", instance + "load: 1.5, expected 0 to 1"},
      {kSnapshot, "\"security_level\":5}", "\"security_level\":5,\"colour\":2}",
       instance + "\"colour\": there is no such field here"},
      {kState, "\"mac\":\"02:00:00:00:0f:00\",", "", "state.ports: net0 has no mac"},
      {kState, "192.0.2.2/24", "192.0.2.2/33",
       "state.ports[0].addresses[0].address: \"192.0.2.2/33\", expected an address with a prefix length"},
      {kState, "\"forwarding\":true", "\"forwarding\":1", "state.forwarding: 1, expected true or false"},
      {kState, "\"generation\":1,\"base\":0", "\"generation\":2,\"base\":1",
       "state.table.base: expected 0, a complete table"},
      {kState, "\"admin\":\"draining\"", "\"admin\":\"off\"",
       "state.set[0].admin: \"off\", expected enabled, draining or disabled"},
      {kState, "\"drain_deadline\":1700000000000000002,", "",
       "192.0.2.10:80 si-1: drain_deadline is missing, expected beside draining"},
      {kState, "\"table\":{\"generation\":1,\"base\":0,\"scis\":[],\"removed\":[]}", "\"table\":[]",
       "state.table: expected an object"},
  };
  for (const auto& row : rows) {
    std::string line = row.line;
    const size_t at = line.find(row.from);
    ASSERT_NE(at, std::string::npos) << row.from;
    ASSERT_TRUE(parse_line(line)) << parse_line(line).error().message;
    line.replace(at, row.from.size(), row.to);
    const auto read = parse_line(line);
    EXPECT_EQ(read ? "" : read.error().message, row.error) << line;
  }
}

TEST(TableRecord, TimesMoveFromClockToClock) {
  EXPECT_EQ(shifted(5, 7), 12u);
  EXPECT_EQ(shifted(5, -3), 2u);
  EXPECT_EQ(shifted(5, -7), 1u) << "0 would mean none";
  EXPECT_EQ(shifted(kNever - 3, 7), kNever);
  Snapshot s;
  shared_table::InstanceRecord& i = s.scis.emplace_back().instances.emplace_back();
  i.drain_deadline = 10, i.health_since = 20, i.load_until = 30, i.load_lifetime = 5;
  shift_times(s, 100);
  EXPECT_EQ(i.drain_deadline, 110u);
  EXPECT_EQ(i.health_since, 120u);
  EXPECT_EQ(i.load_until, 130u);
  EXPECT_EQ(i.load_lifetime, 5u);
  EXPECT_EQ(i.serves_since, 0u) << "has always been";
}

}  // namespace
}  // namespace margay::dp
