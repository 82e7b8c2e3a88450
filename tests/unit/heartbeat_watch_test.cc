// SPDX-License-Identifier: Apache-2.0
#include "common/shared_table/heartbeat_watch.h"

#include <gtest/gtest.h>

namespace margay::shared_table {
namespace {

constexpr Nanoseconds at(double seconds) { return static_cast<Nanoseconds>(seconds * kSecond); }

TEST(HeartbeatWatch, NamesAWorkerThatStandsStillForASecondOnceAndItsEndOnce) {
  std::vector<WorkerCounters> workers(2);
  HeartbeatWatch watch(workers, at(10));
  workers[0].polls.add();
  workers[1].polls.add();
  EXPECT_TRUE(watch.look(at(10.1)).empty());
  workers[0].polls.add();
  EXPECT_TRUE(watch.look(at(11.05)).empty());  // 0.95 s: not yet

  workers[0].polls.add();
  const auto stall = watch.look(at(11.1));
  ASSERT_EQ(stall.size(), 1u);
  EXPECT_EQ(stall[0].worker, 1u);
  EXPECT_TRUE(stall[0].stalled);
  EXPECT_EQ(stall[0].stood_still, at(11.1) - at(10.1));
  workers[0].polls.add();
  EXPECT_TRUE(watch.look(at(11.9)).empty());

  workers[1].polls.add();
  const auto end = watch.look(at(12));
  ASSERT_EQ(end.size(), 1u);
  EXPECT_EQ(end[0].worker, 1u);
  EXPECT_FALSE(end[0].stalled);
  workers[0].polls.add();
  EXPECT_TRUE(watch.look(at(12.9)).empty());
}

TEST(HeartbeatWatch, NamesAWorkerThatNeverBegins) {
  std::vector<WorkerCounters> workers(1);
  HeartbeatWatch watch(workers, at(5));
  EXPECT_TRUE(watch.look(at(5.9)).empty());
  EXPECT_EQ(watch.look(at(6)).size(), 1u);
}

}  // namespace
}  // namespace margay::shared_table
