// SPDX-License-Identifier: Apache-2.0
// The file of bindings: what may stand at its path, who may have it, and that a crash at any moment leaves an image.
#include "dataplane/bindings_file.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "tests/support/file_text.h"
#include "tests/support/small_site.h"
#include "tests/support/temp_folder.h"

namespace margay::test {
namespace {

namespace fs = std::filesystem;
using dp::BindingsFile;

class BindingsFileTest : public testing::Test {
 protected:
  std::string path() const { return folder_.path() + "/image"; }
  Result<std::unique_ptr<BindingsFile>> open(uint32_t workers = 2) const {
    return BindingsFile::open(path(), {workers, 64, dp::table_bytes_for(1, 2)}, fresh());
  }
  static dp::HashSecret fresh() {
    dp::HashSecret secret;
    secret.words.fill(++drawn);
    return secret;
  }
  // A process that starts and finishes its image, and ends.
  void leave_image() {
    auto file = open();
    ASSERT_TRUE(file) << file.error().message;
    ASSERT_TRUE((*file)->finish(*site_.table, 5, {}));
  }
  std::string error() const {
    auto file = open();
    return file ? "" : file.error().message;
  }
  std::string refused() const {
    auto file = open();
    return file ? (*file)->refused() : "error: " + file.error().message;
  }

