// SPDX-License-Identifier: Apache-2.0
// The audit log (CSMA-17, CSMA-169, CSMA-193): its chain, what breaks it, and the writer that nobody waits for.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "common/audit/chain.h"
#include "control/audit_log.h"
#include "tests/support/temp_folder.h"

namespace margay::control {
namespace {

std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

std::string verdict(const std::string& text) {
  std::istringstream log(text);
  const auto chain = verify_audit(log, "a");
  return chain ? std::to_string(chain->lines()) : chain.error().message;
}

std::vector<std::string> three() {
  AuditChain chain;
  std::vector<std::string> lines;
  for (const char* what : {"one", "two", "three"}) lines.push_back(chain.add({"REFUSED", "sci-1", what, "why", 1500}));
  return lines;
}

// SHA-256 of the first line, by sha256sum(1).
TEST(AuditChain, FirstLinesAsWritten) {
  const auto lines = three();
  EXPECT_EQ(lines[0], R"({"n":1,"time":"1970-01-01T00:00:01.500Z","kind":"REFUSED","who":"sci-1","what":"one",)"
                      R"("detail":"why","previous":")" +
                          std::string(64, '0') + "\"}");
  const auto second = nlohmann::json::parse(lines[1]);
  EXPECT_EQ(second["n"], 2);
  EXPECT_EQ(second["previous"], "75b4f251a13c5ff2a91472799ae6507c44d462f907325ae517d9abd68305980a");
}

TEST(AuditChain, WhateverIsChangedShows) {
  const auto lines = three();
  EXPECT_EQ(verdict(joined(lines)), "3");
  EXPECT_EQ(verdict(""), "0");
  auto changed = lines;
  changed[0].replace(changed[0].find("one"), 3, "ONE");
  EXPECT_TRUE(verdict(joined(changed)).starts_with("a:2: previous: expected the SHA-256 of the line before it"));
  EXPECT_EQ(verdict(joined({lines[0], lines[2]})), "a:2: n: 3, expected 2");
  EXPECT_EQ(verdict(joined({lines[1], lines[0]})), "a:1: n: 2, expected 1");
  EXPECT_EQ(verdict(joined({lines[0], "x"})), "a:2: expected one JSON object");
  EXPECT_EQ(verdict(joined(lines) + "{"), "a:4: is cut off, expected a line with its end");
  EXPECT_EQ(verdict(joined({lines[0], R"({"n":-1})"})), "a:2: n: expected the line's number");
}

TEST(AuditChain, TextOfPeersStaysInItsLine) {
  AuditChain chain;
  const std::string line = chain.add({"REFUSED", "a\nb\xff\"", "\x1b[2J", "", 0});
  EXPECT_EQ(line.find('\n'), std::string::npos);
  EXPECT_EQ(line.find('\x1b'), std::string::npos);
  EXPECT_EQ(verdict(line + "\n"), "1");
}

TEST(AuditLog, GoesOnWhereItEnded) {
  const test::TempFolder folder;
  for (const char* what : {"one", "two"}) {
    auto log = AuditLog::open(folder.path());
    ASSERT_TRUE(log) << log.error().message;
    (*log)->add({"REFUSED", "sci-1", what, "why", 0});
  }
  const std::string path = folder.path() + "/audit.jsonl";
  std::ifstream file(path);
  const auto chain = verify_audit(file, path);
  ASSERT_TRUE(chain) << chain.error().message;
  EXPECT_EQ(chain->lines(), 2u);
  EXPECT_EQ(std::filesystem::status(path).permissions() & std::filesystem::perms::mask, std::filesystem::perms(0600));
}

TEST(AuditLog, TheSameIsOneLineWithItsCount) {
  const test::TempFolder folder;
  {
    auto log = AuditLog::open(folder.path());
    for (int i = 0; i < 1000; ++i) (*log)->add({"REFUSED", "sci-1", "s", i == 500 ? "other" : "why", 0});
  }
  uint64_t times = 0;
  const auto lines = lines_of(folder.path() + "/audit.jsonl");
  for (const std::string& line : lines) times += nlohmann::json::parse(line).value("times", uint64_t{1});
  EXPECT_EQ(times, 1000u);
  EXPECT_LE(lines.size(), 4u);  // two, or four where a second ended between them
}

TEST(AuditLog, WhatFindsNoRoomIsCounted) {
  const test::TempFolder folder;
  constexpr size_t kMore = 50;
  {
    auto log = AuditLog::open(folder.path());
    for (size_t i = 0; i < AuditLog::kWaitingMax + kMore; ++i) {
      (*log)->add({"REFUSED", "sci-1", std::to_string(i), "why", 0});
    }
  }
  uint64_t said = 0, unsaid = 0;
  for (const std::string& line : lines_of(folder.path() + "/audit.jsonl")) {
    const auto json = nlohmann::json::parse(line);
    (json["kind"] == "UNSAID" ? unsaid : said) += json.value("times", uint64_t{1});
  }
  EXPECT_EQ(said + unsaid, AuditLog::kWaitingMax + kMore);
  EXPECT_GT(unsaid, 0u);
}

TEST(AuditLog, ATornLastLineIsKeptAside) {
  const test::TempFolder folder;
  const std::string path = folder.path() + "/audit.jsonl";
  std::ofstream(path) << three()[0] << "\n{\"n\":2";
  {
    auto log = AuditLog::open(folder.path());
    ASSERT_TRUE(log);
    (*log)->add({"REFUSED", "sci-1", "x", "why", 0});
  }
  EXPECT_EQ(lines_of(path + ".torn").size(), 2u);
  EXPECT_EQ(lines_of(path).size(), 1u);
}

TEST(AuditLog, ADiskThatIsFullIsToldAndCountedOn) {
  const test::TempFolder folder;
  auto log = AuditLog::open(folder.path());
  ASSERT_TRUE(log) << log.error().message;
  ::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &none), 0);
  (*log)->add({"REFUSED", "sci-1", "x", "why", 0});
  while ((*log)->status().fault.empty()) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ((*log)->status().lines, 0u);
  EXPECT_EQ((*log)->status().unsaid, 1u);
  EXPECT_EQ((*log)->status().fault, "File too large");
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  (*log)->add({"REFUSED", "sci-1", "y", "why", 0});
  while ((*log)->status().lines < 2) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ((*log)->status().fault, "");  // its line, and one that tells of what is missing
}

}  // namespace
}  // namespace margay::control
