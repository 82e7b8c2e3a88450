// SPDX-License-Identifier: Apache-2.0
// One SCI under events in any order: what must hold after each, and that everything comes up again in the end.
#include <gtest/gtest.h>

#include <string>

#include "tests/support/seed.h"
#include "tests/unit/control/sci_rig.h"

namespace margay::control {
namespace {

using margay::test::Random;
using test::Behaviour;
using test::SciRig;

constexpr uint32_t kInstances = 6;
std::string id_of(uint32_t i) { return "si-" + std::to_string(i); }

SciSpec draw_config(Random& random) {
  SciSpec config{.csci_id = "192.0.2.10:80", .cs_id = "ARS"};
  config.health.liveness.reset();
  if (!random.one_in(4)) config.health.liveness = ProbeConfig{.fall = 1 + random.below(3), .rise = 1 + random.below(3)};
  if (random.one_in(2)) config.health.readiness = ProbeConfig{.http = "x", .interval = 30 * kSecond};
  if (random.one_in(2)) config.health.performance = PerformanceConfig{.response_time = 500 * kMillisecond};
  if (random.one_in(2)) config.health.recovery = Recovery::kDirect;
  if (random.one_in(2)) config.metrics.prometheus = "x";
  if (random.one_in(2)) config.price = random.below(10);
  config.report.interval = (1 + random.below(60)) * kSecond;
  for (uint32_t i = 0; i < kInstances; ++i) {
    if (random.one_in(4)) continue;
    const std::string address = "10.1.0." + std::to_string(random.below(2));
    config.instances.push_back({.id = id_of(i), .address = address, .port = 80, .max_sessions = 100});
  }
  return config;
}

Behaviour draw_behaviour(Random& random) {
  const auto outcome = [&] { return random.one_in(2) ? Outcome::kPass : static_cast<Outcome>(random.below(3)); };
  return {.liveness = outcome(),
          .readiness = outcome(),
          .latency = random.one_in(2) ? kMillisecond : kSecond,
          .hangs = random.one_in(6),
          .scrape_ok = !random.one_in(3),
          .samples = {{Metric::kResponseTime, SampleKind::kGauge, 0.1 * random.below(10)}}};
}

void happen(SciRig& r, Random& random) {
  const std::string id = id_of(random.below(kInstances));
  switch (random.below(10)) {
    case 0:
      return r.handle(ConfigChanged{draw_config(random)});
    case 1:
      return r.handle(DataPlaneLost{"why"});
    case 2:
      return r.handle(DataPlaneBack{});
    case 3:
      return r.handle(OperatorDrain{random.one_in(3) ? std::nullopt : std::optional(id), random.one_in(2)});
    case 4:
      return r.handle(
          CheckResult{id, static_cast<CheckKind>(random.below(3)), random.below(500), Outcome::kFail, 0, ""});
    case 5:
      return r.handle(random.one_in(2) ? Event(Pull{}) : Event(SecurityNotice{"x"}));
    case 6:
      r.behaviours[id] = draw_behaviour(random);
      return;
    default:
      r.responses[id].add(random.below(1000) * kMillisecond);
      return r.ledger({{id, random.below(150)}});
  }
}

void expect_sound(const SciRig& r) {
  uint64_t sequence = 0;
  for (const auto& [at, report] : r.reports) {
    ASSERT_EQ(report.sequence, ++sequence);
    const SciState& s = report.state;
    if (s.gas) {
      ASSERT_LE(s.gas->value, 100 * (s.health.healthy + s.health.degraded));
      ASSERT_TRUE(!s.data_plane_lost || s.gas->value == 0);
    }
    ASSERT_TRUE(s.health.healthy + s.health.degraded > 0 || !s.computing_time.value);
    ASSERT_LE(report.reporting_interval, 60 * kSecond);
  }
}

void run_one(uint64_t seed) {
  Random random(seed);
  SciRig r(draw_config(random));
  for (int step = 0; step < 150; ++step) {
    happen(r, random);
    if (random.one_in(2)) r.run_for(random.below(4000) * kMillisecond);
    ASSERT_LE(r.sci.next_due(), r.now + 61 * kSecond);
  }
  expect_sound(r);

  // All well again, and each kind is checked.
  for (uint32_t i = 0; i < kInstances; ++i) r.behaviours[id_of(i)] = {};
  SciSpec config = draw_config(random);
  config.health = {.readiness = ProbeConfig{.http = "x"}, .performance = PerformanceConfig{.response_time = kSecond}};
  r.handle(ConfigChanged{config});
  r.handle(DataPlaneBack{});
  r.handle(OperatorDrain{std::nullopt, false});
  LedgerSample sample;
  for (uint32_t i = 0; i < kInstances; ++i) {
    r.handle(OperatorDrain{id_of(i), false});
    sample.instances.push_back({id_of(i), {.active = 10}, r.responses[id_of(i)]});
  }
  r.handle(sample);
  r.run_for(180 * kSecond);
  ASSERT_EQ(r.sci.state().health.healthy, config.instances.size());
  ASSERT_EQ(r.sci.state().gas->value, 90 * config.instances.size());
}

TEST(Sci, AnyOrderOfEventsIsSurvivedAndLeft) {
  const uint64_t seed = margay::test::test_seed();
  SCOPED_TRACE(margay::test::seed_text(seed));
  for (uint64_t run = 0; run < 200; ++run) {
    run_one(seed + run);
    if (HasFatalFailure()) {
      ADD_FAILURE() << "run " << run;
      return;
    }
  }
}

}  // namespace
}  // namespace margay::control
