// SPDX-License-Identifier: Apache-2.0
// Recording the table of a running data plane: what is written, and what ends it.
#include "dataplane/table_recorder.h"

#include <ctime>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/cli_plane.h"
#include "tests/support/temp_folder.h"

namespace margay::dp {
namespace {

using shared_table::Snapshot;

class TableRecorderTest : public testing::Test {
 protected:
  std::vector<TableLine> lines() {
    std::vector<TableLine> lines;
    std::ifstream from(path_);
    for (std::string line; std::getline(from, line);) {
      auto read = parse_line(line);
      EXPECT_TRUE(read) << read.error().message;
      if (read) lines.push_back(std::move(*read));
    }
    return lines;
  }
  Snapshot running() {
    Snapshot s = cli_.plane.complete();
    s.generation = cli_.plane.generation() + 1;
    return s;
  }

  test::TempFolder folder_;
  const std::string path_ = folder_.path() + "/table.jsonl";
  test::CliPlane cli_;
};

TEST_F(TableRecorderTest, TheStateFirstThenEachChange) {
  cli_.run("set instance 192.0.2.10:80 si-2 max-sessions 40");
  EXPECT_EQ(cli_.run("record table " + path_), "each change of the table goes into " + path_ + "\n");
  Snapshot s = running();
  s.scis[0].instances[0].health = HealthState::kUnhealthy;
  s.scis[0].instances[0].limit = 0;
  s.scis[0].instances[0].health_since = 1'000'000;
  ASSERT_TRUE(cli_.plane.apply(s));
  ASSERT_FALSE(cli_.plane.apply(s)) << "refused: no change";
  cli_.run("set instance 192.0.2.10:80 si-1 drain 30s");
  cli_.run("clear instance 192.0.2.10:80 si-2");
  cli_.run("stop");
  cli_.run("stop");  // stands already
  cli_.run("start");
  EXPECT_TRUE(cli_.plane.write_recording());
  EXPECT_EQ(nlohmann::json::parse(cli_.run("show table", true))["recorded_lines"], 6);
  const nlohmann::json told = nlohmann::json::parse(cli_.run("record table off", true));
  EXPECT_EQ(told["recorded"], path_);
  EXPECT_EQ(told["lines"], 6);

  const auto recorded = lines();
  ASSERT_EQ(recorded.size(), 6u);
  const auto& state = std::get<RecordedState>(recorded[0].what);
  EXPECT_EQ(state.site, "edge-1");
  ASSERT_EQ(state.ports.size(), 2u);
  EXPECT_EQ(state.ports[1].name, "odd port");
  EXPECT_EQ(state.ports[1].mac->format(), "02:00:00:00:0f:01");
  EXPECT_EQ(state.ports[1].addresses, cli_.plane.config.ports[1].addresses);
  EXPECT_TRUE(state.forwarding && !state.waiting);
  EXPECT_EQ(state.table.scis.size(), 2u);
  const RecordedSetting forty{"192.0.2.10:80", "si-2", {}, {}, 40, {}};
  EXPECT_EQ(state.set, std::vector{forty});

  EXPECT_NEAR(static_cast<double>(recorded[0].time), static_cast<double>(std::time(nullptr)) * 1e9, 60e9);
  const auto ahead = static_cast<int64_t>(recorded[0].time - state.monotonic);
  shift_times(s, ahead);
  EXPECT_EQ(std::get<Snapshot>(recorded[1].what), s) << "as it was applied, times since 1970";
  const auto& drained = std::get<RecordedSetting>(recorded[2].what);
  EXPECT_EQ(drained.admin, Admin::kDraining);
  EXPECT_NEAR(static_cast<double>(*drained.drain_deadline - recorded[2].time), 30e9, 0.1e9);
  EXPECT_EQ(std::get<RecordedSetting>(recorded[3].what), (RecordedSetting{"192.0.2.10:80", "si-2", {}, {}, {}, {}}));
  EXPECT_FALSE(std::get<RecordedForwarding>(recorded[4].what).on);
  EXPECT_TRUE(std::get<RecordedForwarding>(recorded[5].what).on);
  for (size_t n = 1; n < recorded.size(); ++n) EXPECT_GE(recorded[n].time, recorded[n - 1].time);
  EXPECT_EQ(nlohmann::json::parse(cli_.run("show table", true))["recording"], nullptr);
}

TEST_F(TableRecorderTest, BeforeTheFirstSnapshotTheTableIsEmpty) {
  test::CliPlane waiting(true);
  waiting.run("record table " + path_);
  waiting.run("record table off");
  const auto recorded = lines();
  ASSERT_EQ(recorded.size(), 1u);
  const auto& state = std::get<RecordedState>(recorded[0].what);
  EXPECT_TRUE(state.waiting);
  EXPECT_TRUE(state.table.scis.empty());
}

TEST_F(TableRecorderTest, OnlyIntoANewFile) {
  EXPECT_EQ(cli_.run("record table t.jsonl"), "14: \"t.jsonl\": expected an absolute path");
  EXPECT_EQ(cli_.run("record table /nowhere/t"), "14: /nowhere/t: No such file or directory");
  EXPECT_EQ(cli_.run("record table /dev/null"), "14: /dev/null: expected a file, or a name for a new one");
  std::ofstream(path_) << "mine\n";
  EXPECT_EQ(cli_.run("record table " + path_), "14: " + path_ + ": holds 5 bytes, expected a name for a new file");
  EXPECT_EQ(cli_.run("record table off"),
            "1: nothing is recorded, expected a recording that `record table FILE` began");
  cli_.run("record table " + path_ + ".1");
  EXPECT_EQ(cli_.run("record table " + path_ + ".2"),
            "14: " + path_ + ".2: expected no other recording, but one runs, into " + path_ + ".1");
}

// The line does not fit: nothing of it is left in the file, and this is told once.
TEST_F(TableRecorderTest, AFullDiskEndsTheRecordingAndNothingElse) {
  auto recorder = TableRecorder::open(path_, 40);
  ASSERT_TRUE(recorder);
  (*recorder)->note(RecordedForwarding{true});  // a line of 48 bytes
  EXPECT_TRUE((*recorder)->write());
  EXPECT_EQ((*recorder)->status().fault, path_ + " holds 0 bytes, and may hold 40");
  (*recorder)->note(RecordedForwarding{true});
  EXPECT_FALSE((*recorder)->write()) << "told once";
  EXPECT_EQ((*recorder)->status().lines, 0u);
  EXPECT_TRUE(lines().empty());
}

TEST_F(TableRecorderTest, TheQueueIsBounded) {
  auto recorder = TableRecorder::open(path_);
  ASSERT_TRUE(recorder);
  for (size_t n = 0; n <= TableRecorder::kWaitingMax; ++n) (*recorder)->note(RecordedForwarding{n % 2 == 0});
  EXPECT_TRUE((*recorder)->write());
  EXPECT_EQ((*recorder)->status().lines, TableRecorder::kWaitingMax);
  EXPECT_EQ((*recorder)->status().fault, path_ + ": takes less than what changes, and 262144 instances waited");
}

TEST_F(TableRecorderTest, ARefusedFileLeavesNothingBehind) {
  cli_.run("record table /dev/full");
  EXPECT_EQ(nlohmann::json::parse(cli_.run("show table", true))["recording"], nullptr) << "no regular file";
  cli_.run("record table " + path_);
  EXPECT_TRUE(cli_.plane.write_recording());
  EXPECT_EQ(cli_.run("record table off"), path_ + " is whole: `margay-dataplane replay --table` takes it\nlines: 1\n");
}

}  // namespace
}  // namespace margay::dp
