// SPDX-License-Identifier: Apache-2.0
// The site file's sections of the C-SMA, the C-PS and security: defaults, what each key means, what is refused.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "control/cps/config.h"
#include "control/site_reader.h"
#include "tests/support/control_site_text.h"
#include "tests/unit/control/good_site.h"

namespace margay::control {
namespace {

using namespace margay::test;
using namespace c_sma;

const std::string kSecurity = "security: {ca: ca.pem, certificate: c.pem, key: c.key}\n";

std::string c_sma_text(const std::string& flow) {
  return section(kSecurity + "c_sma: {identity: c-sma.edge-1" + (flow.empty() ? "" : ", " + flow) + "}\n");
}

// Part C of the requirements, Part D where it says otherwise.
TEST(CSmaSiteReader, DefaultsArePartC_CSMA36_CSMA123_CSMA127) {
  const CSmaConfig c = good(c_sma_text("")).c_sma->core;
  EXPECT_EQ(c.identity, "c-sma.edge-1");
  EXPECT_EQ(c.accept, (std::vector<AcceptedSci>{{"192.0.2.10:80", "ARS", 400}}));  // the site's own
  EXPECT_EQ(c.validation.gas_anomaly, (GasAnomaly{Share{0.5}, kSecond, 5}));       // CSMA-45, D-48
  EXPECT_EQ(c.validation.computing_time_anomaly, (ComputingTimeAnomaly{Share{1.0}, kSecond, 5 * kMillisecond}));  // 46
  EXPECT_EQ(c.validation.flapping, (Flapping{3, 10 * kSecond}));  // CSMA-47
  EXPECT_EQ(c.validation.skew_alarm, 10 * kSecond);               // D-28
  EXPECT_EQ(c.validation.skew_refuse, 30 * kSecond);              // D-15
  EXPECT_EQ(c.validation.consistency, Consistency::kSite);        // D-3
  EXPECT_EQ(c.cache.max_entries, 100'000u);
  EXPECT_EQ(c.cache.grace, 10 * kSecond);
  EXPECT_FALSE(c.cache.ttl_gas);                                         // CSMA-66: twice what the SCI tells
  EXPECT_EQ(c.cache.stale, Stale::kStand);                               // D-27
  EXPECT_EQ(c.self_doubt, (SelfDoubtConfig{Share{0.5}, 30 * kSecond}));  // D-51
  EXPECT_EQ(c.transform.safety_margin, Share{1.0});                      // D-8
  EXPECT_EQ(c.transform.computing_time_min_ms, 1u);                      // CSMA-116
  EXPECT_EQ(c.transform.computing_time_max_ms, 10'000u);
  EXPECT_FALSE(c.transform.gas_smoothing);                             // D-35
  EXPECT_EQ(c.transform.computing_time, Aggregate::kGasWeightedMean);  // D-17
  EXPECT_EQ(c.updates.gas_change, Share{0.1});                         // CSMA-119
  EXPECT_EQ(c.updates.gas_absolute, 50u);
  EXPECT_EQ(c.updates.computing_time_change, Share{0.2});    // CSMA-120
  EXPECT_EQ(c.updates.heartbeat, 60 * kSecond);              // CSMA-124
  EXPECT_EQ(c.updates.minimum_interval, 5 * kSecond);        // CSMA-125
  EXPECT_EQ(c.updates.rate, (TokenRate{kSecond / 10, 20}));  // CSMA-128
  EXPECT_EQ(c.updates.critical, (TokenRate{kSecond / 50, 100}));
  EXPECT_EQ(c.updates.backoff_initial, kSecond);  // CSMA-170
  EXPECT_EQ(c.updates.backoff_max, 60 * kSecond);
  EXPECT_EQ(c.updates.advertise, Advertise::kBoth);  // D-40
}

struct Row {
  std::string flow;
  std::function<bool(const CSmaSpec&)> holds;
};

void check_keys(const std::vector<Row>& rows) {
  const CSmaSpec defaults = *good(c_sma_text("")).c_sma;
  for (const Row& row : rows) {
    EXPECT_FALSE(row.holds(defaults)) << row.flow;
    EXPECT_TRUE(row.holds(*good(c_sma_text(row.flow)).c_sma)) << row.flow;
  }
}

TEST(CSmaSiteReader, EachKeyOfWhatComesInIsRead) {
  check_keys({
      {"listen: \"127.0.0.1:7443\"", [](const CSmaSpec& s) { return s.listen == "127.0.0.1:7443"; }},
      {"accept: [{csci_id: \"192.0.2.10:80\", cs_id: ARS, gas_ceiling: 7}]",
       [](const CSmaSpec& s) {
         return s.core.accept == std::vector<AcceptedSci>{{"192.0.2.10:80", "ARS", 7}};
       }},
      {"validation: {gas_anomaly: {change: 40%}}",
       [](const auto& s) { return s.core.validation.gas_anomaly.change == Share{0.4}; }},
      {"validation: {gas_anomaly: {within: 2s}}",
       [](const auto& s) { return s.core.validation.gas_anomaly.within == 2 * kSecond; }},
      {"validation: {gas_anomaly: {floor: 9}}", [](const auto& s) { return s.core.validation.gas_anomaly.floor == 9; }},
      {"validation: {computing_time_anomaly: {change: 50%}}",
       [](const auto& s) { return s.core.validation.computing_time_anomaly.change == Share{0.5}; }},
      {"validation: {computing_time_anomaly: {within: 2s}}",
       [](const auto& s) { return s.core.validation.computing_time_anomaly.within == 2 * kSecond; }},
      {"validation: {computing_time_anomaly: {floor: 9ms}}",
       [](const auto& s) { return s.core.validation.computing_time_anomaly.floor == 9 * kMillisecond; }},
      {"validation: {flapping: {transitions: 5}}",
       [](const auto& s) { return s.core.validation.flapping.transitions == 5; }},
      {"validation: {flapping: {within: 5s}}",
       [](const auto& s) { return s.core.validation.flapping.within == 5 * kSecond; }},
      {"validation: {anomalous: flag}", [](const auto& s) { return s.core.validation.anomalous == Anomalous::kFlag; }},
      {"validation: {clock_skew: {alarm: 5s}}",
       [](const auto& s) { return s.core.validation.skew_alarm == 5 * kSecond; }},
      {"validation: {clock_skew: {refuse: 20s}}",
       [](const auto& s) { return s.core.validation.skew_refuse == 20 * kSecond; }},
      {"validation: {consistency: cs-id}",
       [](const auto& s) { return s.core.validation.consistency == Consistency::kCsId; }},
      {"cache: {max_entries: 3}", [](const auto& s) { return s.core.cache.max_entries == 3; }},
      {"cache: {at_limit: refuse}", [](const auto& s) { return s.core.cache.at_limit == AtLimit::kRefuse; }},
      {"cache: {quota_per_identity: 50%}", [](const auto& s) { return s.core.cache.quota_per_identity == Share{0.5}; }},
      {"cache: {ttl: {gas: 3s}}", [](const auto& s) { return s.core.cache.ttl_gas == 3 * kSecond; }},
      {"cache: {ttl: {computing_time: 3s}}",
       [](const auto& s) { return s.core.cache.ttl_computing_time == 3 * kSecond; }},
      {"cache: {ttl: {optional: 3s}}", [](const auto& s) { return s.core.cache.ttl_optional == 3 * kSecond; }},
      {"cache: {grace: 1s}", [](const auto& s) { return s.core.cache.grace == kSecond; }},
      {"cache: {stale: decay}", [](const auto& s) { return s.core.cache.stale == Stale::kDecay; }},
  });
}

TEST(CSmaSiteReader, EachKeyOfWhatGoesOutIsRead_CSMA155) {
  check_keys({
      {"self_doubt: {share: 20%}", [](const auto& s) { return s.core.self_doubt.share == Share{0.2}; }},
      {"self_doubt: {hold: 3s}", [](const auto& s) { return s.core.self_doubt.hold == 3 * kSecond; }},
      {"transform: {safety_margin: 0.8}", [](const auto& s) { return s.core.transform.safety_margin == Share{0.8}; }},
      {"transform: {computing_time: {min: 2ms}}",
       [](const auto& s) { return s.core.transform.computing_time_min_ms == 2; }},
      {"transform: {computing_time: {max: 2s}}",
       [](const auto& s) { return s.core.transform.computing_time_max_ms == 2000; }},
      {"transform: {computing_time: {aggregate: p95}}",
       [](const auto& s) { return s.core.transform.computing_time == Aggregate::kP95; }},
      {"transform: {smoothing: {gas: {alpha: 0.2, per: 2s}}}",
       [](const auto& s) {
         return s.core.transform.gas_smoothing == Smoothing{Share{0.2}, 2 * kSecond};
       }},
      {"updates: {gas_change: 5%}", [](const auto& s) { return s.core.updates.gas_change == Share{0.05}; }},
      {"updates: {gas_absolute: 9}", [](const auto& s) { return s.core.updates.gas_absolute == 9; }},
      {"updates: {computing_time_change: 5%}",
       [](const auto& s) { return s.core.updates.computing_time_change == Share{0.05}; }},
      {"updates: {heartbeat: 7s}", [](const auto& s) { return s.core.updates.heartbeat == 7 * kSecond; }},
      {"updates: {minimum_interval: 7s}", [](const auto& s) { return s.core.updates.minimum_interval == 7 * kSecond; }},
      {"updates: {rate: 5/s, burst: 6}",
       [](const auto& s) {
         return s.core.updates.rate == TokenRate{kSecond / 5, 6};
       }},
      {"updates: {critical: {rate: 5/s, burst: 6}}",
       [](const auto& s) {
         return s.core.updates.critical == TokenRate{kSecond / 5, 6};
       }},
      {"updates: {backoff: {initial: 2s}}",
       [](const auto& s) { return s.core.updates.backoff_initial == 2 * kSecond; }},
      {"updates: {backoff: {max: 20s}}", [](const auto& s) { return s.core.updates.backoff_max == 20 * kSecond; }},
      {"updates: {advertise: per-site}", [](const auto& s) { return s.core.updates.advertise == Advertise::kPerSite; }},
      {"updates: {valid_for: 61s}", [](const auto& s) { return s.core.updates.valid_for == 61 * kSecond; }},
      {"c_ps: [{protocol: grpc, address: \"[::1]:7444\", identity: cps, cs_ids: [ARS, VRS]}]",
       [](const CSmaSpec& s) {
         return s.c_ps == std::vector<CpsTarget>{{"[::1]:7444", "cps", {"ARS", "VRS"}}};
       }},
  });
}

TEST(CSmaSiteReader, RoleDecidesWhatRuns) {
  EXPECT_FALSE(good(joining(kSiteText)).c_sma);
  EXPECT_FALSE(good(c_sma_text("") + "control: {role: sci}\n").c_sma);
  const SiteSpec alone = good("site: s\ncontrol: {role: c-sma}\nc_sma: {identity: x}\n");
  EXPECT_EQ(alone.role, Role::kCSma);
  EXPECT_EQ(alone.c_sma->core.identity, "x");
  EXPECT_TRUE(alone.scis.empty());
  const SiteSpec with_scis = good(c_sma_text("") + "control: {role: c-sma}\n");
  EXPECT_TRUE(with_scis.scis.empty());
  EXPECT_TRUE(with_scis.site.scis.empty());
  EXPECT_EQ(with_scis.site.control_socket, "");
  EXPECT_EQ(with_scis.c_sma->core.accept.size(), 1u);
}

TEST(CSmaSiteReader, ReportsToAndSecurity) {
  const SiteSpec spec = good(sci("reports_to: {address: \"c:7443\", identity: i, certificate: a, key: b}") +
                             "security: {ca: 1, certificate: 2, key: 3, crl: 4, signing_key: {id: k1, file: 5}}\n");
  EXPECT_EQ(spec.reports_to, (std::map<std::string, ReportsTo>{{"192.0.2.10:80", {"c:7443", "i", "a", "b"}}}));
  EXPECT_EQ(spec.security, (security::SecurityConfig{"1", "2", "3", "4", security::SigningKeyFile{"k1", "5"}}));
}

TEST(CSmaSiteReader, Pulls_CSMA29) {
  const std::string two =
      "accept: [{csci_id: a, cs_id: b}, {csci_id: c, cs_id: d}], pull: [{csci_id: a, grpc: \"h:1\"}, "
      "{csci_id: c, http: \"https://[::1]:1/v1/report/c\", every: 0s, timeout: 100ms}]";
  const SiteSpec now = good(c_sma_text(two));
  EXPECT_EQ(now.c_sma->pull,
            (std::vector<PullTarget>{
                {.csci_id = "a", .grpc = "h:1", .url = "", .every = 60 * kSecond, .timeout = 5 * kSecond},
                {.csci_id = "c",
                 .grpc = "",
                 .url = "https://[::1]:1/v1/report/c",
                 .every = 0,
                 .timeout = 100 * kMillisecond}}));
  EXPECT_TRUE(needs_restart(now, good(c_sma_text(""))).empty());
  // One that reports elsewhere may be asked for here.
  const SiteSpec own = good(sci("reports_to: {address: \"c:7443\"}") + kSecurity +
                            "c_sma: {identity: x, pull: [{csci_id: \"192.0.2.10:80\", grpc: \"h:1\"}]}\n");
  EXPECT_EQ(own.c_sma->pull.size(), 1u);
}

TEST(CSmaSiteReader, PulledBy_SCI27) {
  const SiteSpec none = good(section(kSecurity));
  EXPECT_FALSE(none.pulled_by.grpc);
  EXPECT_FALSE(none.pulled_by.http);
  const SiteSpec spec = good(section(
      "control: {role: sci, pulled_by: {grpc: \"0.0.0.0:7445\", http: \"[::1]:7446\", identity: i}}\n" + kSecurity));
  EXPECT_EQ(spec.pulled_by.grpc->format(), "0.0.0.0:7445");
  EXPECT_EQ(spec.pulled_by.http->format(), "[::1]:7446");
  EXPECT_EQ(spec.pulled_by.identity, "i");
  SiteSpec next = spec;
  next.pulled_by.http.reset();
  EXPECT_EQ(needs_restart(spec, next), std::vector<std::string>{"control.pulled_by"});
}

TEST(CSmaSiteReader, PullsThatAreRefused) {
  const std::string host =
      "expected a host with port such as cps.example.net:7444, 192.0.2.1:7444 or [2001:db8::1]:7444";
  const std::string url = "expected a URL such as https://sci.example.net:7446/v1/report/192.0.2.10:80";
  const auto pull = [](const std::string& csci_id, const std::string& rest) {
    return "accept: [{csci_id: a, cs_id: b}], pull: [{csci_id: " + csci_id + ", " + rest + "}]";
  };
  const auto read = [](const std::string& text) { return parse_site(text, "site.yaml"); };
  check_rows(
      {
          {section("c_sma: {identity: x, ^pull: []}\n"),
           "c_sma.pull: goes by mutual TLS, expected `security` to name the certificates"},
          {c_sma_text(pull("^z", "grpc: \"h:1\"")),
           "c_sma.pull[0].csci_id: expected a CSCI-ID that `accept` lists, got \"z\""},
          {c_sma_text(
               "accept: [{csci_id: a, cs_id: b}], pull: [{csci_id: a, grpc: \"h:1\"}, {csci_id: ^a, grpc: \"h:1\"}]"),
           "c_sma.pull[1].csci_id: expected a CSCI-ID that stands in one entry only, got \"a\""},
          {c_sma_text("pull: [{csci_id: ^\"192.0.2.10:80\", grpc: \"h:1\"}]"),
           "c_sma.pull[0].csci_id: expected an SCI of another process, got \"192.0.2.10:80\""},
          {c_sma_text("accept: [{csci_id: a, cs_id: b}], pull: [^{csci_id: a}]"),
           "c_sma.pull[0]: expected one of `grpc` and `http`"},
          {c_sma_text("accept: [{csci_id: a, cs_id: b}], pull: [^{csci_id: a, grpc: \"h:1\", http: \"https://h\"}]"),
           "c_sma.pull[0]: expected one of `grpc` and `http`"},
          {c_sma_text(pull("a", "grpc: ^\"h\"")), "c_sma.pull[0].grpc: " + host + ", got \"h\""},
          {c_sma_text(pull("a", "http: ^\"http://h/\"")), "c_sma.pull[0].http: " + url + ", got \"http://h/\""},
          {c_sma_text(pull("a", "http: ^\"https:///x\"")), "c_sma.pull[0].http: " + url + ", got \"https:///x\""},
          {c_sma_text(pull("a", "http: ^\"https://u@h/\"")), "c_sma.pull[0].http: " + url + ", got \"https://u@h/\""},
          {c_sma_text(pull("a", "grpc: \"h:1\", every: ^999ms")),
           "c_sma.pull[0].every: expected 0s, or at least 1s, got \"999ms\""},
          {c_sma_text(pull("a", "grpc: \"h:1\", timeout: ^99ms")),
           "c_sma.pull[0].timeout: expected a duration from 100ms to 1m, got \"99ms\""},
          {section("control: {role: c-sma, ^pulled_by: {grpc: \"0.0.0.0:1\"}}\n" + kSecurity +
                   "c_sma: {identity: x}\n"),
           "control.pulled_by: is for processes that run SCIs, expected role sci or both"},
          {section("control: {^pulled_by: {grpc: \"0.0.0.0:1\"}}\n"),
           "control.pulled_by: goes by mutual TLS, expected `security` to name the certificates"},
          {section("control: {pulled_by: ^{identity: x}}\n" + kSecurity),
           "control.pulled_by: expected `grpc`, `http` or both"},
          {section("control: {pulled_by: {http: ^\"7446\"}}\n" + kSecurity),
           "control.pulled_by.http: expected an address with port such as 0.0.0.0:7446 or [::1]:7446, got \"7446\""},
      },
      read);
}

TEST(CSmaSiteReader, WhatIsRefused) {
  const std::string host =
      "expected a host with port such as cps.example.net:7444, 192.0.2.1:7444 or [2001:db8::1]:7444";
  const std::string cps = "c_ps: [{protocol: grpc, identity: i, cs_ids: [A], address: ";
  const auto read = [](const std::string& text) { return parse_site(text, "site.yaml"); };
  check_rows(
      {
          {section(kSecurity + "c_sma: ^{listen: \"127.0.0.1:1\"}\n"), "c_sma.identity: is missing"},
          {"^" + section("control: {role: c-sma}\n"), "c_sma: is missing"},
          {section("c_sma: {identity: x, ^listen: \"127.0.0.1:7443\"}\n"),
           "c_sma.listen: goes by mutual TLS, expected `security` to name the certificates"},
          {section("c_sma: {identity: x, ^c_ps: []}\n"),
           "c_sma.c_ps: goes by mutual TLS, expected `security` to name the certificates"},
          {c_sma_text("listen: ^\"7443\""),
           "c_sma.listen: expected an address with port such as 0.0.0.0:7443 or [::1]:7443, got \"7443\""},
          {c_sma_text("accept: [{csci_id: a, cs_id: b}, {csci_id: ^a, cs_id: c}]"),
           "c_sma.accept[1].csci_id: expected a CSCI-ID that stands in one entry only, got \"a\""},
          {c_sma_text(cps + "^\"a:b:7\"}]"), "c_sma.c_ps[0].address: " + host + ", got \"a:b:7\""},
          {c_sma_text(cps + "^\"h:0\"}]"), "c_sma.c_ps[0].address: " + host + ", got \"h:0\""},
          {c_sma_text(cps + "^\":7\"}]"), "c_sma.c_ps[0].address: " + host + ", got \":7\""},
          {c_sma_text("c_ps: [{protocol: ^bgp-ls, address: \"h:1\", identity: i, cs_ids: [A]}]"),
           "c_sma.c_ps[0].protocol: bgp-ls is not built yet, expected grpc"},
          {c_sma_text("validation: {ranges: {reputation: {min: ^11}}}"),
           "c_sma.validation.ranges.reputation.min: expected a minimum not above the maximum, got \"11\""},
          {c_sma_text("validation: {clock_skew: {alarm: ^31s}}"),
           "c_sma.validation.clock_skew.alarm: expected an alarm not above what is refused, got \"31s\""},
          {c_sma_text("transform: {computing_time: {min: ^11s}}"),
           "c_sma.transform.computing_time.min: expected a minimum not above the maximum, got \"11s\""},
          {c_sma_text("transform: {computing_time: {max: ^3601s}}"),
           "c_sma.transform.computing_time.max: expected a duration from 1ms to 1h, got \"3601s\""},
          {c_sma_text("updates: {valid_for: ^60s}"),
           "c_sma.updates.valid_for: expected rows that are valid for longer than a heartbeat, got \"60s\""},
          {c_sma_text("updates: {backoff: {max: ^500ms}}"),
           "c_sma.updates.backoff.max: expected a first wait not above the longest, got \"500ms\""},
          {c_sma_text("^policies: []"), "c_sma.policies: is not built yet, expected it left out"},
          {c_sma_text("^maintenance_windows: {}"), "c_sma.maintenance_windows: is not built yet, expected it left out"},
          {section("security: ^{ca: a}\n"), "security.certificate: is missing"},
          {sci("reports_to: ^{address: \"h:1\", key: k}") + kSecurity,
           "scis[0].reports_to: expected `certificate` and `key` together"},
      },
      read);
}

TEST(CpsConfig, IsReadWithoutScis) {
  const auto config =
      cps::parse_cps(kSecurity + "cps:\n  c_smas: [{identity: c, keys: {k1: a.pub}, cs_ids: [ARS]}]\n", "f");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->listen, "0.0.0.0:7444");
  EXPECT_EQ(config->window, 30 * kSecond);  // CSMA-145
  EXPECT_EQ(config->max_rows, 131072u);     // rows of 100,000 SCIs, and of their CS-IDs
  EXPECT_EQ(config->state, "");
  EXPECT_EQ(config->c_smas, (std::vector<cps::TrustedCSma>{{"c", {{"k1", "a.pub"}}, {"ARS"}}}));
  EXPECT_EQ(config->security.ca, "ca.pem");
  const auto all = cps::parse_cps(
      section(kSecurity + "cps: {listen: \"[::1]:1\", cli: /x/y, window: 5s, max_rows: 7, state: /a/b, c_smas: []}\n"),
      "f");
  ASSERT_TRUE(all) << all.error().message;
  EXPECT_EQ(all->listen, "[::1]:1");
  EXPECT_EQ(all->cli_socket, "/x/y");
  EXPECT_EQ(all->window, 5 * kSecond);
  EXPECT_EQ(all->max_rows, 7u);
  EXPECT_EQ(all->state, "/a/b");
}

TEST(CpsConfig, WhatIsRefused) {
  const auto read = [](const std::string& text) { return cps::parse_cps(text, "site.yaml"); };
  check_rows(
      {
          {"^" + kSecurity, "cps: is missing"},
          {"^cps: {c_smas: []}\n", "security: is missing"},
          {kSecurity + "cps: ^{}\n", "cps.c_smas: is missing"},
          {kSecurity + "cps: {c_smas: [], ^lisen: x}\n",
           "cps: unknown key \"lisen\", the nearest known one is \"listen\""},
          {kSecurity + "cps: {c_smas: [], max_rows: ^0}\n",
           "cps.max_rows: expected an integer from 1 to 10000000, got \"0\""},
          {kSecurity + "cps: {c_smas: [], state: ^here}\n",
           "cps.state: expected none, or the path of a file with a '/' in it, got \"here\""},
          {kSecurity + "cps: {c_smas: [{identity: a, cs_ids: []}, {identity: ^a, cs_ids: []}]}\n",
           "cps.c_smas[1].identity: expected an identity that stands once, got \"a\""},
      },
      read);
}

}  // namespace
}  // namespace margay::control
