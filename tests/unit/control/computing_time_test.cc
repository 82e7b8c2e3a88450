// SPDX-License-Identifier: Apache-2.0
#include "control/sci/computing_time.h"

#include <gtest/gtest.h>

#include <vector>

namespace margay::control {
namespace {

constexpr Share kEven{0.5};

InstanceInput told(HealthState health, uint32_t active, Nanoseconds response) {
  return {.health = health, .max_sessions = 100, .active = active, .response_time = response};
}
InstanceInput seen(HealthState health, uint32_t active, const Histogram& responses) {
  return {.health = health, .max_sessions = 100, .active = active, .responses = &responses};
}
ComputingTime estimate(const std::vector<InstanceInput>& list, ComputingTimeMethod method, Share factor = kEven) {
  return ComputingTimeEstimator().estimate(list, factor, {.method = method}, kSecond);
}
ComputingTime mean(const std::vector<InstanceInput>& list, Share factor = kEven) {
  return estimate(list, ComputingTimeMethod::kWeightedMean, factor);
}

TEST(ComputingTime, WeighsInstancesByActiveSessions_SCI38_D53) {
  // (30 * 100 + 10 * 200) / 40 = 125
  EXPECT_EQ(
      mean({told(HealthState::kHealthy, 30, 100 * kMillisecond), told(HealthState::kHealthy, 10, 200 * kMillisecond)})
          .value,
      125u);
}

TEST(ComputingTime, WithoutAnySessionItIsThePlainMean_D53) {
  EXPECT_EQ(
      mean({told(HealthState::kHealthy, 0, 100 * kMillisecond), told(HealthState::kHealthy, 0, 200 * kMillisecond)})
          .value,
      150u);
  // the DEGRADED one with half the weight: (100 + 0.5 * 400) / 1.5
  EXPECT_EQ(
      mean({told(HealthState::kHealthy, 0, 100 * kMillisecond), told(HealthState::kDegraded, 0, 400 * kMillisecond)})
          .value,
      200u);
}

TEST(ComputingTime, LeavesUnhealthyOutAndWeighsDegradedLower_SCI70_D38) {
  // (30 * 100 + 0.5 * 20 * 300) / (30 + 0.5 * 20) = 150
  EXPECT_EQ(
      mean({told(HealthState::kHealthy, 30, 100 * kMillisecond), told(HealthState::kDegraded, 20, 300 * kMillisecond),
            told(HealthState::kUnhealthy, 90, 9 * kSecond), told(HealthState::kUnknown, 90, 9 * kSecond)})
          .value,
      150u);
  InstanceInput draining = told(HealthState::kHealthy, 90, 9 * kSecond);
  draining.admin = Admin::kDraining;
  EXPECT_EQ(mean({draining, told(HealthState::kHealthy, 30, 100 * kMillisecond)}).value, 100u);
}

TEST(ComputingTime, IsAbsentWhenNothingServes_D42) {
  EXPECT_EQ(mean({}), ComputingTime{});
  EXPECT_EQ(mean({told(HealthState::kUnhealthy, 1, kSecond)}), ComputingTime{});
  EXPECT_EQ(mean({told(HealthState::kDegraded, 1, kSecond)}, Share{0}), ComputingTime{});
  EXPECT_EQ(mean({{.health = HealthState::kHealthy, .max_sessions = 10}}), ComputingTime{});  // nothing known
}

TEST(ComputingTime, RoundsUpToWholeMilliseconds_SCI117_D37) {
  EXPECT_EQ(mean({told(HealthState::kHealthy, 1, 1)}).value, 1u);
  EXPECT_EQ(mean({told(HealthState::kHealthy, 1, kMillisecond)}).value, 1u);
  EXPECT_EQ(mean({told(HealthState::kHealthy, 1, kMillisecond + 1)}).value, 2u);
  EXPECT_EQ(mean({told(HealthState::kHealthy, 1, 0)}).value, 1u);
  EXPECT_EQ(mean({told(HealthState::kHealthy, 1, 90 * 24 * 3600 * kSecond)}).value, 3'600'000u);  // field's range
}

TEST(ComputingTime, ShowsTheFastestAndTheSlowestWithTheirTokens_SCI41) {
  InstanceInput fast = told(HealthState::kHealthy, 1, 20 * kMillisecond);
  fast.input_tokens = 100;
  InstanceInput slow = told(HealthState::kDegraded, 1, 900 * kMillisecond);
  slow.input_tokens = 4000;
  const ComputingTime t =
      mean({told(HealthState::kHealthy, 1, 50 * kMillisecond), slow, fast, told(HealthState::kUnhealthy, 1, 1)});
  EXPECT_EQ(t.minimum, 20u);
  EXPECT_EQ(t.minimum_tokens, 100u);
  EXPECT_EQ(t.maximum, 900u);
  EXPECT_EQ(t.maximum_tokens, 4000u);
}

TEST(ComputingTime, RequestsSeenInThePathComeBeforeWhatIsTold_SCI37) {
  Histogram h;
  h.add(10 * kMillisecond, 4);
  InstanceInput i = seen(HealthState::kHealthy, 1, h);
  i.response_time = kSecond;
  EXPECT_EQ(mean({i}).value, 10u);
  const Histogram nothing;
  i.responses = &nothing;
  EXPECT_EQ(mean({i}).value, 1000u);
}

// The bucket of each duration is an eighth wide at most, and the quantile lies in it.
void expect_near(std::optional<uint32_t> ms, double expected) {
  ASSERT_TRUE(ms.has_value());
  EXPECT_GE(*ms, expected * 7 / 8);
  EXPECT_LE(*ms, expected * 9 / 8 + 1);
}

TEST(ComputingTime, MedianAndP95AreOverRequestsNotInstances_SCI39_D53) {
  // 960 requests of 10 ms on one instance, 40 of 1 s on three others: the 950th of 1000 took 10 ms. Over instances'
  // means both would be 1 s.
  Histogram many, few, few2, few3;
  many.add(10 * kMillisecond, 960);
  few.add(kSecond, 20);
  few2.add(kSecond, 10);
  few3.add(kSecond, 10);
  const auto list = [&] {
    return std::vector{seen(HealthState::kHealthy, 1, many), seen(HealthState::kHealthy, 1, few),
                       seen(HealthState::kHealthy, 1, few2), seen(HealthState::kHealthy, 1, few3)};
  };
  expect_near(estimate(list(), ComputingTimeMethod::kMedian).value, 10);
  expect_near(estimate(list(), ComputingTimeMethod::kP95).value, 10);
  few.add(kSecond, 20);  // 60 of 1020 now: the 969th took a second
  expect_near(estimate(list(), ComputingTimeMethod::kMedian).value, 10);
  expect_near(estimate(list(), ComputingTimeMethod::kP95).value, 1000);
}

TEST(ComputingTime, QuantilesWeighDegradedLowerToo_D38) {
  // Slow requests are 60 of 100, with half weight 30 of 70: the median moves to the fast ones.
  Histogram fast, slow;
  fast.add(10 * kMillisecond, 40);
  slow.add(kSecond, 60);
  const std::vector list = {seen(HealthState::kHealthy, 1, fast), seen(HealthState::kDegraded, 1, slow)};
  expect_near(estimate(list, ComputingTimeMethod::kMedian, Share{1}).value, 1000);
  expect_near(estimate(list, ComputingTimeMethod::kMedian, kEven).value, 10);
}

TEST(ComputingTime, QuantilesFallBackOnTheMeanWhereNoRequestWasSeen) {
  EXPECT_EQ(estimate({told(HealthState::kHealthy, 1, 70 * kMillisecond)}, ComputingTimeMethod::kP95).value, 70u);
}

TEST(ComputingTime, DynamicFollowsHistoryAndLoad_SCI40) {
  ComputingTimeEstimator e;
  const ComputingTimeConfig config{.method = ComputingTimeMethod::kDynamic, .alpha = Share{0.5}, .period = kSecond};
  const auto at = [&](Nanoseconds now, uint32_t active, Nanoseconds response) {
    return e.estimate(std::vector{told(HealthState::kHealthy, active, response)}, kEven, config, now).value;
  };
  EXPECT_EQ(at(kSecond, 20, 100 * kMillisecond), 100u);  // load 0.2 is usual so far
  EXPECT_EQ(at(2 * kSecond, 20, 200 * kMillisecond), 150u);
  // Load jumps to 0.6, of which half becomes usual at once: 150 * (1 + 0.6 - 0.4)
  EXPECT_EQ(at(3 * kSecond, 60, 150 * kMillisecond), 180u);
  // Two periods without news of 350: 150 + (1 - 1/4) * 200 = 300; load 0.6, usual 0.4 + 3/4 * 0.2 = 0.55
  EXPECT_EQ(at(5 * kSecond, 60, 350 * kMillisecond), 315u);
  e.forget();
  EXPECT_EQ(at(6 * kSecond, 60, 10 * kMillisecond), 10u);
}

}  // namespace
}  // namespace margay::control
