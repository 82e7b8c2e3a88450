// SPDX-License-Identifier: Apache-2.0
// The control plane's keys of the site file: defaults, what each key means, both sides of each boundary.
#include "control/site_reader.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "control/collection/http/presets.h"
#include "control/sci/metrics.h"
#include "tests/support/control_site_text.h"
#include "tests/support/file_text.h"
#include "tests/unit/control/good_site.h"

namespace margay::control {
namespace {

using namespace margay::test;

TEST(ControlSiteReader, ShortestFileHasAllDefaultsOfTheProcess) {
  const SiteSpec spec = good(joining(kSiteText));
  EXPECT_EQ(spec.site.file, "site.yaml");
  EXPECT_EQ(spec.site.site, "edge-1");
  EXPECT_EQ(spec.site.control_socket, kSocket);
  EXPECT_EQ(spec.state_directory, "/var/lib/margay");
  EXPECT_EQ(spec.role, Role::kBoth);
  EXPECT_EQ(spec.cli_socket, "/run/margay/control.sock");
  EXPECT_FALSE(spec.http_listen);
  EXPECT_EQ(spec.reports, ReportCopies{});
  EXPECT_EQ(spec.reports.to, ReportCopies::To::kNobody);
  ASSERT_EQ(spec.site.scis.size(), 1u);
  ASSERT_EQ(spec.scis.size(), 1u);
}

// Part C of the requirements, Part D where it says otherwise.
TEST(ControlSiteReader, DefaultsArePartC_SCI52) {
  const SciSpec spec = good(scraped("readiness: {http: \"http://{address}/\"}, performance: {}")).scis[0];
  const HealthConfig& h = spec.health;
  EXPECT_EQ(spec.metrics.interval, 5 * kSecond);      // SCI-24: 5-10 s
  EXPECT_EQ(h.liveness->interval, 5 * kSecond);       // SCI-51: 5-10 s / 30 s / 30 s
  EXPECT_EQ(h.readiness->interval, 30 * kSecond);     //
  EXPECT_EQ(h.performance->interval, 30 * kSecond);   //
  EXPECT_EQ(h.performance->cpu->above, Share{0.9});   // SCI-50: > 90 % for 30 s
  EXPECT_EQ(h.performance->cpu->time, 30 * kSecond);  //
  EXPECT_FALSE(h.performance->response_time);         //
  EXPECT_FALSE(h.performance->error_rate);            //
  for (const ProbeConfig& p : {*h.liveness, *h.readiness}) {
    EXPECT_EQ(p.timeout, kSecond);
    EXPECT_EQ(p.fall, 3u);  // SCI-65: 3 / 2
    EXPECT_EQ(p.rise, 2u);
  }
  EXPECT_EQ(h.performance->fall, 3u);
  EXPECT_EQ(h.performance->rise, 2u);
  EXPECT_EQ(h.liveness->http, "");             // a TCP connect
  EXPECT_EQ(h.recovery, Recovery::kStepwise);  // D-24
  EXPECT_EQ(h.confirm_interval, kSecond);      // D-24
  EXPECT_EQ(h.batch, 100 * kMillisecond);      // D-50
  EXPECT_EQ(spec.drain_deadline, 600 * kSecond);
  EXPECT_EQ(spec.safety_margin, Share{1.0});       // SCI-36 says 0.8; D-8: off
  EXPECT_EQ(spec.degradation_factor, Share{0.5});  // SCI-67
  EXPECT_EQ(spec.report.interval, 60 * kSecond);   // SCI-100
  EXPECT_EQ(spec.report.gas_change, Share{0.1});   // SCI-102, 103: 10 % or 50 abs / 20 %
  EXPECT_EQ(spec.report.gas_absolute, 50u);        //
  EXPECT_EQ(spec.report.computing_time_change, Share{0.2});
  EXPECT_EQ(spec.report.rate, (TokenRate{kSecond, 5}));  // SCI-109: SCI 1/s, 5; critical 10/s, 20
  EXPECT_EQ(spec.report.critical, (TokenRate{kSecond / 10, 20}));
  EXPECT_EQ(spec.computing_time.method, ComputingTimeMethod::kWeightedMean);
  EXPECT_FALSE(spec.price || spec.reputation || spec.security_level);  // D-42: absent is not 0
}

TEST(ControlSiteReader, WithoutItsKeyACheckIsNotMade) {
  const SciSpec spec = good(joining(kSiteText)).scis[0];
  EXPECT_TRUE(spec.health.liveness);
  EXPECT_FALSE(spec.health.readiness);
  EXPECT_FALSE(spec.health.performance);
  EXPECT_EQ(spec.metrics.prometheus, "");
  EXPECT_TRUE(spec.metrics.names.empty());
  const SciSpec unscraped = good(health("performance: {response_time: 1s}")).scis[0];
  EXPECT_FALSE(unscraped.health.performance->cpu);
}

TEST(ControlSiteReader, WhatTheDataPlaneIsToldTooIsTakenFromThere) {
  const std::string text =
      replaced(with_sci("degradation_factor: 0.25\n    drain_deadline: 5s"), "10.1.0.11, max_sessions: 200",
               "10.1.0.11, port: 8080, max_sessions: 7, weight: 3");
  const SiteSpec site = good(joining(replaced(text, "ARS", "\"cs 1\"")));
  const SciSpec& spec = site.scis[0];
  EXPECT_EQ(site.site.scis[0].degradation_factor, 0.25);
  EXPECT_EQ(spec.degradation_factor, Share{0.25});
  EXPECT_EQ(spec.drain_deadline, 5 * kSecond);
  EXPECT_EQ(spec.csci_id, "192.0.2.10:80");
  EXPECT_EQ(spec.cs_id, "cs 1");
  ASSERT_EQ(spec.instances.size(), 2u);
  EXPECT_EQ(spec.instances[0],
            (InstanceSpec{.id = "si-1", .address = "10.1.0.11", .port = 8080, .max_sessions = 7, .weight = 3}));
  EXPECT_EQ(spec.instances[1],
            (InstanceSpec{.id = "si-2", .address = "10.1.0.12", .port = 80, .max_sessions = 200, .weight = 1}));
}

struct Meaning {
  std::string text;
  std::function<void(SciSpec&)> change;
};

void check_meanings(const std::string& base, std::initializer_list<Meaning> rows) {
  for (const Meaning& row : rows) {
    SciSpec expected = good(base).scis[0];
    row.change(expected);
    EXPECT_EQ(good(row.text).scis[0], expected) << row.text;
  }
}

TEST(ControlSiteReader, EachKeyOfAnSci) {
  check_meanings(
      joining(kSiteText),
      {
          {sci("price: 4294967295"), [](SciSpec& s) { s.price = 4294967295; }},
          {sci("price: 0"), [](SciSpec& s) { s.price = 0; }},
          {sci("reputation: 10"), [](SciSpec& s) { s.reputation = 10; }},
          {sci("security_level: 5"), [](SciSpec& s) { s.security_level = 5; }},
          {sci("safety_margin: 0.8"), [](SciSpec& s) { s.safety_margin = Share{0.8}; }},
          {sci("degradation_factor: 0"), [](SciSpec& s) { s.degradation_factor = Share{0.0}; }},
          {sci("computing_time: {method: median}"),
           [](SciSpec& s) { s.computing_time.method = ComputingTimeMethod::kMedian; }},
          {sci("computing_time: {method: p95, window: 10s}"),
           [](SciSpec& s) { s.computing_time = {.method = ComputingTimeMethod::kP95, .window = 10 * kSecond}; }},
          {sci("computing_time: {method: dynamic, alpha: 0.5, per: 2s}"),
           [](SciSpec& s) {
             s.computing_time = {.method = ComputingTimeMethod::kDynamic, .alpha = Share{0.5}, .period = 2 * kSecond};
           }},
          {sci("report: {interval: 45s, gas_change: 5%, gas_absolute: 0, computing_time_change: 400%}"),
           [](SciSpec& s) {
             s.report.interval = 45 * kSecond;
             s.report.gas_change = Share{0.05};
             s.report.gas_absolute = 0;
             s.report.computing_time_change = Share{4};
           }},
          {sci("report: {rate: 4/s, burst: 1, critical: {rate: 50/s, burst: 100}}"),
           [](SciSpec& s) {
             s.report.rate = {250 * kMillisecond, 1};
             s.report.critical = {20 * kMillisecond, 100};
           }},
          {sci("report: {critical: {burst: 7}}"), [](SciSpec& s) { s.report.critical.burst = 7; }},
      });
}

TEST(ControlSiteReader, EachKeyOfHealth) {
  check_meanings(
      joining(kSiteText),
      {
          {health("recovery: direct"), [](SciSpec& s) { s.health.recovery = Recovery::kDirect; }},
          {health("confirm_interval: 200ms"), [](SciSpec& s) { s.health.confirm_interval = 200 * kMillisecond; }},
          {health("batch: 0s"), [](SciSpec& s) { s.health.batch = 0; }},
          {health("liveness: {http: \"http://{address}:{port}/health\", interval: 10ms, timeout: 9ms, fall: 1, rise: "
                  "1000}"),
           [](SciSpec& s) {
             s.health.liveness = {.http = "http://{address}:{port}/health",
                                  .interval = 10 * kMillisecond,
                                  .timeout = 9 * kMillisecond,
                                  .fall = 1,
                                  .rise = 1000};
           }},
          {health("readiness: {http: \"http://10.1.0.9/ready\"}"),
           [](SciSpec& s) { s.health.readiness = {.http = "http://10.1.0.9/ready", .interval = 30 * kSecond}; }},
          {health("readiness: {http: \"http://{address}\", interval: 24h, timeout: 2s, fall: 5, rise: 4}"),
           [](SciSpec& s) {
             s.health.readiness = {.http = "http://{address}",
                                   .interval = 24 * 3600 * kSecond,
                                   .timeout = 2 * kSecond,
                                   .fall = 5,
                                   .rise = 4};
           }},
          {health("performance: {response_time: 500ms, interval: 10s, fall: 2, rise: 1}"),
           [](SciSpec& s) {
             s.health.performance = {.response_time = 500 * kMillisecond,
                                     .cpu = std::nullopt,
                                     .interval = 10 * kSecond,
                                     .fall = 2,
                                     .rise = 1};
           }},
      });
  check_meanings(sci(kScrape),
                 {
                     {scraped("performance: {}"), [](SciSpec& s) { s.health.performance.emplace(); }},
                     {scraped("performance: {cpu: {above: 80%, for: 0s}}"),
                      [](SciSpec& s) {
                        s.health.performance = {.cpu = CpuRule{Share{0.8}, 0}};
                      }},
                     // Every sample is judged once where the intervals are equal.
                     {scraped("performance: {error_rate: 5%, interval: 5s}"),
                      [](SciSpec& s) { s.health.performance = {.error_rate = Share{0.05}, .interval = 5 * kSecond}; }},
                 });
}

TEST(ControlSiteReader, EachKeyOfMetrics_SCI24) {
  const auto metrics = [](const std::string& flow) {
    return sci("metrics: {prometheus: \"http://{address}:9100/metrics\"" + flow + "}");
  };
  using Names = std::vector<MetricsConfig::Name>;
  check_meanings(metrics(""), {
                                  {metrics(", interval: 10s"), [](SciSpec& s) { s.metrics.interval = 10 * kSecond; }},
                                  {metrics(", names: {cpu: node_cpu, response_time: http_seconds}"),
                                   [](SciSpec& s) {
                                     s.metrics.names = Names{{.metric = "cpu", .series = "node_cpu"},
                                                             {.metric = "response_time", .series = "http_seconds"}};
                                   }},
                                  {metrics(", names: {custom: \"a:b\"}"),
                                   [](SciSpec& s) { s.metrics.names = Names{{.metric = "custom", .series = "a:b"}}; }},
                                  {metrics(", names: node"), [](SciSpec&) {}},  // the default
                              });
  for (const std::string_view preset : preset_names()) {
    const auto names = good(metrics(", names: " + std::string(preset))).scis[0].metrics.names;
    const auto expected = find_preset(preset);
    EXPECT_EQ(names, Names(expected.begin(), expected.end())) << preset;
  }
}

TEST(Presets, NameMetricsThatThereAre) {
  ASSERT_EQ(preset_names().size(), 4u);
  for (const std::string_view preset : preset_names()) {
    const auto names = find_preset(preset);
    EXPECT_FALSE(names.empty()) << preset;
    for (const MetricsConfig::Name& name : names) {
      bool known = false;
      for (size_t m = 0; m < kMetrics; ++m) known = known || name_of(static_cast<Metric>(m)) == name.metric;
      EXPECT_TRUE(known) << preset << ": " << name.metric;
      EXPECT_NE(name.series, "");
      EXPECT_EQ(name.label.empty(), name.is.empty());
    }
  }
  EXPECT_TRUE(find_preset("nodes").empty());
}

TEST(ControlSiteReader, EachKeyOfTheProcess) {
  EXPECT_EQ(good(section("state_directory: /x\n")).state_directory, "/x");
  EXPECT_EQ(good(section("control: {role: sci}\n")).role, Role::kSci);
  EXPECT_EQ(good(section("control: {role: both}\n")).role, Role::kBoth);
  EXPECT_EQ(good(section("control: {cli: /x}\n")).cli_socket, "/x");
  EXPECT_EQ(good(section("control: {http: {listen: \"127.0.0.1:7480\"}}\n")).http_listen->format(), "127.0.0.1:7480");
  EXPECT_EQ(good(section("control: {http: {listen: \"[::1]:7480\"}}\n")).http_listen->format(), "[::1]:7480");
  EXPECT_EQ(good(section("control: {reports: stdout}\n")).reports, (ReportCopies{ReportCopies::To::kStdout, ""}));
  EXPECT_EQ(good(section("control: {reports: none}\n")).reports, ReportCopies{});
  EXPECT_EQ(good(section("control: {reports: /x/y}\n")).reports, (ReportCopies{ReportCopies::To::kFile, "/x/y"}));
}

TEST(ControlSiteReader, NeedsRestartForWhatIsTakenOnce) {
  const SiteSpec now = good(joining(kSiteText));
  const auto keys = [&](const std::string& text) { return needs_restart(now, good(text)); };
  using Keys = std::vector<std::string>;
  EXPECT_EQ(keys(joining(kSiteText)), Keys{});
  EXPECT_EQ(keys(sci("price: 5")), Keys{});
  EXPECT_EQ(keys(joining(with_instance("weight: 5"))), Keys{});
  EXPECT_EQ(keys(health("recovery: direct")), Keys{});
  EXPECT_EQ(keys(section("state_directory: /x\n")), Keys{"state_directory"});
  EXPECT_EQ(keys(section("control: {role: sci, cli: /x, http: {listen: \"127.0.0.1:1\"}, reports: stdout}\n")),
            (Keys{"control.role", "control.cli", "control.http.listen", "control.reports"}));
  EXPECT_EQ(keys(section("security: {ca: a, certificate: b, key: c}\nc_sma: {identity: x}\n")),
            (Keys{"security", "c_sma"}));
  EXPECT_EQ(keys(replaced(joining(kSiteText), "edge-1", "edge-2")), Keys{"site"});
  EXPECT_EQ(keys(replaced(joining(kSiteText), "dataplane.sock", "other.sock")), Keys{"dataplane.control"});
}

// What the reference file has beside is not built yet.
TEST(ControlSiteReader, ReadsTheReferenceFile) {
  std::string text = margay::test::file_text(MARGAY_TEST_DATA "/reference_site.yaml");
  for (const auto& [from, to] :
       std::initializer_list<std::pair<const char*, const char*>>{{"  gpu-0:", "# gpu-0:"},
                                                                  {"accelerators:", "# accelerators:"},
                                                                  {"mode: full-nat", "mode: nat"},
                                                                  {"    snat:", "    # snat:"},
                                                                  {"    queue:", "    # queue:"},
                                                                  {"    fallback:", "    # fallback:"},
                                                                  {"on-overflow   ", "off   "},
                                                                  {", new_connections_per_source: 200/s", ""},
                                                                  {", accelerator: gpu-0}", "}"},
                                                                  {"  policies:", "  # policies:"},
                                                                  {"  maintenance_windows:", "  # windows:"}}) {
    text = replaced(text, from, to);
  }
  for (size_t at; (at = text.find("    - \"IF ")) != std::string::npos;) text.replace(at, 5, "    # ");
  const SiteSpec spec = good(text);
  EXPECT_EQ(spec.role, Role::kBoth);
  EXPECT_EQ(spec.reports.to, ReportCopies::To::kStdout);
  const HealthConfig& h = spec.scis.at(0).health;
  EXPECT_EQ(h.readiness->http, "http://{address}:{port}/ready");
  EXPECT_EQ(h.performance->error_rate, Share{0.05});
  EXPECT_EQ(spec.scis[0].report, ReportConfig{});  // its values are the defaults
  EXPECT_EQ(spec.scis[0].price, 10u);
  EXPECT_EQ(spec.reports_to.at("192.0.2.10:80").address, "127.0.0.1:7443");
  EXPECT_EQ(spec.security.signing_key->id, "k1");
  EXPECT_EQ(spec.c_sma->listen, "0.0.0.0:7443");
  EXPECT_EQ(spec.c_sma->core.accept, (std::vector<c_sma::AcceptedSci>{{"192.0.2.10:80", "ARS", 2000}}));
  EXPECT_EQ(spec.c_sma->core.validation, c_sma::ValidationConfig{});  // its values are the defaults
  EXPECT_EQ(spec.c_sma->core.updates, c_sma::UpdateConfig{});
  EXPECT_EQ(spec.c_sma->core.transform.safety_margin, Share{0.8});
  EXPECT_EQ(spec.c_sma->c_ps, (std::vector<CpsTarget>{{"cps.example.net:7444", "cps.example.net", {"ARS", "LLMS"}}}));
}

TEST(ControlSiteReader, ReadsFiles) {
  const std::string path = testing::TempDir() + "control_site_reader_test.yaml";
  std::ofstream(path) << joining(kSiteText);
  const auto spec = read_site_file(path);
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->site.file, path);
  std::remove(path.c_str());
  EXPECT_FALSE(read_site_file(path));
}

}  // namespace
}  // namespace margay::control
