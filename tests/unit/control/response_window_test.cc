// SPDX-License-Identifier: Apache-2.0
#include "control/sci/response_window.h"

#include <gtest/gtest.h>

namespace margay::control {
namespace {

constexpr Nanoseconds kWindow = 30 * kSecond;

TEST(ResponseWindow, HoldsTheLastOneToTwoWindows) {
  ResponseWindow w;
  Histogram all;
  for (Nanoseconds second = 100; second <= 400; ++second) {
    all.add(second < 300 ? 10 * kMillisecond : kSecond);
    w.take(all, kWindow, second * kSecond);
    if (second < 100 + 60) continue;
    EXPECT_GE(w.recent().count(), 30u) << second;
    EXPECT_LE(w.recent().count(), 60u) << second;
  }
  EXPECT_EQ(w.recent().mean(), kSecond);  // 100 s ago the last fast one
}

TEST(ResponseWindow, KeepsTheLastRequestsWhereNoneCome) {
  ResponseWindow w;
  Histogram all;
  all.add(kMillisecond, 5);
  for (Nanoseconds second = 100; second <= 400; ++second) w.take(all, kWindow, second * kSecond);
  EXPECT_EQ(w.recent().count(), 5u);
}

TEST(ResponseWindow, LooksAtWhatIsNew) {
  ResponseWindow w;
  Histogram all;
  all.add(kSecond, 9);
  w.take(all, kWindow, 100 * kSecond);
  EXPECT_EQ(w.look(), std::nullopt);  // was there before us
  all.add(2 * kMillisecond);
  all.add(4 * kMillisecond);
  w.take(all, kWindow, 101 * kSecond);
  EXPECT_EQ(w.look(), 3 * kMillisecond);
  EXPECT_EQ(w.look(), std::nullopt);
}

TEST(ResponseWindow, ADataPlaneThatStartedAnewBeginsIt) {
  for (const uint64_t n : {5u, 10u, 20u}) {  // fewer than before, as many, more
    ResponseWindow w;
    Histogram before, after;
    w.take(before, kWindow, 100 * kSecond);
    before.add(kSecond, 10);
    w.take(before, kWindow, 101 * kSecond);
    w.look();
    after.add(kMillisecond, n);
    w.take(after, kWindow, 102 * kSecond);
    EXPECT_EQ(w.recent(), after) << n;
    EXPECT_EQ(w.look(), kMillisecond) << n;
  }
}

}  // namespace
}  // namespace margay::control
