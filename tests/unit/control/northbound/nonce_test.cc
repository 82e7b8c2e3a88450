// SPDX-License-Identifier: Apache-2.0
#include "control/northbound/core/nonce.h"

#include <set>

#include <gtest/gtest.h>

#include "tests/support/seed.h"

namespace margay::northbound {
namespace {

using Verdict = NonceWindow::Verdict;

TEST(NonceSource, GivesNothingThatIsNotWrittenDown) {
  NonceSource source(0);
  EXPECT_FALSE(source.take());
  ASSERT_EQ(source.wants(), NonceSource::kBlock);
  source.written_down(NonceSource::kBlock);
  EXPECT_EQ(source.take(), 1u);
  EXPECT_EQ(source.take(), 2u);
  EXPECT_FALSE(source.wants());
}

TEST(NonceSource, ARestartNeverUsesOneAgain) {  // CSMA-144
  NonceSource source(0);
  source.written_down(NonceSource::kBlock);
  const uint64_t last = source.take().value();
  NonceSource next(NonceSource::kBlock);
  EXPECT_FALSE(next.take());
  ASSERT_EQ(next.wants(), 2 * NonceSource::kBlock);
  next.written_down(2 * NonceSource::kBlock);
  EXPECT_GT(next.take().value(), last);
  EXPECT_EQ(next.take(), NonceSource::kBlock + 2);
}

TEST(NonceSource, AsksForABlockBeforeItsOwnIsSpent) {
  NonceSource source(0);
  source.written_down(NonceSource::kBlock);
  uint64_t taken = 0;
  while (!source.wants()) taken = source.take().value();
  EXPECT_LE(taken, NonceSource::kBlock / 2 + 1);
  EXPECT_EQ(source.wants(), 2 * NonceSource::kBlock);
}

TEST(NonceWindow, EdgesOfWhatIsRemembered) {  // CSMA-146
  NonceWindow window;
  window.use(5000);
  EXPECT_EQ(window.judge(5000), Verdict::kRepeated);
  EXPECT_EQ(window.judge(4999), Verdict::kNew);
  EXPECT_EQ(window.judge(5000 - 1023), Verdict::kNew);
  EXPECT_EQ(window.judge(5000 - 1024), Verdict::kTooOld);
  EXPECT_EQ(window.judge(5001), Verdict::kNew);
  window.use(4000);
  EXPECT_EQ(window.judge(4000), Verdict::kRepeated);
  window.use(5000 + 1024);
  EXPECT_EQ(window.judge(5000), Verdict::kTooOld);
  EXPECT_EQ(window.judge(5001), Verdict::kNew);
}

TEST(NonceWindow, ZeroIsNoNonce) {
  NonceWindow window;
  EXPECT_EQ(window.judge(0), Verdict::kNew);  // of a window without any; its bit is the first
  window.use(1);
  EXPECT_EQ(window.judge(1), Verdict::kRepeated);
}

TEST(NonceWindow, RememberedByOneNumber) {
  const NonceWindow window = NonceWindow::used_up_to(9000);
  EXPECT_EQ(window.judge(9000), Verdict::kRepeated);
  EXPECT_EQ(window.judge(8500), Verdict::kRepeated);
  EXPECT_EQ(window.judge(9001), Verdict::kNew);
}

// Against a set of all that were used.
TEST(NonceWindow, SaysWhatASetSays) {
  const uint64_t seed = margay::test::test_seed();
  SCOPED_TRACE(margay::test::seed_text(seed));
  margay::test::Random random(seed);
  NonceWindow window;
  std::set<uint64_t> used;
  uint64_t highest = 0;
  for (int i = 0; i < 100'000; ++i) {
    const uint64_t jump = random.one_in(50) ? random.below(3000) : random.below(8);
    const uint64_t nonce =
        random.one_in(3) ? highest + jump : highest - std::min<uint64_t>(highest, random.below(1200));
    Verdict expected = Verdict::kNew;
    if (used.contains(nonce)) expected = Verdict::kRepeated;
    if (nonce + 1024 <= highest) expected = Verdict::kTooOld;
    ASSERT_EQ(window.judge(nonce), expected) << nonce << " of " << highest;
    if (expected != Verdict::kNew) continue;
    window.use(nonce);
    used.insert(nonce);
    highest = std::max(highest, nonce);
  }
}

}  // namespace
}  // namespace margay::northbound
