// SPDX-License-Identifier: Apache-2.0

// An answer in its two forms: aligned text for people, one JSON document for programs.

#include "common/cli/reply.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace margay {
namespace {

using nlohmann::json;

template <class Write>
std::string answer(bool as_json, Write write, bool failed = false) {
  std::string out;
  Reply reply(
      [&](std::string_view piece) {
        out += piece;
        return true;
      },
      as_json);
  write(reply);
  reply.finish(failed);
  return out;
}

void two_rows(Reply& reply) {
  reply.table("ports", {"name", "rx_packets", "up", "list"});
  reply.row({"net0", 7U, true, std::vector<std::string>{"a", "b"}});
  reply.row({"n", 12345U, false, std::vector<std::string>{}});
}

TEST(Reply, AlignsTextToTheLeftAndNumbersToTheRight) {
  EXPECT_EQ(answer(false, two_rows),
            "name  rx packets  up   list\n"
            "net0           7  yes  a, b\n"
            "n          12345  no   -\n");
}

TEST(Reply, IsOneJsonDocument) {
  const auto write = [](Reply& reply) {
    reply.field("version", 3U);
    two_rows(reply);
    reply.field("more", true, "more rows exist");
    reply.table("empty", {"x"});
  };
  const json got = json::parse(answer(true, write));
  const json expected = {
      {"version", 3},
      {"ports", json::array({{{"name", "net0"}, {"rx_packets", 7}, {"up", true}, {"list", {"a", "b"}}},
                             {{"name", "n"}, {"rx_packets", 12345}, {"up", false}, {"list", json::array()}}})},
      {"more", true},
      {"empty", json::array()}};
  EXPECT_EQ(got, expected);
}

TEST(Reply, ShowsFieldsBlocksAndEmptyTables) {
  const auto write = [](Reply& reply) {
    reply.field("table_version", 3U);
    reply.field("state", "on", "forwarding is on");
    reply.table("port", {"port", "mac", "link"}, Reply::Layout::kBlocks);
    reply.row({"net0", "02:00:00:00:00:01", Cell()});
    reply.row({"net1", "02:00:00:00:00:02", -1});
    reply.table("flows", {"client"});
  };
  EXPECT_EQ(answer(false, write),
            "table version: 3\n"
            "forwarding is on\n"
            "\n"
            "port net0\n"
            "  mac   02:00:00:00:00:01\n"
            "  link  -\n"
            "\n"
            "port net1\n"
            "  mac   02:00:00:00:00:02\n"
            "  link  -1\n"
            "\n"
            "flows: none\n");
}

TEST(Reply, EscapesWhatWouldBreakJsonOrATerminal) {
  const auto write = [](Reply& reply) { reply.field("name", std::string("a\"\\\x1b[31m\n\xff", 9)); };
  EXPECT_EQ(answer(false, write), "name: a\"\\?[31m?\n");
  EXPECT_EQ(json::parse(answer(true, write))["name"], "a\"\\\x1b[31m\n");
}

TEST(Reply, StreamsWithBoundedMemoryAndStopsWhenNobodyReads) {
  size_t largest = 0, pieces = 0, bytes = 0;
  Reply reply(
      [&](std::string_view piece) {
        largest = std::max(largest, piece.size());
        bytes += piece.size();
        return ++pieces < 3;
      },
      true);
  reply.table("rows", {"n"});
  size_t rows = 0;
  for (; rows < 100'000 && reply.wanted(); ++rows) reply.row({rows});
  EXPECT_EQ(pieces, 3U);
  EXPECT_LT(rows, 10'000U);
  EXPECT_LT(largest, 16'384U);
  reply.finish(false);
  EXPECT_EQ(pieces, 3U);
}

TEST(Reply, KeepsColumnsBehindTheMeasuredRows) {
  const std::string text = answer(false, [](Reply& reply) {
    reply.table("rows", {"name", "n"});
    for (uint64_t n = 0; n < Reply::kRowsMeasured + 2; ++n) reply.row({"x", n});
  });
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), static_cast<ptrdiff_t>(Reply::kRowsMeasured + 3));
  EXPECT_TRUE(text.ends_with("x     64\nx     65\n")) << text;
}

TEST(Reply, AnEmptyAnswerIsAnEmptyDocumentAndAFailedOneNothing) {
  const auto nothing = [](Reply&) {};
  EXPECT_EQ(answer(true, nothing), "{}\n");
  EXPECT_EQ(answer(true, nothing, true), "");
  EXPECT_EQ(answer(false, nothing), "");
  // What has begun is closed all the same, so that a program can read it.
  EXPECT_TRUE(json::accept(answer(true, two_rows, true)));
}

}  // namespace
}  // namespace margay
