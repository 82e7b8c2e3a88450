// SPDX-License-Identifier: Apache-2.0
// What the control plane writes down: its epoch, and reports as lines.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "control/epoch_store.h"
#include "control/report_lines.h"
#include "tests/support/file_text.h"
#include "tests/support/log_lines.h"
#include "tests/support/temp_folder.h"

namespace margay::control {
namespace {

TEST(EpochStore, NeverGoesBackWhateverTheClockSays) {
  const test::TempFolder gone;
  const std::string& folder = gone.path();
  EXPECT_EQ(EpochStore(folder).next(1000), 1000u);
  EXPECT_EQ(EpochStore(folder).next(500), 1001u);
  EpochStore store(folder);
  EXPECT_EQ(store.next(-5), 1002u);
  EXPECT_EQ(store.next(2000), 2000u);
  EXPECT_EQ(store.next(2000), 2001u);
  const test::LogLines log;
  for (const char* text : {"what?", "5000x"}) {
    std::ofstream(folder + "/epoch") << text;
    EXPECT_EQ(EpochStore(folder).next(3000), 3000u);  // said, and the clock has to do
  }
  EXPECT_EQ(log.count("the last epoch is not known"), 2u);
  std::filesystem::remove_all(folder);
  EXPECT_EQ(EpochStore(folder + "/a/b").next(7), 7u);  // cannot be kept
}

// A crash in the middle of writing leaves the number before; what cannot be kept is told once.
TEST(EpochStore, TheOldNumberStandsUntilTheNewOneIsWhole) {
  const test::TempFolder folder;
  const std::string state = folder.path() + "/state";
  const test::LogLines log;
  EpochStore store(state);  // makes the folder
  EXPECT_EQ(store.next(7), 7u);
  EXPECT_EQ(margay::test::file_text(state + "/epoch"), "7\n");
  std::filesystem::create_directory(state + "/epoch.new");
  EXPECT_EQ(store.next(8), 8u);
  EXPECT_EQ(store.next(9), 9u);
  EXPECT_EQ(margay::test::file_text(state + "/epoch"), "7\n");
  EXPECT_EQ(log.count("the epoch cannot be kept"), 1u);
}

TEST(ReportLines, AFileGetsALineEach) {
  const std::string path = ::testing::TempDir() + "margay-reports-" + std::to_string(::getpid());
  ReportLines lines;
  ASSERT_TRUE(lines.open({ReportCopies::To::kFile, path}));
  lines.write("{1}");
  lines.write("{2}");
  EXPECT_EQ(margay::test::file_text(path), "{1}\n{2}\n");
  EXPECT_EQ(lines.written(), 2u);
  EXPECT_EQ(std::filesystem::status(path).permissions(), std::filesystem::perms(0600)) << "nobody else's to read";
  ReportLines again;  // of the next process, or after a reload
  ASSERT_TRUE(again.open({ReportCopies::To::kFile, path}));
  lines.take_place(std::move(again));
  lines.write("{3}");
  EXPECT_EQ(margay::test::file_text(path), "{1}\n{2}\n{3}\n");
  EXPECT_EQ(lines.written(), 3u);
  std::filesystem::remove(path);
  const auto nowhere = lines.open({ReportCopies::To::kFile, "/no/where"});
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().message, "control.reports: /no/where: No such file or directory");
}

TEST(ReportLines, AFullDiskIsCountedAndNothingElse) {
  const test::LogLines log;
  ReportLines lines;
  ASSERT_TRUE(lines.open({ReportCopies::To::kFile, "/dev/full"}));
  for (int n = 0; n < 3; ++n) lines.write("{}");
  EXPECT_EQ(lines.written(), 0u);
  EXPECT_EQ(lines.lost(), 3u);
  EXPECT_EQ(log.count("a report could not be written"), 1u);
  ReportLines elsewhere;
  ASSERT_TRUE(elsewhere.open({ReportCopies::To::kFile, "/dev/null"}));
  lines.take_place(std::move(elsewhere));
  lines.write("{}");
  EXPECT_EQ(lines.lost(), 3u);
  EXPECT_EQ(lines.written(), 1u);
}

std::string drain(int fd, ReportLines* writer) {
  std::string text;
  std::vector<char> buffer(1 << 16);
  for (ssize_t size; (size = ::read(fd, buffer.data(), buffer.size())) > 0;) {
    text.append(buffer.data(), static_cast<size_t>(size));
    if (writer != nullptr) writer->flush();
  }
  return text;
}

// Its reader goes in the middle of a line: what was whole counts as written, and the next line begins on its own.
TEST(ReportLines, ATornLineSpoilsNoOther) {
  ::signal(SIGPIPE, SIG_IGN);
  const test::TempFolder folder;
  const std::string path = folder.path() + "/pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  Fd reader(::open(path.c_str(), O_RDONLY | O_NONBLOCK));
  const test::LogLines log;
  ReportLines lines;
  ASSERT_TRUE(lines.open({ReportCopies::To::kFile, path}));
  for (int n = 0; n < 200; ++n) lines.write(std::string(1000, 'x'));
  EXPECT_EQ(lines.written(), 200u);
  reader.reset();
  lines.write("{nobody}");
  reader = Fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK));
  const std::string first = drain(reader.get(), nullptr);
  ASSERT_FALSE(first.empty());
  ASSERT_EQ(first.back(), 'x') << "the pipe ends in the middle of a line";
  EXPECT_EQ(lines.written(), static_cast<uint64_t>(std::count(first.begin(), first.end(), '\n')));
  EXPECT_EQ(lines.lost(), 201 - lines.written());
  lines.write("{last}");
  EXPECT_EQ(drain(reader.get(), nullptr), "\n{last}\n");
  EXPECT_EQ(log.count("reports are written again"), 1u);
  // Lines that wait are lost where another place takes over.
  const uint64_t written = lines.written(), lost = lines.lost();
  for (int n = 0; n < 200; ++n) lines.write(std::string(1000, 'x'));
  ReportLines elsewhere;
  ASSERT_TRUE(elsewhere.open({ReportCopies::To::kFile, "/dev/null"}));
  lines.take_place(std::move(elsewhere));
  const std::string second = drain(reader.get(), nullptr);
  EXPECT_EQ(lines.written() - written, static_cast<uint64_t>(std::count(second.begin(), second.end(), '\n')));
  EXPECT_EQ(lines.lost() - lost, 200 - (lines.written() - written));
}

