// SPDX-License-Identifier: Apache-2.0

// Each command's text and JSON against values set up by hand: counters written, packets sent through two workers.

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <atomic>
#include <set>

#include "tests/support/cli_plane.h"

namespace margay::test {
namespace {

using nlohmann::json;

const std::string kSci = "192.0.2.10:80";

class CliCommandsTest : public ::testing::Test {
 protected:
  json show(const std::string& line) {
    const std::string text = cli_.run(line, true);
    EXPECT_TRUE(json::accept(text)) << line << ": " << text;
    return json::parse(text, nullptr, false);
  }

  static std::string client_of(size_t connection) {
    return "198.51.100." + std::to_string(1 + connection % 200) + ":" + std::to_string(20000 + connection);
  }

  // `count` TCP connections opened by SYNs; returns how many fell to each worker.
  std::array<size_t, CliPlane::kWorkers> open_connections(size_t count) {
    std::array<size_t, CliPlane::kWorkers> by_worker{};
    for (size_t n = 0; n < count; ++n) {
      ++by_worker[cli_.receive(0, tcp(client_of(n), kSci).flags(kSyn).seq(1000))];
    }
    return by_worker;
  }

  CliPlane cli_;
};

TEST_F(CliCommandsTest, ShowPortInfo) {
  const json ports = show("show port info all")["ports"];
  ASSERT_EQ(ports.size(), 2U);
  EXPECT_EQ(ports[0]["port"], "net0");
  EXPECT_EQ(ports[0]["mac"], "02:00:00:00:0f:00");
  EXPECT_EQ(ports[0]["link"], "up");
  EXPECT_EQ(ports[0]["link_mbps"], 10000);
  EXPECT_EQ(ports[0]["addresses"], json({"192.0.2.2/24", "2001:db8::2/64"}));
  EXPECT_EQ(ports[0]["vlan"], nullptr);
  EXPECT_EQ(ports[1]["vlan"], 100);
  EXPECT_EQ(ports[1]["link"], "down");
  EXPECT_EQ(ports[1]["link_mbps"], nullptr);
  const std::string text = cli_.run("show port info \"odd port\"");
  EXPECT_TRUE(text.starts_with("port odd port\n")) << text;
  EXPECT_NE(text.find("  driver       net_null\n"), std::string::npos) << text;
}

TEST_F(CliCommandsTest, ShowPortStatsAndXstats) {
  const json expected = {{"port", "net0"},    {"rx_packets", 1}, {"rx_bytes", 2}, {"rx_missed", 3}, {"rx_errors", 4},
                         {"rx_no_buffer", 5}, {"tx_packets", 6}, {"tx_bytes", 7}, {"tx_errors", 8}};
  EXPECT_EQ(show("show port stats net0")["ports"], json::array({expected}));
  EXPECT_EQ(show("show port stats all")["ports"].size(), 2U);
  EXPECT_EQ(cli_.run("show port xstats all"),
            "port  name             value\n"
            "net0  rx_good_packets     11\n"
            "net0  tx_good_packets     12\n");
}

TEST_F(CliCommandsTest, ClearPortStats) {
  EXPECT_EQ(cli_.run("clear port stats \"odd port\""), "port      cleared\nodd port  yes\n");
  EXPECT_EQ(cli_.ports.cleared, (std::array{false, true}));
  cli_.run("clear port stats all");
  EXPECT_EQ(cli_.ports.cleared, (std::array{true, true}));
  cli_.ports.fails = true;
  EXPECT_NE(cli_.run("clear port stats net0").find("1: port net0: the driver refuses"), std::string::npos);
}

TEST_F(CliCommandsTest, ShowSciAddsUpItsInstances) {
  cli_.shared.counters(0, 0).active.add(3);
  cli_.shared.counters(1, 0).active.add(4);
  cli_.shared.counters(1, 1).active.add(5);
  cli_.shared.counters(0, 1).opened.add(90);
  cli_.shared.refuse(0, 0, Refusal::kNoFreeSlot);
  cli_.shared.refuse(1, 0, Refusal::kNoFreeSlot);
  cli_.shared.refuse(1, 0, Refusal::kUnknownFlow);
  const json answer = show("show sci");
  const json& scis = answer["scis"];
  ASSERT_EQ(scis.size(), 2U);
  EXPECT_EQ(scis[0]["csci_id"], kSci);
  EXPECT_EQ(scis[0]["endpoints"], json({"192.0.2.10:80/tcp"}));
  EXPECT_EQ(scis[0]["mode"], "nat");
  EXPECT_EQ(scis[0]["balance"], "slot-based");
  EXPECT_EQ(scis[0]["instances"], 2);
  EXPECT_EQ(scis[0]["eligible"], 2);
  EXPECT_EQ(scis[0]["active"], 12);
  EXPECT_EQ(scis[0]["limit"], 300);
  EXPECT_EQ(scis[0]["opened"], 90);
  EXPECT_EQ(scis[0]["refused"], 3);
  EXPECT_EQ(scis[1]["limit"], 50);
  EXPECT_EQ(scis[1]["refused"], 0);
  EXPECT_EQ(answer["refused"], json::array({{{"csci_id", kSci}, {"cause", "no_free_slot"}, {"refused", 2}},
                                            {{"csci_id", kSci}, {"cause", "unknown_flow"}, {"refused", 1}}}));
}

// SCI-34, SCI-35: free = SUM over healthy instances of max_capacity - active_sessions, never less than 0 each; an
// instance that is unhealthy, draining (D-33) or disabled adds 0. SCI-93: it follows each allocation and release.
TEST_F(CliCommandsTest, SCI34SCI35SCI93FreeFollowsSessionsAndConditions) {
  const auto free = [&] { return show("show sci")["scis"][0]["free"].get<int>(); };
  const auto client = [](int n) { return "198.51.100." + std::to_string(n + 1) + ":40000"; };
  EXPECT_EQ(free(), 200 + 100);
  for (int n = 0; n < 8; ++n) {
    cli_.receive(0, tcp(client(n), kSci).flags(kSyn).seq(1000));
    EXPECT_EQ(free(), 300 - (n + 1));
  }
  ASSERT_EQ(cli_.shared.active(0), 8u);  // slot-based: the first has more free

  cli_.run("set instance 192.0.2.10:80 si-2 max-sessions 40");
  EXPECT_EQ(free(), (200 - 8) + 40);
  cli_.run("set instance 192.0.2.10:80 si-1 max-sessions 5");  // below what it has: 0, and not -3
  EXPECT_EQ(free(), 40);
  cli_.run("set instance 192.0.2.10:80 si-1 max-sessions 200");
  for (const char* condition : {"drain 30s", "disable"}) {
    cli_.run("set instance 192.0.2.10:80 si-2 " + std::string(condition));
    EXPECT_EQ(free(), 192) << condition;
    cli_.run("set instance 192.0.2.10:80 si-2 enable");
    EXPECT_EQ(free(), 192 + 40) << condition;
  }
  for (const dp::HealthState health : {dp::HealthState::kUnhealthy, dp::HealthState::kUnknown}) {
    cli_.plane.change([health](dp::SiteTable& next) { next.instances.edit(1).health = health; });
    EXPECT_EQ(free(), 192);
  }
  cli_.plane.change([](dp::SiteTable& next) { next.instances.edit(1).health = dp::HealthState::kHealthy; });

  for (int n = 0; n < 8; ++n) {  // both FINs acknowledged: the slot is free at once
    const auto reply =
        tcp("10.1.0.11:8080", client(n)).ether(mac("02:00:00:00:01:0b"), mac("02:00:00:00:0f:01")).vlan(100);
    cli_.receive(1, reply.flags(kSyn | kAck).seq(5000).ack(1001));
    cli_.receive(0, tcp(client(n), kSci).flags(kFin | kAck).seq(1001).ack(5001));
    cli_.receive(1, reply.flags(kFin | kAck).seq(5001).ack(1002));
    EXPECT_EQ(free(), 192 + 40 + n);
    cli_.receive(0, tcp(client(n), kSci).flags(kAck).seq(1002).ack(5002));
    EXPECT_EQ(free(), 192 + 40 + n + 1);
  }
}

TEST_F(CliCommandsTest, ShowInstance) {
  InstanceCounters& c = cli_.shared.counters(1, 1);
  c.packets_in.add(10);
  c.bytes_in.add(1000);
  c.packets_out.add(20);
  c.bytes_out.add(2000);
  c.bindings.add(2);
  cli_.shared.counters(0, 1).packets_in.add(1);
  const json instances = show("show instance")["instances"];
  ASSERT_EQ(instances.size(), 3U);
  const json& i = instances[1];
  EXPECT_EQ(i["csci_id"], kSci);
  EXPECT_EQ(i["si_id"], "si-2");
  EXPECT_EQ(i["address"], "10.1.0.12:8080");
  EXPECT_EQ(i["health"], "HEALTHY");
  EXPECT_EQ(i["admin"], "enabled");
  EXPECT_EQ(i["drain_seconds_left"], nullptr);
  EXPECT_EQ(i["max_sessions"], 100);
  EXPECT_EQ(i["set_by_operator"], json::array());
  EXPECT_EQ(i["packets_in"], 11);
  EXPECT_EQ(i["bytes_in"], 1000);
  EXPECT_EQ(i["packets_out"], 20);
  EXPECT_EQ(i["bytes_out"], 2000);
  EXPECT_EQ(i["bindings"], 2);
  EXPECT_EQ(show("show instance sci [2001:db8::10]:53")["instances"].size(), 1U);
}

// By hand: 3 of 1 ms and 1 of 2 ms have a mean of 1.25 ms; 95 % of the four lie below the 0.8th of the last one's
// bucket, 1.966080 to 2.097152 ms (buckets of 128 * 1024 ns there).
TEST_F(CliCommandsTest, ShowInstanceTellsHandshakesAndResponses) {
  cli_.shared.counters(1, 1).generation.set(1);
  for (const dp::Nanoseconds t : {1u, 1u, 1u, 2u}) cli_.shared.times(1, 1).responses.add(t * dp::kMillisecond);
  cli_.shared.counters(1, 1).provisional.add(4);
  cli_.shared.counters(0, 1).syn_unanswered.add(5);
  cli_.shared.counters(1, 1).resets.add(6);
  const json i = show("show instance")["instances"][1];
  EXPECT_EQ(i["response_mean_ms"], 1.25);
  EXPECT_NEAR(i["response_p95_ms"].get<double>(), 1.966080 + 0.8 * 0.131072, 0.001);
  EXPECT_EQ(i["handshake_mean_ms"], nullptr);
  EXPECT_EQ(i["handshake_p95_ms"], nullptr);
  EXPECT_EQ(i["provisional"], 4);
  EXPECT_EQ(i["syn_unanswered"], 5);
  EXPECT_EQ(i["resets"], 6);
}

TEST_F(CliCommandsTest, ShowTableWithoutAControlPlane) {
  const json answer = show("show table");
  EXPECT_EQ(answer["control"], "none");
  EXPECT_EQ(answer["instances"].size(), 3U);
  EXPECT_TRUE(cli_.run("show table").starts_with("no control plane (dataplane.control: none)"));
}

TEST_F(CliCommandsTest, ShowTableTellsOfTheControlPlaneAndTheOperator) {
  dp::TableStatus status;
  status.control = 4711;
  status.since = 1;
  status.connections = 2;
  status.taken = 7;
  status.refused = 3;
  status.acked = 6;
  status.last_refusal = "generation 5";
  status.stalled = {1};
  cli_.plane.table_status = [&] { return status; };
  cli_.run("set instance 192.0.2.10:80 si-2 max-sessions 40");
  shared_table::Snapshot s = cli_.plane.complete();
  s.generation = 7;
  s.scis[0].instances[1].health = HealthState::kDegraded;
  s.scis[0].instances[1].limit = 50;
  s.scis[0].instances[1].health_since = 1;
  ASSERT_TRUE(cli_.plane.apply(s));
  json answer = show("show table");
  EXPECT_EQ(answer["connected"], true);
  EXPECT_EQ(answer["fail_static"], false);
  EXPECT_EQ(answer["pid"], 4711);
  EXPECT_EQ(answer["generation"], 7);
  EXPECT_EQ(answer["acked"], 6);
  EXPECT_EQ(answer["connections"], 2);
  EXPECT_EQ(answer["taken"], 7);
  EXPECT_EQ(answer["refused"], 3);
  EXPECT_EQ(answer["last_refusal"], "generation 5");
  EXPECT_EQ(answer["stalled_workers"], json({1}));
  const json i = answer["instances"][1];
  EXPECT_EQ(i["si_id"], "si-2");
  EXPECT_EQ(i["health"], "DEGRADED");
  EXPECT_GT(i["health_seconds"], 1.0) << "since the machine began";
  EXPECT_EQ(i["limit"], 20);
  EXPECT_EQ(i["set_max_sessions"], 40);
  EXPECT_EQ(i["set_admin"], nullptr);
  EXPECT_EQ(answer["instances"][0]["health_seconds"], nullptr);
  status.control = 0;
  answer = show("show table");
  EXPECT_EQ(answer["fail_static"], true);
  EXPECT_EQ(answer["pid"], nullptr);
  EXPECT_TRUE(cli_.run("show table").find("fail-static: forwarding on by the table of generation 7, ") !=
              std::string::npos);
}

TEST_F(CliCommandsTest, SetInstanceDrain) {
  const uint64_t version = cli_.plane.table().version;
  EXPECT_EQ(cli_.run("set instance 192.0.2.10:80 si-2 drain 30s"),
            "csci id        si id  admin     weight  max sessions  active  over\n"
            "192.0.2.10:80  si-2   draining       1           100       0     0\n");
  const dp::Instance& i = cli_.plane.table().instances[1];
  EXPECT_EQ(cli_.plane.table().version, version + 1);
  EXPECT_EQ(i.admin, dp::Admin::kDraining);
  EXPECT_EQ(i.drain_deadline, 103'000U);  // now is 1000 s; ticks of 10 ms
  const json row = show("show instance")["instances"][1];
  EXPECT_EQ(row["admin"], "draining");
  EXPECT_EQ(row["drain_seconds_left"], 30.0);
  EXPECT_EQ(row["set_by_operator"], json({"admin"}));
  EXPECT_EQ(show("show sci")["scis"][0]["eligible"], 1);
  cli_.run("set instance 192.0.2.10:80 si-2 drain");
  EXPECT_EQ(cli_.plane.table().instances[1].drain_deadline, 160'000U);  // D-33: 10 minutes unless the site file says
  cli_.run("set instance 192.0.2.10:80 si-2 disable");
  EXPECT_EQ(cli_.plane.table().instances[1].admin, dp::Admin::kDisabled);
  cli_.run("set instance 192.0.2.10:80 si-2 enable");
  EXPECT_EQ(cli_.plane.table().instances[1].admin, dp::Admin::kEnabled);
  EXPECT_EQ(show("show instance")["instances"][1]["set_by_operator"], json::array());
}

TEST_F(CliCommandsTest, SetInstanceMaxSessionsAndWeightStandOverTheSiteFile) {
  open_connections(60);
  const uint32_t active = cli_.shared.slots.view(0).active;
  ASSERT_GT(active, 1U);
  cli_.run("set instance 192.0.2.10:80 si-1 max-sessions 1");
  cli_.run("set instance 192.0.2.10:80 si-1 weight 7");
  const dp::SlotView slots = cli_.shared.slots.view(0);
  EXPECT_EQ(slots.limit, 1U);
  EXPECT_EQ(slots.over, active - 1);
  EXPECT_EQ(cli_.shared.provisional.limit(0), 1U);  // D-45: half of 1, at least one
  const json row = show("show instance")["instances"][0];
  EXPECT_EQ(row["max_sessions"], 1);
  EXPECT_EQ(row["weight"], 7);
  EXPECT_EQ(row["set_by_operator"], json({"max-sessions", "weight"}));
  EXPECT_EQ(show("show slots")["slots"][0]["over"], active - 1);
  cli_.run("set instance 192.0.2.10:80 si-1 max-sessions 200");
  EXPECT_EQ(cli_.shared.slots.view(0).over, 0U);
}

TEST_F(CliCommandsTest, SetInstanceErrorsHavePositions) {
  EXPECT_EQ(cli_.run("set instance 192.0.2.99:80 si-1 drain"),
            "14: expected the CSCI-ID of an SCI, one of: 192.0.2.10:80 [2001:db8::10]:53, not '192.0.2.99:80'");
  EXPECT_EQ(cli_.run("set instance 192.0.2.10:80 si-9 drain"),
            "28: expected the SI-ID of an instance of that SCI, one of: si-1 si-2, not 'si-9'");
  EXPECT_EQ(cli_.run("set instance 192.0.2.10:80 si-1 drain 10"),
            "39: expected a duration such as 600s or 10m, not '10'");
  EXPECT_EQ(cli_.run("set instance 192.0.2.10:80 si-1 drain 31d").substr(0, 3), "39:");
  EXPECT_EQ(cli_.run("set instance 192.0.2.10:80 si-1 max-sessions 16777216").substr(0, 3), "46:");
  EXPECT_EQ(cli_.run("set instance 192.0.2.10:80 si-1 weight 65536").substr(0, 3), "40:");
  EXPECT_EQ(cli_.run("set instance 192.0.2.10:80 si-1"),
            "32: expected one of: drain enable disable max-sessions weight");
  EXPECT_EQ(cli_.plane.table().version, 1U);
}

TEST_F(CliCommandsTest, ShowFlowListsWhatWasOpened) {
  const auto by_worker = open_connections(60);
  ASSERT_GT(by_worker[0], 0U);
  ASSERT_GT(by_worker[1], 0U);
  cli_.receive(0, udp("[2001:db8:9::7]:4000", "[2001:db8::10]:53").payload("x"));
  cli_.serve();
  const json all = show("show flow");
  ASSERT_EQ(all["flows"].size(), 61U);
  EXPECT_EQ(all["more"], false);
  std::set<std::string> clients;
  for (const json& f : all["flows"]) clients.insert(f["client"].get<std::string>());
  EXPECT_EQ(clients.size(), 61U);
  const json one = show("show flow client 198.51.100.3")["flows"];
  ASSERT_EQ(one.size(), 1U);
  EXPECT_EQ(one[0]["client"], "198.51.100.3:20002");
  EXPECT_EQ(one[0]["endpoint"], "192.0.2.10:80/tcp");
  EXPECT_EQ(one[0]["csci_id"], kSci);
  EXPECT_EQ(one[0]["state"], "syn-sent");
  EXPECT_EQ(one[0]["slot"], "provisional");  // D-45: not proven yet
  EXPECT_EQ(one[0]["adopted"], false);
  EXPECT_EQ(one[0]["idle_seconds"], 0.0);
  EXPECT_EQ(one[0]["ends_in_seconds"], 5.0);  // embryonic: 5 s
  EXPECT_EQ(show("show flow worker 0")["flows"].size() + show("show flow protocol udp")["flows"].size() -
                show("show flow worker 0 protocol udp")["flows"].size(),
            by_worker[0] + 1);
}

TEST_F(CliCommandsTest, ShowFlowFilters) {
  open_connections(60);
  cli_.receive(0, udp("[2001:db8:9::7]:4000", "[2001:db8::10]:53").payload("x"));
  cli_.serve();
  EXPECT_EQ(show("show flow client-port 20005")["flows"].size(), 1U);
  EXPECT_EQ(show("show flow client-port 4000")["flows"][0]["state"], "udp-unreplied");
  EXPECT_EQ(show("show flow sci 192.0.2.10:80")["flows"].size(), 60U);
  EXPECT_EQ(show("show flow sci [2001:db8::10]:53")["flows"].size(), 1U);
  EXPECT_EQ(show("show flow protocol tcp state syn-sent")["flows"].size(), 60U);
  EXPECT_EQ(show("show flow state established")["flows"].size(), 0U);
  const size_t first = show("show flow instance 192.0.2.10:80 si-1")["flows"].size();
  const size_t second = show("show flow instance 192.0.2.10:80 si-2")["flows"].size();
  EXPECT_EQ(first + second, 60U);
  EXPECT_EQ(first, cli_.shared.active(0));
  EXPECT_EQ(cli_.run("show flow state open").substr(0, 3), "17:");
  EXPECT_EQ(cli_.run("show flow worker 2"), "18: expected the number of a worker, 0 to 1, not '2'");
}

TEST_F(CliCommandsTest, ShowFlowSaysWhenThereAreMore) {
  open_connections(130);
  cli_.serve();
  const json limited = show("show flow");
  EXPECT_EQ(limited["flows"].size(), 100U);
  EXPECT_EQ(limited["more"], true);
  EXPECT_EQ(show("show flow limit 129")["more"], true);
  const json all = show("show flow limit 130");
  EXPECT_EQ(all["flows"].size(), 130U);
  EXPECT_EQ(all["more"], false);
  EXPECT_NE(cli_.run("show flow limit 7").find("more than 7 match"), std::string::npos);
}

TEST_F(CliCommandsTest, ASilentWorkerIsNamedAndWaitedForOnce) {
  const auto by_worker = open_connections(60);
  cli_.serve(1);
  const json flows = show("show flow");
  EXPECT_EQ(flows["unanswered_workers"], json({1}));
  EXPECT_EQ(flows["flows"].size(), by_worker[0]);
  EXPECT_NE(cli_.run("show neighbours").find("worker 1 did not answer within 1 s"), std::string::npos);
  const json workers = show("show workers");
  EXPECT_EQ(workers["workers"][0]["answers"], true);
  EXPECT_EQ(workers["workers"][1]["answers"], false);
  EXPECT_EQ(workers["workers"][1]["flows"], nullptr);
  const json audit = show("show slots audit");
  EXPECT_EQ(audit["complete"], false);
  EXPECT_EQ(audit["instances"], json::array());
}

TEST_F(CliCommandsTest, ShowSlots) {
  open_connections(30);
  cli_.shared.counters(0, 0).ended[static_cast<size_t>(EndReason::kFin)].add(4);
  const json slots = show("show slots")["slots"];
  ASSERT_EQ(slots.size(), 3U);
  EXPECT_EQ(slots[0]["limit"], 200);
  EXPECT_EQ(slots[0]["provisional_limit"], 100);  // D-45: half
  EXPECT_EQ(slots[0]["active"].get<int>() + slots[1]["active"].get<int>(), 30);
  for (const json& s : slots) {
    EXPECT_EQ(s["limit"].get<int>() + s["over"].get<int>(),
              s["pool"].get<int>() + s["idle"].get<int>() + s["active"].get<int>());
    EXPECT_EQ(s["provisional_active"], s["active"]);  // SYNs alone
  }
  EXPECT_EQ(slots[0]["fin"], 4);
  EXPECT_EQ(slots[0]["timeout"], 0);
}

// SCI-90, SCI-92: the audit agrees with itself, and shows a slot that was lost in each of its counts.
TEST_F(CliCommandsTest, ShowSlotsAudit) {
  open_connections(60);
  cli_.shared.worker_counters[1].audit_passes.add(7);
  cli_.serve();
  const json clean = show("show slots audit");
  EXPECT_EQ(clean["differences"], 0);
  EXPECT_EQ(clean["complete"], true);
  EXPECT_EQ(clean["running_audit"][1], json({{"worker", 1}, {"passes", 7}, {"differences", 0}}));
  size_t entries = 0;
  for (const json& i : clean["instances"]) {
    entries += i["entries"].get<size_t>();
    EXPECT_EQ(i["ledger_active"], i["entries"]);
    EXPECT_EQ(i["counter_active"], i["entries"]);
    EXPECT_EQ(i["provisional_entries"], i["entries"]);
    EXPECT_EQ(i["ledger_difference"], 0);
    EXPECT_EQ(i["moved"], false);
  }
  EXPECT_EQ(entries, 60U);

  ASSERT_TRUE(cli_.shared.slots.take(0, cli_.plane.table().instances[0].generation, 0));  // and forgotten
  cli_.shared.counters(0, 1).active.subtract();
  cli_.shared.worker_counters[0].audit_differences.add();
  const json lost = show("show slots audit");
  EXPECT_EQ(lost["instances"][0]["ledger_difference"], 1);
  EXPECT_EQ(lost["instances"][1]["counter_difference"], -1);
  EXPECT_EQ(lost["differences"], 3);
}

// A session that is proven (D-45) gives its provisional slot back, and neither begins nor ends: during the count it is
// no difference.
TEST_F(CliCommandsTest, ShowSlotsAuditWhileSessionsAreProven) {
  constexpr size_t kConnections = 60;
  const MacAddress from_instance = mac("02:00:00:00:01:0b"), to_port = mac("02:00:00:00:0f:01");
  open_connections(kConnections);
  const auto acknowledge = [&, this](size_t n) {
    const std::string client = client_of(n);
    for (const char* instance : {"10.1.0.11:8080", "10.1.0.12:8080"}) {  // one of them has the connection
      cli_.receive(
          1, tcp(instance, client).vlan(100).ether(from_instance, to_port).flags(kSyn | kAck).seq(5000).ack(1001));
    }
    cli_.receive(0, tcp(client, kSci).flags(kAck).seq(1001).ack(5001));
  };
  std::atomic<size_t> proven{0};
  size_t turns = 0;
  cli_.serve(CliPlane::kWorkers, [&] {
    if (proven < kConnections && ++turns % 8 == 0) acknowledge(proven++);
  });
  while (proven < kConnections) EXPECT_EQ(show("show slots audit")["differences"], 0);
  const json after = show("show slots audit");
  EXPECT_EQ(after["differences"], 0);
  EXPECT_EQ(after["instances"][0]["provisional_entries"], 0);
  EXPECT_EQ(after["instances"][0]["entries"].get<size_t>() + after["instances"][1]["entries"].get<size_t>(),
            kConnections);
}

TEST_F(CliCommandsTest, ShowDrops) {
  EXPECT_EQ(cli_.run("show drops"), "drops: none\n\nrefused: none\n");
  cli_.shared.worker_counters[0].drop(DropReason::kFragment, 2);
  cli_.shared.worker_counters[1].drop(DropReason::kFragment, 3);
  EXPECT_EQ(cli_.run("show drops"),
            "reason    count  by worker  meaning\n"
            "fragment      5  2 3        IP fragment towards an SCI or from an instance\n"
            "\nrefused: none\n");
  EXPECT_EQ(show("show drops")["drops"],
            json::array({{{"reason", "fragment"},
                          {"count", 5},
                          {"by_worker", {2, 3}},
                          {"meaning", "IP fragment towards an SCI or from an instance"}}}));
  cli_.shared.refuse(0, 1, Refusal::kNoFreeSlot);
  EXPECT_EQ(show("show drops")["refused"], json::array({{{"cause", "no_free_slot"},
                                                         {"refused", 1},
                                                         {"by_worker", {1, 0}},
                                                         {"meaning", "instances are there, all are full"}}}));
  EXPECT_EQ(show("show drops all")["drops"].size(), kDropReasons - 1);
  EXPECT_EQ(show("show drops all")["refused"].size(), kRefusals - 1);
}

TEST_F(CliCommandsTest, ShowNeighbours) {
  for (const auto& f : cli_.fast_paths) f->tick(cli_.plane.table(), CliPlane::kNow + dp::kTickLength);
  cli_.serve();
  const json neighbours = show("show neighbours")["neighbours"];
  for (const uint64_t worker : {0u, 1u}) {
    const auto is_gateway = [&](const json& n) { return n["worker"] == worker && n["address"] == "192.0.2.1"; };
    const auto gateway = std::find_if(neighbours.begin(), neighbours.end(), is_gateway);
    ASSERT_NE(gateway, neighbours.end()) << neighbours;
    EXPECT_EQ((*gateway)["port"], "net0");
    EXPECT_EQ((*gateway)["mac"], "02:00:00:00:00:01");
    EXPECT_EQ((*gateway)["state"], "static");
  }
}

// RFC 5227 §2.4: the administrator is told who claims an address.
TEST_F(CliCommandsTest, ShowNeighboursNamesWhoClaimsOurAddresses) {
  const MacAddress other = mac("02:00:00:00:66:66");
  for (int n = 0; n < 3; ++n) cli_.receive(0, arp_request(other, "192.0.2.10", "192.0.2.10"));
  cli_.serve();
  EXPECT_EQ(show("show neighbours")["conflicts"], json::array({{{"port", "net0"},
                                                                {"address", "192.0.2.10"},
                                                                {"claimed_by", "02:00:00:00:66:66"},
                                                                {"claims", 3},
                                                                {"last_seconds_ago", 0.0}}}));
}

TEST_F(CliCommandsTest, ShowWorkers) {
  const auto by_worker = open_connections(20);
  WorkerCounters& c = cli_.shared.worker_counters[1];
  c.polls.add(1000);
  c.idle_polls.add(250);
  c.refused[static_cast<size_t>(Refusal::kNoFreeSlot)].add(7);
  c.refused[static_cast<size_t>(Refusal::kUnknownFlow)].add(2);
  cli_.serve();
  const json workers = show("show workers")["workers"];
  ASSERT_EQ(workers.size(), 2U);
  EXPECT_EQ(workers[1]["polls"], 1000);
  EXPECT_EQ(workers[1]["idle_share"], 0.25);
  EXPECT_EQ(workers[1]["refused"], 9);
  EXPECT_EQ(workers[0]["refused"], 0);
  EXPECT_EQ(workers[1]["answers"], true);
  EXPECT_EQ(workers[1]["flows"], by_worker[1]);
  EXPECT_EQ(workers[0]["flows"], by_worker[0]);
  EXPECT_EQ(workers[0]["flows_max"], CliPlane::kFlows);
  EXPECT_EQ(workers[0]["misses"], by_worker[0]);
  EXPECT_EQ(workers[0]["idle_share"], 0.0);
  EXPECT_NE(cli_.run("show workers").find("worker 1\n  answers"), std::string::npos);
}

TEST_F(CliCommandsTest, ShowConfig) {
  const json config = show("show config");
  EXPECT_EQ(config["file"], "site.yaml");
  EXPECT_EQ(config["site"], "edge-1");
  EXPECT_EQ(config["workers"], 2);
  EXPECT_EQ(config["idle"], "spin");
  EXPECT_EQ(config["forwarding"], true);
  EXPECT_EQ(config["ports"][0]["neighbours"], json({"192.0.2.1=02:00:00:00:00:01"}));
  EXPECT_EQ(config["forwarders"],
            json::array({{{"any", false}, {"port", "net0"}, {"mac", "02:00:00:00:00:01"}, {"vlan", nullptr}}}));
  EXPECT_EQ(config["scis"][0]["affinity_timeout"], "300s");
  EXPECT_EQ(config["scis"][0]["provisional_share"], 0.5);
  EXPECT_EQ(config["scis"][0]["mss_clamp"], "off");
  EXPECT_EQ(config["scis"][0]["gue_port"], nullptr) << "mode nat";
  EXPECT_EQ(config["scis"][0]["ramp"], "10s") << "the default of the site file";
  EXPECT_EQ(config["instances"].size(), 3U);
  cli_.run("set instance 192.0.2.10:80 si-1 weight 3");
  EXPECT_EQ(show("show config")["instances"][0]["weight"], 3);
}

TEST_F(CliCommandsTest, StartAndStop) {
  EXPECT_EQ(cli_.run("start"), "packets are forwarded already\n");
  EXPECT_EQ(cli_.run("stop"), "packets are dropped as stopped\n");
  EXPECT_FALSE(cli_.plane.table().forwarding);
  EXPECT_EQ(show("show sci")["forwarding"], false);
  EXPECT_EQ(show("stop"), json({{"forwarding", false}}));
  EXPECT_EQ(cli_.run("start"), "packets are forwarded\n");
  EXPECT_TRUE(cli_.plane.table().forwarding);
}

TEST_F(CliCommandsTest, ShutdownQuitVersionHelp) {
  EXPECT_TRUE(cli_.run("version").starts_with("margay-dataplane "));
  const auto quits = [&](const char* line) {
    return cli_.executor.run(line, false, [](std::string_view) { return true; }).quit;
  };
  EXPECT_TRUE(quits("quit"));
  EXPECT_FALSE(cli_.plane.stop);
  EXPECT_FALSE(quits("version"));
  EXPECT_TRUE(quits("shutdown"));
  EXPECT_TRUE(cli_.plane.stop);
  const json help = show("help")["help"];
  EXPECT_GT(help.size(), 25U);
  for (const json& command : help) {
    EXPECT_FALSE(command["help"].get<std::string>().empty());
    EXPECT_FALSE(command["safety"].get<std::string>().empty());
  }
  EXPECT_EQ(show("help show port stats")["help"].size(), 2U);
  EXPECT_EQ(cli_.run("help nonsense"), "6: no command begins with these words");
}

TEST_F(CliCommandsTest, EveryShowIsOneJsonDocument) {
  open_connections(10);
  cli_.serve();
  const json help = show("help show");
  for (const json& command : help["help"]) {
    std::string line = command["command"];
    line.erase(std::min(line.find(" ["), line.size()));
    const size_t port = line.find("PORT");
    if (port != std::string::npos) line.replace(port, 4, "\"odd port\"");
    EXPECT_TRUE(show(line).is_object()) << line;
  }
}

TEST_F(CliCommandsTest, CompletesIdsAndPorts) {
  using List = std::vector<std::string>;
  EXPECT_EQ(cli_.table.complete("set instance ").words, (List{"192.0.2.10:80", "[2001:db8::10]:53"}));
  EXPECT_EQ(cli_.table.complete("set instance [").words, List{"[2001:db8::10]:53"});
  EXPECT_EQ(cli_.table.complete("set instance 192.0.2.10:80 ").words, (List{"si-1", "si-2"}));
  EXPECT_EQ(cli_.table.complete("show flow instance [2001:db8::10]:53 ").words, List{"si-1"});
  EXPECT_EQ(cli_.table.complete("show port info ").words, (List{"all", "net0", "\"odd port\""}));
  EXPECT_EQ(cli_.table.complete("show flow state syn-").words, (List{"syn-sent", "syn-received"}));
}

}  // namespace
}  // namespace margay::test
