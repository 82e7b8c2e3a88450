// SPDX-License-Identifier: Apache-2.0
// /metrics of an SCI whose life is known.
#include "control/http/metrics_page.h"

#include <gtest/gtest.h>

#include "tests/unit/control/sci_rig.h"

namespace margay::control {
namespace {

using test::kBegin;

struct Life {
  Life() {
    const SciSpec config = test::two_instances();
    Sci& sci = scis.try_emplace(config.csci_id, config, 42, 7, std::vector<Sci::Known>{}, kBegin).first->second;
    tell(sci, LedgerSample{{{"si-1", {.active = 30}, {}}, {"si-2", {.active = 0}, {}}}});
    while (now < kBegin + 10 * kSecond) {
      now = std::max(now, sci.next_due()) + 3 * kMillisecond;  // each tick is that late
      tell(sci, Tick{});
    }
  }
  void tell(Sci& sci, const Event& event) {
    const auto actions = sci.handle(event, {now, 1'700'000'000'000});
    statistics.handled("192.0.2.10:80", event, actions, sci.next_due(), now);
    for (const Action& action : actions) {
      const auto* probe = std::get_if<ProbeRequest>(&action);
      if (probe == nullptr) continue;
      const Outcome outcome = probe->id == "si-1" ? Outcome::kPass : Outcome::kFail;
      tell(sci, CheckResult{probe->id, probe->kind, probe->serial, outcome, 250 * kMillisecond, "refused"});
    }
  }

