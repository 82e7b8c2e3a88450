// SPDX-License-Identifier: Apache-2.0
// Files of the state directory: whole, or the one before; a damaged one is told by its name.
#include "control/durable_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/support/file_text.h"
#include "tests/support/temp_folder.h"

namespace margay::control {
namespace {

TEST(DurableFile, ComesBackAsItWas) {
  const test::TempFolder folder;
  const std::string path = folder.path() + "/state/x", bytes("a\0b\nc", 5);
  ASSERT_TRUE(write_checked(path, "c-sma-state", bytes));
  const auto read = read_checked(path, "c-sma-state");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(**read, bytes);
  EXPECT_FALSE(std::filesystem::exists(path + ".new"));
}

TEST(DurableFile, NoFileIsNoError) {
  const test::TempFolder folder;
  const auto read = read_checked(folder.path() + "/x", "c-sma-state");
  ASSERT_TRUE(read);
  EXPECT_FALSE(*read);
}

TEST(DurableFile, AnythingElseIsRefused) {
  const test::TempFolder folder;
  const std::string path = folder.path() + "/x";
  ASSERT_TRUE(write_checked(path, "c-sma-state", "content"));
  const std::string whole = margay::test::file_text(path);
  const auto error_with = [&](const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
    const auto read = read_checked(path, "c-sma-state");
    return read ? std::string() : read.error().message;
  };
  const std::string damaged = path + ": is damaged, or no c-sma-state of this version";
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string flipped = whole;
    flipped[i] = static_cast<char>(flipped[i] ^ 1);
    EXPECT_EQ(error_with(flipped), damaged) << i;
    EXPECT_EQ(error_with(whole.substr(0, i)), damaged) << i;
  }
  EXPECT_EQ(error_with(whole + "x"), damaged);
  ASSERT_TRUE(write_checked(path, "cps-state", "content"));
  EXPECT_EQ(error_with(margay::test::file_text(path)), damaged);
  EXPECT_EQ(error_with(whole), "");
}

TEST(DurableFile, WhatCannotBeWrittenLeavesTheOldOne) {
  const test::TempFolder folder;
  const std::string path = folder.path() + "/x";
  ASSERT_TRUE(replace_file(path, "old"));
  std::filesystem::create_directory(path + ".new");
  const auto written = replace_file(path, "new");
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().message, path + ".new: cannot be written: Is a directory");
  EXPECT_EQ(margay::test::file_text(path), "old");
}

}  // namespace
}  // namespace margay::control
