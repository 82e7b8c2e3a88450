// SPDX-License-Identifier: Apache-2.0

// A job is run once or withdrawn, never both, and is never touched after its poster has gone on.

#include "dataplane/mailbox.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

#include "tests/support/cli_plane.h"
#include "tests/support/seed.h"

namespace margay::test {
namespace {

using dp::kMillisecond;
using dp::kSecond;

class CountingJob : public dp::WorkerJob {
 public:
  explicit CountingJob(std::chrono::microseconds takes = {}) : takes_(takes) {}
  void run(dp::FastPath& fast_path, const dp::SiteTable& table) override {
    if (takes_.count() > 0) std::this_thread::sleep_for(takes_);
    flows = fast_path.flows();
    version = table.version;
    by = std::this_thread::get_id();
    ++runs;
  }
  int runs = 0;  // plain: the mailbox orders it
  size_t flows = 99;
  uint64_t version = 0;
  std::thread::id by;

 private:
  std::chrono::microseconds takes_;
};

class MailboxTest : public ::testing::Test {
 protected:
  void serve() { mailbox_.serve(*cli_.fast_paths[0], cli_.plane.table()); }

  CliPlane cli_;
  dp::Mailbox mailbox_;
};

TEST_F(MailboxTest, RunsTheJobInTheWorker) {
  std::atomic<bool> stop{false};
  std::thread worker([&] {
    while (!stop.load(std::memory_order_relaxed)) serve();
  });
  for (int n = 1; n <= 100; ++n) {
    CountingJob job;
    ASSERT_TRUE(mailbox_.run(job, 10 * kSecond));
    EXPECT_EQ(job.runs, 1);
    EXPECT_EQ(job.flows, 0U);
    EXPECT_EQ(job.version, 1U);
    EXPECT_EQ(job.by, worker.get_id());
  }
  stop = true;
  worker.join();
}

TEST_F(MailboxTest, WithdrawsAJobThatNobodyTakes) {
  CountingJob first;
  EXPECT_FALSE(mailbox_.run(first, 5 * kMillisecond));
  serve();
  EXPECT_EQ(first.runs, 0);
}

TEST_F(MailboxTest, WaitsForAJobThatWasTakenHoweverLong) {
  std::atomic<bool> stop{false};
  std::thread worker([&] {
    while (!stop.load(std::memory_order_relaxed)) serve();
  });
  bool outlasted = false;
  for (int tries = 0; tries < 100 && !outlasted; ++tries) {  // a loaded machine may not let the worker begin in time
    CountingJob job(std::chrono::milliseconds(100));
    outlasted = mailbox_.run(job, 20 * kMillisecond);
    EXPECT_EQ(job.runs, outlasted ? 1 : 0);
  }
  EXPECT_TRUE(outlasted);
  stop = true;
  worker.join();
}

// Patience as short as the worker's turn, so that taking and withdrawing meet: each job is freed as soon as run()
// returns, which ASan and TSan would see if the worker still had it.
TEST_F(MailboxTest, TakingAndWithdrawingExcludeEachOther) {
  const uint64_t seed = test_seed();
  SCOPED_TRACE(seed_text(seed));
  Random random(seed);
  std::atomic<bool> stop{false};
  std::thread worker([&] {
    Random pauses(seed + 1);
    while (!stop.load(std::memory_order_relaxed)) {
      serve();
      if (pauses.one_in(4)) std::this_thread::sleep_for(std::chrono::microseconds(pauses.below(60)));
    }
  });
  int taken = 0, withdrawn = 0;
  for (int n = 0; n < 20'000; ++n) {
    auto job = std::make_unique<CountingJob>();
    const bool run = mailbox_.run(*job, random.below(100'000));
    ASSERT_EQ(job->runs, run ? 1 : 0) << "job " << n;
    ++(run ? taken : withdrawn);
  }
  stop = true;
  worker.join();
  EXPECT_GT(taken, 0);
  EXPECT_GT(withdrawn, 0);
}

}  // namespace
}  // namespace margay::test
