// SPDX-License-Identifier: Apache-2.0
#include "control/northbound/core/backoff.h"

#include <gtest/gtest.h>

namespace margay::northbound {
namespace {

TEST(Backoff, DoublesUpToItsMax) {  // CSMA-170, D-50: each nominal time x 0.75 to 1.25
  Backoff backoff(kSecond, 60 * kSecond, 1);
  for (const uint64_t seconds : {1u, 2u, 4u, 8u, 16u, 32u, 60u, 60u, 60u}) {
    const Nanoseconds nominal = seconds * kSecond, time = backoff.next();
    EXPECT_GE(time, nominal * 3 / 4) << seconds;
    EXPECT_LE(time, nominal * 5 / 4) << seconds;
  }
  backoff.reset();
  EXPECT_LE(backoff.next(), kSecond * 5 / 4);
}

// Many that lost the same C-PS: the first tries fill the whole span.
TEST(Backoff, FirstTriesSpread) {
  size_t early = 0, late = 0;
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    const Nanoseconds time = Backoff(kSecond, 60 * kSecond, seed).next();
    early += time < 800 * kMillisecond ? 1 : 0;
    late += time > 1200 * kMillisecond ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(early), 100, 50);  // a tenth of the span each
  EXPECT_NEAR(static_cast<double>(late), 100, 50);
}

TEST(Backoff, SameSeedSameTimes) {
  Backoff a(kSecond, 60 * kSecond, 9), b(kSecond, 60 * kSecond, 9);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(a.next(), b.next());
}

}  // namespace
}  // namespace margay::northbound
