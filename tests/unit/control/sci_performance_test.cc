// SPDX-License-Identifier: Apache-2.0
// One SCI as a whole: metrics and the performance check, in simulated time.
#include <gtest/gtest.h>

#include "tests/unit/control/sci_rig.h"

namespace margay::control {
namespace {

using test::SciRig;
using test::two_instances;

using enum HealthState;

SciSpec with_performance() {
  SciSpec config = two_instances();
  config.health.performance = PerformanceConfig{.response_time = 500 * kMillisecond, .error_rate = Share{0.05}};
  config.metrics.prometheus = "http://{address}:9100/metrics";
  return config;
}

TEST(Sci, ASlowInstanceIsDegradedAndHalved_SCI50_SCI61_SCI67) {
  SciRig r(with_performance());
  r.settle();
  const auto slow = [&r] {
    for (int i = 0; i < 100; ++i) {
      r.responses["si-1"].add(800 * kMillisecond);
      r.responses["si-2"].add(20 * kMillisecond);
      r.ledger({{"si-1", 30}, {"si-2", 50}});
      r.run_for(kSecond);
    }
  };
  slow();
  EXPECT_EQ(r.state_of("si-1"), kDegraded);
  EXPECT_EQ(r.state_of("si-2"), kHealthy);
  ASSERT_FALSE(r.transitions.empty());
  EXPECT_EQ(r.transitions.at(0).second.change.cause.detail, "response time 800 ms, at most 500 ms");
  EXPECT_EQ(r.sci.state().gas->value, 220u);  // (100 - 30) + (200 - 50)
  // (0.5 * 30 * 800 + 50 * 20) / (0.5 * 30 + 50) = 200
  EXPECT_EQ(r.sci.state().computing_time.value, 200u);
}

TEST(Sci, AnIdleInstanceShowsByItsProbesThatItIsFastAgain_SCI50) {
  SciRig r(with_performance());
  r.settle();
  r.behaviours["si-1"].latency = 800 * kMillisecond;
  r.run_for(60 * kSecond);
  ASSERT_EQ(r.state_of("si-1"), kDegraded);
  r.behaviours["si-1"].latency = 2 * kMillisecond;
  r.run_for(30 * kSecond);
  EXPECT_EQ(r.state_of("si-1"), kHealthy);
}

// How long the last probe took says nothing of an instance that does not answer any more.
TEST(Sci, ADeadInstanceDoesNotShowThatItIsFast_SCI50_D24) {
  SciSpec config = with_performance();
  config.health.recovery = Recovery::kDirect;
  SciRig r(config);
  r.settle();
  r.behaviours["si-1"].samples = {{Metric::kResponseTime, SampleKind::kGauge, 0.8}};
  r.run_for(60 * kSecond);
  ASSERT_EQ(r.state_of("si-1"), kDegraded);
  r.behaviours["si-1"].liveness = Outcome::kFail;
  r.behaviours["si-1"].scrape_ok = false;
  r.run_for(60 * kSecond);
  ASSERT_EQ(r.state_of("si-1"), HealthState::kUnhealthy);
  r.behaviours["si-1"].liveness = Outcome::kPass;
  r.forget();
  r.run_for(3 * kSecond);
  ASSERT_FALSE(r.transitions.empty());
  EXPECT_EQ(r.transitions[0].second.change.to, kDegraded);  // performance has not risen
}

TEST(Sci, ErrorRateAndCpuDegradeToo_SCI50) {
  SciRig errors(with_performance());
  errors.settle();
  errors.behaviours["si-1"].samples = {{Metric::kRequests, SampleKind::kGauge, 100},
                                       {Metric::kErrors, SampleKind::kGauge, 5}};
  errors.run_for(100 * kSecond);
  EXPECT_EQ(errors.state_of("si-1"), kHealthy);  // 5 % is not more than 5 %
  errors.behaviours["si-1"].samples[1].value = 6;
  errors.run_for(60 * kSecond);
  EXPECT_EQ(errors.state_of("si-1"), kDegraded);
  EXPECT_EQ(errors.last_change().cause.detail, "error rate 6 %, at most 5 %");

  SciRig cpu(with_performance());
  cpu.settle();
  cpu.behaviours["si-1"].samples = {{Metric::kCpu, SampleKind::kGauge, 0.95}};
  cpu.run_for(100 * kSecond);
  EXPECT_EQ(cpu.state_of("si-1"), kDegraded);
  EXPECT_EQ(cpu.last_change().cause.detail, "CPU above 90 % for 30 s");
}

// "When all instances' metrics are stale, the source is at fault, not the instances."
TEST(Sci, SilenceOfTheExportersIsNoVerdict) {
  SciSpec config = with_performance();
  config.health.performance->response_time.reset();
  SciRig r(config);
  r.settle();
  r.behaviours["si-1"].scrape_ok = r.behaviours["si-2"].scrape_ok = false;
  r.run_for(300 * kSecond);
  EXPECT_EQ(r.state_of("si-1"), kHealthy);
  EXPECT_TRUE(r.transitions.empty());
}

TEST(Sci, SilenceOfAnExporterIsNoRecoveryEither) {
  SciSpec config = with_performance();
  config.health.performance->response_time.reset();
  SciRig r(config);
  r.settle();
  r.behaviours["si-1"].samples = {{Metric::kCpu, SampleKind::kGauge, 0.95}};
  r.run_for(100 * kSecond);
  ASSERT_EQ(r.state_of("si-1"), kDegraded);
  r.behaviours["si-1"].scrape_ok = false;
  r.run_for(300 * kSecond);
  EXPECT_EQ(r.state_of("si-1"), kDegraded);
}

TEST(Sci, ScrapesAtTheSamplingInterval_SCI24_SCI27_SCI30) {
  SciRig r(with_performance());
  r.settle();
  r.run_for(100 * kSecond);
  EXPECT_NEAR(static_cast<double>(r.scrapes.size()), 40, 2);
  EXPECT_EQ(r.scrapes[0].second.url.substr(0, 17), "http://10.1.0.1" + r.scrapes[0].second.id.substr(3) + ":");
}

}  // namespace
}  // namespace margay::control
