// SPDX-License-Identifier: Apache-2.0
// What the control plane refuses in the site file, each with its one line.
#include <gtest/gtest.h>

#include <string>

#include "common/site/site_reader.h"
#include "control/site_reader.h"
#include "tests/support/control_site_text.h"

namespace margay::control {
namespace {

using namespace margay::test;

void check_rows(std::initializer_list<RefusedSite> rows) {
  margay::test::check_rows(rows, [](const std::string& text) { return parse_site(text, "site.yaml"); });
}

TEST(ControlSiteReaderErrors, AFileThatTheDataPlaneRefusesIsRefusedInItsWords) {
  for (const std::string& text : {with_sci("mode: full-nat"), with_instance("weight: -1"), std::string("a: b"),
                                  std::string("- x"), std::string("a: [")}) {
    const auto data_plane = margay::parse_site(text, "site.yaml");
    const auto control = parse_site(text, "site.yaml");
    ASSERT_FALSE(data_plane || control) << text;
    EXPECT_EQ(control.error().message, data_plane.error().message);
  }
}

TEST(ControlSiteReaderErrors, WrongValuesOfTheProcess) {
  const std::string no_control = "dataplane.control: is missing, expected the socket of the data plane to join";
  check_rows({
      {replaced(kSiteText, "  ports:", "  ^ports:"), no_control},
      {replaced(kSiteText, "dataplane:\n", "dataplane:\n  control: ^none\n"),
       "dataplane.control: expected the socket of the data plane to join, got \"none\""},
      {section("control: {role: ^c_sma}"), "control.role: expected one of sci, c-sma, both, got \"c_sma\""},
      {section("control: {cli: ^" + std::string(108, 'x') + "}"),
       "control.cli: expected text of 1 to 107 bytes, got \"" + std::string(60, 'x') + "...\""},
      {section("control: {cli: ^/run/margay/dataplane.sock}"),
       "control.cli: expected a socket of its own, none of `dataplane`, got \"/run/margay/dataplane.sock\""},
      {section("control: {cli: ^/run/margay/cli.sock}"),
       "control.cli: expected a socket of its own, none of `dataplane`, got \"/run/margay/cli.sock\""},
      {section("control: {reports: ^./site.yaml}"),
       "control.reports: expected a file of its own, not this one, got \"./site.yaml\""},
      {section("control: {http: ^{}}"), "control.http.listen: is missing"},
      {section("control: {http: {listen: ^\"7480\"}}"),
       "control.http.listen: expected an address with port such as 127.0.0.1:7480 or [::1]:7480, got \"7480\""},
      {section("control: {reports: ^stdot}"),
       "control.reports: expected stdout, none, or the path of a file with a '/' in it, got \"stdot\""},
  });
}

TEST(ControlSiteReaderErrors, WrongValuesOfHealth) {
  const std::string h = "scis[0].health.";
  const std::string duration = "expected a duration from 10ms to 24h, got ", run = "expected an integer from 1 to 1000";
  const std::string url = "expected a URL such as http://{address}:{port}/health, got ";
  const std::string fields = "expected no fields but {address} and {port}, got ";
  check_rows({
      {health("confirm_interval: ^0s"), h + "confirm_interval: " + duration + "\"0s\""},
      {health("confirm_interval: ^25h"), h + "confirm_interval: " + duration + "\"25h\""},
      {health("batch: ^61s"), h + "batch: expected a duration from 0s to 1m, got \"61s\""},
      {health("liveness: {interval: ^9ms}"), h + "liveness.interval: " + duration + "\"9ms\""},
      {health("liveness: {timeout: ^0ms}"), h + "liveness.timeout: expected a duration from 1ms to 24h, got \"0ms\""},
      {health("liveness: {fall: ^0}"), h + "liveness.fall: " + run + ", got \"0\""},
      {health("liveness: {rise: ^0}"), h + "liveness.rise: " + run + ", got \"0\""},
      {health("liveness: {rise: ^1001}"), h + "liveness.rise: " + run + ", got \"1001\""},
      {health("liveness: {timeout: ^5s}"), h + "liveness.timeout: expected less than the interval of 5s, got \"5s\""},
      {health("liveness: {interval: ^1s}"), h + "liveness.interval: expected more than the timeout of 1s, got \"1s\""},
      {health("liveness: {http: ^\"https://{address}/\"}"), h + "liveness.http: " + url + "\"https://{address}/\""},
      {health("liveness: {http: ^\"http://\"}"), h + "liveness.http: " + url + "\"http://\""},
      {health("liveness: {http: ^\"http:///x\"}"), h + "liveness.http: " + url + "\"http:///x\""},
      {health("liveness: {http: ^\"http://:80\"}"), h + "liveness.http: " + url + "\"http://:80\""},
      {health("liveness: {http: ^\"http://a/ b\"}"), h + "liveness.http: " + url + "\"http://a/ b\""},
      {health("liveness: {http: ^\"http://{host}/\"}"), h + "liveness.http: " + fields + "\"http://{host}/\""},
      {health("liveness: {http: ^\"http://{address\"}"), h + "liveness.http: " + fields + "\"http://{address\""},
      {health("liveness: {http: ^\"http://address}\"}"), h + "liveness.http: " + fields + "\"http://address}\""},
      {health("readiness: ^{interval: 9s}"), h + "readiness.http: is missing"},
      {health("readiness: {http: \"http://a\", timeout: ^30s}"),
       h + "readiness.timeout: expected less than the interval of 30s, got \"30s\""},
      {health("performance: ^{}"), h + "performance: says no bound, expected response_time, error_rate or cpu"},
      {health("performance: {response_time: ^0s}"),
       h + "performance.response_time: expected a duration from 1ms to 24h, got \"0s\""},
      {health("performance: {response_time: 1s, ^cpu: {}}"),
       h + "performance.cpu: rests on the metric cpu, expected `metrics` of this SCI to name it"},
      {health("performance: {response_time: 1s, ^error_rate: 5%}"),
       h + "performance.error_rate: rests on what is scraped, expected `metrics` of this SCI to say what"},
      {sci("metrics: {prometheus: \"http://a\", names: {load: l}}\n    health: {performance: {^cpu: {}}}"),
       h + "performance.cpu: rests on the metric cpu, expected `metrics` of this SCI to name it"},
      {scraped("performance: {cpu: {above: ^101%}}"),
       h + "performance.cpu.above: expected a percentage from 0% to 100%, got \"101%\""},
      {scraped("performance: {interval: ^4s}"),
       h + "performance.interval: expected at least the interval of the metrics that it judges, 5s, got \"4s\""},
      {sci("metrics: {prometheus: \"http://a\", interval: ^31s}\n    health: {performance: {}}"),
       "scis[0].metrics.interval: expected at most the interval of the performance check, 30s, got \"31s\""},
      {joining(with_instance("^health: {}")), "scis[0].instances[0].health: is not built yet, expected it left out"},
  });
  // Response times are seen in the path, too.
  EXPECT_TRUE(parse_site(sci("metrics: {prometheus: \"http://a\", interval: 31s, names: {load: l}}\n    "
                             "health: {performance: {response_time: 1s}}"),
                         "site.yaml"));
}

TEST(ControlSiteReaderErrors, WrongValuesOfTheRest) {
  const std::string s = "scis[0].";
  check_rows({
      {sci("safety_margin: ^1.5"), s + "safety_margin: expected a number from 0 to 1, got \"1.5\""},
      {sci("degradation_factor: ^1.1"), s + "degradation_factor: expected a number from 0 to 1, got \"1.1\""},
      {sci("computing_time: {window: ^0s}"),
       s + "computing_time.window: expected a duration from 10ms to 24h, got \"0s\""},
      {sci("computing_time: {per: ^0s}"), s + "computing_time.per: expected a duration from 10ms to 24h, got \"0s\""},
      {sci("computing_time: {alpha: ^2}"), s + "computing_time.alpha: expected a number from 0 to 1, got \"2\""},
      {sci("report: {interval: ^0s}"), s + "report.interval: expected a duration from 10ms to 24h, got \"0s\""},
      {sci("report: {gas_change: ^401%}"),
       s + "report.gas_change: expected a percentage from 0% to 400%, got \"401%\""},
      {sci("report: {computing_time_change: ^401%}"),
       s + "report.computing_time_change: expected a percentage from 0% to 400%, got \"401%\""},
      {sci("report: {burst: ^0}"), s + "report.burst: expected an integer from 1 to 1000000, got \"0\""},
      {sci("report: {rate: ^0/s}"), s + "report.rate: expected a rate such as 200/s, got \"0/s\""},
      {sci("report: {critical: {rate: ^1000001/s}}"),
       s + "report.critical.rate: expected a rate of at most 1000000/s, got \"1000001/s\""},
      {sci("report: {critical: {burst: ^0}}"),
       s + "report.critical.burst: expected an integer from 1 to 1000000, got \"0\""},
      {sci("^reports_to: {address: \"127.0.0.1:7443\"}"),
       s + "reports_to: goes by mutual TLS, expected `security` to name the CA"},
      {sci("metrics: ^{interval: 5s}"), s + "metrics.prometheus: is missing"},
      {sci("metrics: {prometheus: ^\"file:///x\"}"),
       s + "metrics.prometheus: expected a URL such as http://{address}:{port}/health, got \"file:///x\""},
      {sci("metrics: {prometheus: \"http://a\", interval: ^0s}"),
       s + "metrics.interval: expected a duration from 10ms to 24h, got \"0s\""},
      {sci("metrics: {prometheus: \"http://a\", names: ^nodes}"),
       s + "metrics.names: expected one of node, vllm, triton, tgi, got \"nodes\""},
      {sci("metrics: {prometheus: \"http://a\", names: {cpu: ^a b}}"),
       s + "metrics.names[\"cpu\"]: expected a series such as http_requests_total or "
           "http_requests_total{code=\"5xx\"}, got "
           "\"a b\""},
      {sci("metrics: {prometheus: \"http://a\", names: {^cpus: x}}"),
       s + "metrics.names: unknown key \"cpus\", the nearest known one is \"cpu\""},
      {joining(with_instance("^metrics: {}")), s + "instances[0].metrics: is not built yet, expected it left out"},
  });
}

}  // namespace
}  // namespace margay::control
