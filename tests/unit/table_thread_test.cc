// SPDX-License-Identifier: Apache-2.0
// A control plane over its socket to a running data plane: applied at once, acked once every worker has passed it.
#include "dataplane/table_thread.h"

#include <unistd.h>

#include <chrono>
#include <thread>

#include <gtest/gtest.h>

#include "common/shared_table/writer.h"
#include "tests/support/cli_plane.h"
#include "tests/support/temp_folder.h"

namespace margay::test {
namespace {

using namespace std::chrono_literals;
using shared_table::MemoryFile;
using shared_table::Snapshot;
using shared_table::Writer;

class TableThreadTest : public ::testing::Test {
 protected:
  TableThreadTest() {
    cli_.plane.now = [] {
      return static_cast<Nanoseconds>(std::chrono::steady_clock::now().time_since_epoch() /
                                      std::chrono::nanoseconds(1));
    };
    thread_ = std::move(*dp::TableThread::start(path(), cli_.plane, counters_));
  }
  ~TableThreadTest() override { thread_.reset(); }

  std::string path() const { return folder_.path() + "/dataplane.sock"; }
  std::unique_ptr<Writer> connect() {
    auto writer = Writer::connect(path(), 5s);
    EXPECT_TRUE(writer) << writer.error().message;
    return std::move(*writer);
  }
  Snapshot next() {
    Snapshot s = cli_.plane.complete();
    s.generation = ++generation_;
    return s;
  }
  // What came until `enough` says so; at most ten seconds of it.
  template <class Enough>
  Writer::News await(Writer& writer, Enough enough) {
    Writer::News all;
    for (int i = 0; i < 10'000 && !enough(all); ++i) {
      const Writer::News news = writer.news();
      if (news.acked) all.acked = news.acked;
      all.refused.insert(all.refused.end(), news.refused.begin(), news.refused.end());
      all.stalled.insert(all.stalled.end(), news.stalled.begin(), news.stalled.end());
      std::this_thread::sleep_for(1ms);
    }
    return all;
  }

  MemoryFile counters_ = std::move(*MemoryFile::create("counters", 4096, MemoryFile::Writers::kMaker));
  CliPlane cli_;
  TempFolder folder_;
  std::unique_ptr<dp::TableThread> thread_;
  uint64_t generation_ = 0;
};

TEST_F(TableThreadTest, EveryGenerationIsAppliedAndTheLastIsAcked) {
  const auto writer = connect();
  for (int n = 0; n < 200; ++n) {
    Snapshot s = next();
    s.scis[0].instances[0].health = n % 2 == 0 ? HealthState::kDegraded : HealthState::kHealthy;
    while (!writer->commit(s)) (void)writer->news();
  }
  const auto news = await(*writer, [](const Writer::News& all) { return all.acked == 200u; });
  EXPECT_EQ(news.acked, 200u);
  EXPECT_TRUE(news.refused.empty());
  EXPECT_EQ(cli_.plane.generation(), 200u);
  EXPECT_EQ(thread_->status().taken, 200u);
}

// liburcu counts this thread as a worker that does not come to a quiescent state.
TEST_F(TableThreadTest, NothingIsAckedBeforeEveryWorkerHasPassedIt) {
  const auto writer = connect();
  UrcuQsbr::register_reader();
  ASSERT_TRUE(writer->commit(next()));
  for (int i = 0; i < 1000 && cli_.plane.generation() == 0; ++i) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(cli_.plane.generation(), 1u) << "published without waiting";
  ASSERT_TRUE(writer->commit(next()));
  const auto before = await(*writer, [](const Writer::News& all) { return !all.stalled.empty(); });
  EXPECT_FALSE(before.acked);
  EXPECT_FALSE(before.stalled.empty()) << "no worker of this test polls: each is named";
  EXPECT_EQ(cli_.plane.generation(), 2u) << "the newer one is published meanwhile";
  UrcuQsbr::quiescent();
  UrcuQsbr::unregister_reader();
  EXPECT_EQ(await(*writer, [](const Writer::News& all) { return all.acked == 2u; }).acked, 2u);
}

TEST_F(TableThreadTest, ANewControlPlaneBeginsWithWhatRuns) {
  auto writer = connect();
  Snapshot s = next();
  s.scis[0].instances[1].health = HealthState::kUnhealthy;
  ASSERT_TRUE(writer->commit(s));
  await(*writer, [](const Writer::News& all) { return all.acked == 1u; });
  writer.reset();
  for (int i = 0; i < 1000 && thread_->status().control != 0; ++i) std::this_thread::sleep_for(1ms);
  writer = connect();
  ASSERT_TRUE(writer->running());
  EXPECT_EQ(*writer->running(), s);
}

}  // namespace
}  // namespace margay::test