TEST(ReportLines, AReaderThatTakesNothingHoldsUpNobody) {
  ::signal(SIGPIPE, SIG_IGN);  // as the program does
  const std::string path = ::testing::TempDir() + "margay-pipe-" + std::to_string(::getpid());
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  Fd reader(::open(path.c_str(), O_RDONLY | O_NONBLOCK));
  ReportLines lines;
  ASSERT_TRUE(lines.open({ReportCopies::To::kFile, path}));
  const std::string line(1000, 'x');
  for (int n = 0; n < 3000; ++n) lines.write(line);
  EXPECT_GT(lines.lost(), 0u);
  EXPECT_EQ(lines.lost() + lines.written(), 3000u);
  size_t got = 0;
  std::vector<char> buffer(1 << 16);
  for (ssize_t size; (size = ::read(reader.get(), buffer.data(), buffer.size())) > 0; lines.flush()) {
    got += static_cast<size_t>(size);
  }
  EXPECT_EQ(got, lines.written() * 1001);  // whole lines, however late
  reader.reset();
  lines.write(line);  // nobody reads any more
  EXPECT_GT(lines.lost(), 0u);
  std::filesystem::remove(path);
}

TEST(ReportLines, BehindATornLineTheNextBeginsOnItsOwn) {
  const std::string path = ::testing::TempDir() + "margay-torn-" + std::to_string(::getpid());
  std::ofstream(path) << "{1}\n{2";
  ReportLines lines;
  ASSERT_TRUE(lines.open({ReportCopies::To::kFile, path}));
  lines.write("{3}");
  EXPECT_EQ(margay::test::file_text(path), "{1}\n{2\n{3}\n");
  ReportLines again;
  ASSERT_TRUE(again.open({ReportCopies::To::kFile, path}));
  again.write("{4}");
  EXPECT_EQ(margay::test::file_text(path), "{1}\n{2\n{3}\n{4}\n");
  EXPECT_EQ(again.written(), 1u);
  std::filesystem::remove(path);
}

TEST(EpochStore, WhatIsNoFileOrLeavesNoEpochAboveItIsNotBelieved) {
  const std::string folder = ::testing::TempDir() + "margay-epoch-odd-" + std::to_string(::getpid());
  std::filesystem::create_directory(folder);
  std::ofstream(folder + "/epoch") << "18446744073709551615\n";
  EXPECT_EQ(EpochStore(folder).next(1000), 1000u);
  EXPECT_EQ(EpochStore(folder).next(1000), 1001u);
  std::filesystem::remove(folder + "/epoch");
  ASSERT_EQ(::mkfifo((folder + "/epoch").c_str(), 0600), 0);
  ::alarm(10);  // a pipe without a writer is not waited for
  EXPECT_EQ(EpochStore(folder).next(3000), 3000u);
  ::alarm(0);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace margay::control
