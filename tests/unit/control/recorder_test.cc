// SPDX-License-Identifier: Apache-2.0
// A recording on disk, and its ends.
#include "control/record/recorder.h"
#include "tests/support/file_text.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdio>
#include <fstream>
#include <sstream>

namespace margay::control {
namespace {

constexpr Time kAt{1'500 * kMillisecond, 1'700'000'000'000};

class RecorderFile : public testing::Test {
 protected:
  void TearDown() override { std::remove(path.c_str()); }
  std::string path = testing::TempDir() + "margay_recorder_" + std::to_string(getpid());
};

TEST_F(RecorderFile, ALineARecord) {
  Recorder recorder;
  recorder.event("c", Tick{}, kAt);  // off: nothing
  ASSERT_TRUE(recorder.open(path));
  recorder.begin({.config = {.csci_id = "c", .cs_id = "s", .health = {.liveness = {}}}, .seed = 3, .epoch = 4}, kAt);
  recorder.event("c", DataPlaneLost{"frozen"}, kAt);
  recorder.action("c", ScrapeRequest{"si-1", 9, "http://x", 2 * kSecond}, kAt);
  const std::string text = margay::test::file_text(path);
  const std::string stamp = R"({"csci_id":"c","at":"1.500s","wall":"2023-11-14T22:13:20Z",)";
  EXPECT_EQ(text.find(stamp + R"("start":{"config":{"csci_id":"c","cs_id":"s",)"), 0u) << text;
  EXPECT_NE(text.find(R"("seed":"3","epoch":"4","ticks_recorded":true}})"
                      "\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("\n" + stamp +
                      R"("data_plane_lost":{"why":"frozen"}})"
                      "\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("\n" + stamp +
                      R"("scrape_request":{"si_id":"si-1","serial":"9","url":"http://x","deadline":"2s"}})"
                      "\n"),
            std::string::npos)
      << text;
  recorder.close();
  recorder.event("c", Tick{}, kAt);
  EXPECT_EQ(margay::test::file_text(path), text);
}

TEST_F(RecorderFile, GoesOnBehindWhatIsThere) {
  Recorder recorder;
  ASSERT_TRUE(recorder.open(path));
  recorder.event("c", Tick{}, kAt);
  const std::string first = margay::test::file_text(path);
  ASSERT_TRUE(recorder.open(path));
  recorder.event("c", Tick{}, kAt);
  EXPECT_EQ(margay::test::file_text(path), first + first);
}

TEST_F(RecorderFile, EndsAtItsSizeByWholeLines) {
  Recorder recorder(200);
  ASSERT_TRUE(recorder.open(path));
  for (int i = 0; i < 10; ++i) recorder.event("c", Tick{}, kAt);
  const std::string text = margay::test::file_text(path);
  EXPECT_LE(text.size(), 200u);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2) << text;  // of 71 bytes each
  EXPECT_EQ(text.back(), '\n');
  EXPECT_FALSE(recorder.on());
  EXPECT_NE(recorder.fault().find("may hold 200"), std::string::npos) << recorder.fault();
}

TEST_F(RecorderFile, AWriteErrorEndsItAndNothingElse) {
  Recorder recorder;
  EXPECT_FALSE(recorder.open("/dev/full"));  // no file
  EXPECT_FALSE(recorder.open(path + "/not/there"));
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_FALSE(recorder.open(path));
  EXPECT_FALSE(recorder.on());
}

}  // namespace
}  // namespace margay::control
