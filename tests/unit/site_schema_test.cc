// SPDX-License-Identifier: Apache-2.0
// The parts of the site file that other programs read: unknown keys and syntax.
#include <gtest/gtest.h>

#include <string>

#include "common/site/site_reader.h"
#include "tests/support/site_text.h"

namespace margay {
namespace {

using namespace margay::test;

TEST(SiteSchema, PartsOfOtherPrograms) {
  const auto section = [](const std::string& text) { return kSiteText + text; };
  check_rows({
      {section("state_directory: ^[]"), "state_directory: expected text of 1 to 4095 bytes, got a list"},
      {section("control: {^rol: both}"), "control: unknown key \"rol\", the nearest known one is \"role\""},
      {section("control: {role: ^all}"), "control.role: expected one of sci, c-sma, both, got \"all\""},
      {section("control: ^none"), "control: expected a map, got \"none\""},
      {section("c_sma: {cache: {max_entries: ^-1}}"),
       "c_sma.cache.max_entries: expected an integer from 0 to 4294967295, got \"-1\""},
      {section("c_sma: {updates: {rate: ^10}}"), "c_sma.updates.rate: expected a rate such as 200/s, got \"10\""},
      {section("c_sma: {policies: ^x}"), "c_sma.policies: expected a list, got \"x\""},
      {section("c_sma: {maintenance_windows: {nightly: {days: [sat, ^sunday]}}}"),
       "c_sma.maintenance_windows[\"nightly\"].days[1]: expected one of mon, tue, wed, thu, fri, sat, sun, "
       "got \"sunday\""},
      {section("c_sma: {accept: [{csci_id: a}, {^cs: b}]}"),
       "c_sma.accept[1]: unknown key \"cs\", the nearest known one is \"cs_id\""},
      {section("cps: {c_smas: [{keys: {k1: ^[]}}]}"),
       "cps.c_smas[0].keys[\"k1\"]: expected text of 1 to 4095 bytes, got a list"},
      {section("security: {signing_key: {id: k1, ^path: x}}"),
       "security.signing_key: unknown key \"path\", the nearest known one is \"id\""},
      {with_sci("metrics: {interval: ^5}"),
       "scis[0].metrics.interval: expected a duration such as 300s or 200ms, got \"5\""},
      {with_sci("metrics: {names: {cpu: ^[]}}"),
       "scis[0].metrics.names[\"cpu\"]: expected text of 1 to 4095 bytes, got a list"},
      {with_sci("health: {liveness: {^htp: x}}"),
       "scis[0].health.liveness: unknown key \"htp\", the nearest known one is \"http\""},
      {with_sci("health: {performance: {cpu: {above: ^90}}}"),
       "scis[0].health.performance.cpu.above: expected a percentage from 0% to 1000%, got \"90\""},
      {with_sci("computing_time: {method: ^mean}"),
       "scis[0].computing_time.method: expected one of weighted-mean, median, p95, dynamic, got \"mean\""},
      {with_sci("safety_margin: ^1.5"), "scis[0].safety_margin: expected a number from 0 to 1, got \"1.5\""},
      {with_sci("reputation: ^11"), "scis[0].reputation: expected an integer from 0 to 10, got \"11\""},
      {with_sci("price: ^4294967296"), "scis[0].price: expected an integer from 0 to 4294967295, got \"4294967296\""},
      {with_sci("report: {critical: {^rat: 1/s}}"),
       "scis[0].report.critical: unknown key \"rat\", the nearest known one is \"rate\""},
      {with_instance("health: {^batsch: 1s}"),
       "scis[0].instances[0].health: unknown key \"batsch\", the nearest known one is \"batch\""},
      {with_instance("metrics: ^node"), "scis[0].instances[0].metrics: expected a map, got \"node\""},
  });
  EXPECT_TRUE(parse_site(with_sci("metrics: {names: vllm}"), "site.yaml"));
}

}  // namespace
}  // namespace margay
