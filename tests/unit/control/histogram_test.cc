// SPDX-License-Identifier: Apache-2.0
#include "common/histogram.h"

#include <gtest/gtest.h>

#include "common/share.h"
#include "common/token_bucket.h"

namespace margay {
namespace {

TEST(Histogram, BucketsJoinWithoutGapAndAreAnEighthWideAtMost) {
  EXPECT_EQ(Histogram::floor_of(0), 0u);
  for (size_t b = 0; b < Histogram::kBuckets; ++b) {
    const Nanoseconds from = Histogram::floor_of(b), to = Histogram::floor_of(b + 1);
    ASSERT_LT(from, to);
    ASSERT_EQ(Histogram::bucket_of(from), b);
    ASSERT_EQ(Histogram::bucket_of(to - 1), b);
    ASSERT_TRUE(b < Histogram::kSteps || (to - from) * 8 <= from);
  }
}

TEST(Histogram, TakesAnythingAboveItsRangeInTheLastBucket) {
  EXPECT_EQ(Histogram::bucket_of(Nanoseconds{1} << Histogram::kTopBits), Histogram::kBuckets - 1);
  EXPECT_EQ(Histogram::bucket_of(kNever), Histogram::kBuckets - 1);
}

TEST(Histogram, MeanIsExact) {
  Histogram h;
  h.add(1 * kMillisecond, 3);
  h.add(5 * kMillisecond);
  EXPECT_EQ(h.count(), 4u);
  EXPECT_EQ(h.mean(), 2 * kMillisecond);
}

TEST(Histogram, Subtracts) {
  Histogram first, second;
  first.add(3 * kMillisecond);
  second.add(7 * kSecond, 2);
  Histogram both = first;
  both.add(7 * kSecond, 2);
  EXPECT_EQ(both.since(first), second);
  EXPECT_EQ(both.since(second), first);
}

TEST(Histogram, CountsThatWentBackWereBegunAnew) {
  Histogram old, fresh;
  old.add(kMillisecond, 10);
  fresh.add(kSecond, 20);
  EXPECT_EQ(fresh.since(old), fresh);
}

TEST(Share, IsExactWhereFloatingPointIsNot) {
  EXPECT_EQ(Share(0.29).floor_of(100), 29u);  // 0.29 * 100 is 28.999999999999996
  EXPECT_EQ(Share(0.8).floor_of(1000), 800u);
  EXPECT_EQ(Share(0.5).floor_of(5), 2u);
  EXPECT_EQ(Share(1).floor_of(0xffffffff), 0xffffffffu);
  EXPECT_FALSE(Share(0.1).exceeded_by(10, 100));
  EXPECT_TRUE(Share(0.1).exceeded_by(11, 100));
}

TEST(TokenBucket, GivesABurstAndThenOneTokenASpacing) {
  TokenBucket bucket({.spacing = kSecond, .burst = 5});
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(bucket.take(100 * kSecond));
  EXPECT_FALSE(bucket.take(100 * kSecond));
  EXPECT_EQ(bucket.next(), 101 * kSecond);
  EXPECT_FALSE(bucket.take(101 * kSecond - 1));
  EXPECT_TRUE(bucket.take(101 * kSecond));
  EXPECT_FALSE(bucket.take(101 * kSecond));
}

TEST(TokenBucket, FillsToTheBurstAndNoFurther) {
  TokenBucket bucket({.spacing = kSecond, .burst = 2});
  for (int round = 0; round < 3; ++round) {
    const Nanoseconds now = static_cast<Nanoseconds>(round + 1) * 1000 * kSecond;
    EXPECT_TRUE(bucket.take(now));
    EXPECT_TRUE(bucket.take(now));
    EXPECT_FALSE(bucket.take(now));
  }
}

TEST(TokenBucket, ANewRateForgivesNothingAboveItsBurst) {
  TokenBucket bucket({.spacing = 100 * kSecond, .burst = 3});
  for (int i = 0; i < 3; ++i) bucket.take(1000 * kSecond);
  bucket.change({.spacing = kSecond, .burst = 2}, 1000 * kSecond);
  EXPECT_FALSE(bucket.has(1000 * kSecond));
  EXPECT_EQ(bucket.next(), 1001 * kSecond);
}

}  // namespace
}  // namespace margay