  static inline uint64_t drawn = 0;
  TempFolder folder_;
  SmallSite site_{small_site(2, 10)};
};

TEST_F(BindingsFileTest, FirstStartAndSecond) {
  leave_image();
  const uint64_t first = drawn;
  auto file = open(3);
  ASSERT_TRUE(file);
  EXPECT_EQ((*file)->refused(), "");
  ASSERT_NE((*file)->found(), nullptr);
  EXPECT_EQ((*file)->found()->clock, 5u);
  EXPECT_EQ((*file)->found()->entries.size(), 2u * 64);
  EXPECT_EQ((*file)->secret().words[0], first);  // owners stay who they are
  EXPECT_EQ((*file)->started().process, static_cast<uint32_t>(::getpid()));
  EXPECT_EQ((*file)->started().generation, 1u);
  ASSERT_TRUE((*file)->finish(*site_.table, 6, {.bindings = 3, .sessions = 2, .left_out = {}}));
  EXPECT_EQ((*file)->started().adopted.bindings, 3u);
  EXPECT_EQ((*file)->found(), nullptr);  // the file of that name is ours now
}

TEST_F(BindingsFileTest, EntriesAreInTheFile) {
  {
    auto file = open();
    ASSERT_TRUE(file);
    ASSERT_TRUE((*file)->finish(*site_.table, 0, {}));
    (*file)->entries(1)[3].client_port = 4242;
  }
  auto file = open();
  ASSERT_TRUE(file);
  EXPECT_EQ((*file)->found()->entries[64 + 3].client_port, 4242);
}

// Until finish() the old image stands; what was begun is removed, by its maker or the next one.
TEST_F(BindingsFileTest, StartThatDoesNotFinish) {
  leave_image();
  {
    auto file = open();
    ASSERT_TRUE(file);
    EXPECT_TRUE(fs::exists(path() + ".new"));
  }
  EXPECT_FALSE(fs::exists(path() + ".new"));
  std::ofstream(path() + ".new") << "left over";
  EXPECT_EQ(refused(), "");
  leave_image();
  EXPECT_FALSE(fs::exists(path() + ".new"));
}

TEST_F(BindingsFileTest, SavesTablesAsTheyAreMade) {
  auto file = open();
  ASSERT_TRUE(file);
  ASSERT_TRUE((*file)->finish(*site_.table, 0, {}));
  const auto saved = [&] {
    const std::string boot = [] {
      std::string id;
      std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
      return id;
    }();
    const std::string text = test::file_text(path());
    const auto image = dp::open_image(std::as_bytes(std::span(text)), boot);
    EXPECT_TRUE(image);
    return image ? image->table.snapshot.generation : 0;
  };
  auto health = site_.table->clone();  // nothing moves: with the next refresh
  health->version = 2;
  health->generation = 7;
  (*file)->about_to_publish(*health);
  EXPECT_EQ(saved(), 1u);
  ASSERT_TRUE((*file)->refresh(*health, 0));
  EXPECT_EQ(saved(), 7u);
  auto moved = health->clone();  // at once
  moved->version = 3;
  moved->generation = 8;
  dp::SiteLayout layout = health->layout();
  ++layout.version;
  moved->set_layout(layout);
  (*file)->about_to_publish(*moved);
  EXPECT_EQ(saved(), 8u);
  ASSERT_TRUE((*file)->refresh(*health, 0));  // who is late does not put the old one back
  EXPECT_EQ(saved(), 8u);
}

TEST_F(BindingsFileTest, ATableThatFindsNoRoomIsToldOnce) {
  auto file = BindingsFile::open(path(), {2, 64, 4096}, fresh());
  ASSERT_TRUE(file);
  ASSERT_TRUE((*file)->finish(*site_.table, 0, {}));
  const SmallSite large(small_site(200, 10));
  auto table = large.table->clone();
  table->version = 9;
  table->generation = 9;
  const auto told = (*file)->refresh(*table, 0);
  ASSERT_FALSE(told);
  EXPECT_NE(told.error().message.find("bytes, expected at most "), std::string::npos) << told.error().message;
  EXPECT_TRUE((*file)->refresh(*table, 0));
}

TEST_F(BindingsFileTest, AMemoryFileSystemIsSeen) {
  const std::string name = "/dev/shm/margay-" + std::to_string(::getpid());
  const auto file = BindingsFile::open(name, {2, 64, dp::table_bytes_for(1, 2)}, fresh());
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_TRUE((*file)->in_memory());
  EXPECT_TRUE(fs::remove(name + ".lock"));
}

TEST_F(BindingsFileTest, ImagesThatAreRefused) {
  std::ofstream(path()).close();
  EXPECT_EQ(refused(), "is empty");
  std::ofstream(path()) << "bindings";
  fs::permissions(path(), fs::perms(0600));
  EXPECT_EQ(refused(), "has 8 bytes, expected at least 4096");
  leave_image();
  fs::permissions(path(), fs::perms(0620));
  EXPECT_EQ(refused(), "may be written by others, expected mode 600");
  leave_image();
  EXPECT_EQ(refused(), "");
  fs::resize_file(path(), 4096);
  EXPECT_EQ(refused().rfind("has 4096 bytes, expected ", 0), 0u) << refused();
  leave_image();  // whatever was there is replaced
  EXPECT_EQ(refused(), "");
}

TEST_F(BindingsFileTest, SomebodyElsesImage) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to give a file away";
  leave_image();
  ASSERT_EQ(::chown(path().c_str(), 65534, 65534), 0);
  EXPECT_EQ(refused(), "belongs to user 65534, expected 0");
}

TEST_F(BindingsFileTest, WhatCanHoldNoImage) {
  const std::string where = "dataplane.bindings: " + path() + ": ";
  fs::create_directory(path());
  EXPECT_EQ(error(), where + "is a directory, expected a file");
  fs::remove(path());
  ASSERT_EQ(::mkfifo(path().c_str(), 0600), 0);
  EXPECT_EQ(error(), where + "is no file");
  fs::remove(path());
  fs::create_symlink("/dev/null", path());
  EXPECT_EQ(error(), where + "is a symbolic link, expected a file");
  fs::remove(path());
  fs::remove_all(folder_.path());
  EXPECT_EQ(error(), where + "cannot open " + path() + ".lock: No such file or directory");
}

TEST_F(BindingsFileTest, NoPermission) {
  const uid_t self = ::geteuid();
  fs::permissions(folder_.path(), fs::perms(0500));
  if (self == 0) {
    ASSERT_EQ(::seteuid(65534), 0);
  }
  const std::string said = error();
  ASSERT_EQ(::seteuid(self), 0);
  fs::permissions(folder_.path(), fs::perms(0700));
  EXPECT_NE(said.find("Permission denied"), std::string::npos) << said;
}

// The second one is told who has it. Locks are a process's, so another one must try.
TEST_F(BindingsFileTest, OneProcessAtATime) {
  auto file = open();
  ASSERT_TRUE(file);
  const std::string expected = "dataplane.bindings: " + path() + ": process " + std::to_string(::getpid()) +
                               " has it, expected one data plane a file";
  const pid_t child = ::fork();
  if (child == 0) ::_exit(error() == expected ? 0 : 1);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(fs::exists(path() + ".new"));
}

// Killed with its memory mapped: the lock goes with it, and what it stored is there.
TEST_F(BindingsFileTest, KilledProcess) {
  const pid_t child = ::fork();
  if (child == 0) {
    auto file = open();
    if (!file || !(*file)->finish(*site_.table, 0, {})) ::_exit(1);
    (*file)->entries(0)[0].client_port = 1;
    ::raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  auto file = open();
  ASSERT_TRUE(file) << file.error().message;
  ASSERT_NE((*file)->found(), nullptr) << (*file)->refused();
  EXPECT_EQ((*file)->started().process, static_cast<uint32_t>(child));
  EXPECT_EQ((*file)->found()->entries[0].client_port, 1);
}

}  // namespace
}  // namespace margay::test