  Nanoseconds now = kBegin;
  std::map<std::string, Sci> scis;
  Statistics statistics;
};

bool has(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

TEST(MetricsPage, TellsOfEachSciAndInstance) {
  const Life life;
  const std::string text = text_of(collect(life.scis, life.statistics, {.generation = 9, .acked = 8, .refused = 1}));
  const std::string sci = "csci_id=\"192.0.2.10:80\"", one = sci + ",si_id=\"si-1\"", two = sci + ",si_id=\"si-2\"";
  for (const std::string& line : {
           "margay_sci_gas{" + sci + "} 170",
           "margay_sci_instances{" + sci + ",health=\"healthy\"} 1",
           "margay_sci_instances{" + sci + ",health=\"unhealthy\"} 1",
           "margay_sci_instances{" + sci + ",health=\"unknown\"} 0",
           "margay_instance_health{" + one + ",health=\"healthy\"} 1",
           "margay_instance_health{" + one + ",health=\"unhealthy\"} 0",
           "margay_instance_health{" + two + ",health=\"unhealthy\"} 1",
           "margay_instance_active_sessions{" + one + "} 30",
           "margay_instance_session_limit{" + one + "} 200",
           "margay_instance_session_limit{" + two + "} 0",
           "margay_instance_enabled{" + one + "} 1",
           "margay_instance_transitions_total{" + one + ",to=\"healthy\"} 1",
           "margay_instance_transitions_total{" + two + ",to=\"unhealthy\"} 1",
           "margay_sci_reports_total{" + sci + ",trigger=\"start\"} 1",
           "margay_sci_reports_total{" + sci + ",trigger=\"recovery\"} 1",
           "margay_sci_reports_total{" + sci + ",trigger=\"stop\"} 0",
           "margay_checks_total{" + one + ",check=\"liveness\",outcome=\"fail\"} 0",
           "margay_checks_total{" + two + ",check=\"liveness\",outcome=\"pass\"} 0",
           std::string("margay_table_generation 9"),
           std::string("margay_table_acked_generation 8"),
           std::string("margay_table_refused_total 1"),
           std::string("margay_data_plane_up 0"),
       }) {
    EXPECT_TRUE(has(text, line)) << line << "\nin\n" << text;
  }
  // Passed probes of 250 ms each; ticks 3 ms late each.
  const CheckCounts& checks = *life.statistics.scis().at("192.0.2.10:80").instances.at("si-1").checks[0];
  EXPECT_GE(checks.of(Outcome::kPass), 2u);
  EXPECT_EQ(checks.latency.sum, checks.of(Outcome::kPass) * 250 * kMillisecond);
  const std::string passes = std::to_string(checks.of(Outcome::kPass));
  const std::string latency = "margay_check_latency_seconds_", labels = "{" + one + ",check=\"liveness\"} ";
  EXPECT_TRUE(has(text, latency + "count" + labels + passes)) << text;
  const size_t sum = text.find(latency + "sum" + labels);
  ASSERT_NE(sum, std::string::npos) << text;
  EXPECT_DOUBLE_EQ(std::stod(text.substr(sum + (latency + "sum" + labels).size())), std::stod(passes) / 4);
  EXPECT_EQ(life.statistics.slip().mean(), 3 * kMillisecond);
  EXPECT_EQ(life.statistics.slip_max(), 3 * kMillisecond);
  EXPECT_TRUE(text.find("computing_time") == std::string::npos) << "not known, so not 0";
}

// What is not known is left out; what is not HEALTHY counts in one place only; seconds.
TEST(MetricsPage, TellsWhatIsNotUsual) {
  std::map<std::string, Sci> scis;
  SciSpec config = test::two_instances();
  const std::vector<Sci::Known> known{{.id = "si-1", .health = {.state = HealthState::kHealthy}}};
  Sci& begins = scis.try_emplace(config.csci_id, config, 42, 7, known, kBegin).first->second;
  begins.handle(OperatorDrain{"si-2", true}, {kBegin, 0});
  config.csci_id = "192.0.2.20:80";
  Sci& answers = scis.try_emplace(config.csci_id, config, 42, 7, known, kBegin).first->second;
  Histogram slow;
  slow.add(250 * kMillisecond);
  answers.handle(LedgerSample{{{"si-1", {.active = 1}, slow}}}, {kBegin, 0});
  Statistics statistics;
  const Event passed = ScrapeResult{.id = "si-1", .serial = 1, .ok = true, .samples = {}};
  const Event failed = ScrapeResult{.id = "si-1", .serial = 1, .ok = false, .samples = {}};
  for (const Event& event : {passed, passed, failed}) statistics.handled("192.0.2.10:80", event, {}, kNever, kBegin);
  const std::string text = text_of(collect(scis, statistics,
                                           {.data_plane_connected = true,
                                            .data_plane_alive = false,
                                            .connections = 3,
                                            .taken = 4,
                                            .refused = 1,
                                            .report_lines = 5,
                                            .report_lines_lost = 2}));
  for (const char* line : {
           "margay_sci_instances{csci_id=\"192.0.2.10:80\",health=\"unknown\"} 1",
           "margay_sci_instances{csci_id=\"192.0.2.10:80\",health=\"unhealthy\"} 0",
           "margay_instance_enabled{csci_id=\"192.0.2.10:80\",si_id=\"si-1\"} 1",
           "margay_instance_enabled{csci_id=\"192.0.2.10:80\",si_id=\"si-2\"} 0",
           "margay_scrapes_total{csci_id=\"192.0.2.10:80\",si_id=\"si-1\",outcome=\"pass\"} 2",
           "margay_scrapes_total{csci_id=\"192.0.2.10:80\",si_id=\"si-1\",outcome=\"fail\"} 1",
           "margay_data_plane_connected 1",
           "margay_data_plane_up 0",
           "margay_data_plane_connections_total 3",
           "margay_table_taken_total 4",
           "margay_table_refused_total 1",
           "margay_report_lines_total 5",
           "margay_report_lines_lost_total 2",
       }) {
    EXPECT_TRUE(has(text, line)) << line << "\nin\n" << text;
  }
  EXPECT_EQ(text.find("margay_sci_gas{csci_id=\"192.0.2.10:80\"}"), std::string::npos) << "no ledger yet";
  const std::string time = "margay_sci_computing_time_seconds{csci_id=\"192.0.2.20:80\"} ";
  ASSERT_NE(text.find(time), std::string::npos) << text;
  EXPECT_NEAR(std::stod(text.substr(text.find(time) + time.size())), 0.25, 0.01);
}

// Sums over the workers; `none` is no reason.
TEST(MetricsPage, TellsTheTrafficOfTheDataPlane) {
  std::vector<WorkerCounters> workers(2);
  workers[0].packets.add(5);
  workers[1].packets.add(7);
  workers[0].drop(DropReason::kTooBig, 2);
  workers[1].drop(DropReason::kTooBig, 1);
  workers[0].refused[static_cast<size_t>(Refusal::kNoFreeSlot)].add(2);
  const std::string text = text_of(collect({}, Statistics{}, {.traffic = traffic_of(workers)}));
  EXPECT_TRUE(has(text, "margay_data_plane_packets_total 12")) << text;
  EXPECT_TRUE(has(text, "margay_data_plane_drops_total{reason=\"too_big\"} 3")) << text;
  EXPECT_TRUE(has(text, "margay_data_plane_refused_total{cause=\"no_free_slot\"} 2")) << text;
  EXPECT_EQ(text.find("\"none\""), std::string::npos);
  EXPECT_EQ(text_of(collect({}, Statistics{}, {})).find("drops"), std::string::npos) << "nobody is connected";
}

TEST(MetricsPage, EachFamilyHasOneTypeAndItsSeriesOnce) {
  const Life life;
  const std::string text = text_of(collect(life.scis, life.statistics, {.traffic = TrafficNumbers{}}));
  std::map<std::string, int> seen;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    const std::string line = text.substr(at, end - at);
    ++seen[line.substr(0, line.rfind(' '))];
    at = end + 1;
  }
  EXPECT_GT(seen.size(), 40u);
  for (const auto& [series, times] : seen) EXPECT_EQ(times, 1) << series;
}

TEST(Statistics, KeepsWhatTheSiteHas) {
  Life life;
  SciSpec config = test::two_instances();
  config.instances.pop_back();
  life.statistics.keep({config});
  const SciStatistics& sci = life.statistics.scis().at(config.csci_id);
  EXPECT_EQ(sci.instances.count("si-1"), 1u);
  EXPECT_EQ(sci.instances.count("si-2"), 0u);
  EXPECT_EQ(sci.last_report->trigger, Trigger::kHealth);
  EXPECT_EQ(life.statistics.find(config.csci_id, "si-2"), nullptr);
  ASSERT_NE(life.statistics.find(config.csci_id, "si-1"), nullptr);
  life.statistics.keep({});
  EXPECT_TRUE(life.statistics.scis().empty());
}

}  // namespace
}  // namespace margay::control
