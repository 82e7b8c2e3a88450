// SPDX-License-Identifier: Apache-2.0
// The counters' memory (architecture, "The shared table"): where things lie, and what a reader refuses.
#include "common/shared_table/counters.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace margay::shared_table {
namespace {

struct alignas(kCounterAlignment) Line {
  std::byte bytes[kCounterAlignment];
};

class CountersMemory : public testing::Test {
 protected:
  std::span<std::byte> bytes() { return std::as_writable_bytes(std::span(lines_)); }
  std::string refusal() {
    const auto opened = open_counters(bytes());
    return opened ? "" : opened.error().message;
  }
  template <class T>
  void put(size_t offset, T value) {
    std::memcpy(bytes().data() + offset, &value, sizeof value);
  }

  const CountersShape shape_{2, 3, 5};
  std::vector<Line> lines_ = std::vector<Line>(counters_bytes(shape_) / sizeof(Line));
};

TEST_F(CountersMemory, WhatIsWrittenIsRead) {
  const auto writer = make_counters(bytes(), shape_);
  writer.settings()[2].set(7);
  writer.workers()[1].polls.add(11);
  writer.scis()[1 * 5 + 4].refused[2].add(13);
  writer.instances()[1 * 3 + 2].active.add(17);
  writer.times()[1 * 3 + 2].responses.add(5 * kMillisecond);
  const auto reader = open_counters(bytes());
  ASSERT_TRUE(reader) << reader.error().message;
  EXPECT_EQ(reader->shape(), shape_);
  EXPECT_EQ(reader->settings().size(), 3u);
  EXPECT_EQ(reader->workers().size(), 2u);
  EXPECT_EQ(reader->scis().size(), 10u);
  EXPECT_EQ(reader->instances().size(), 6u);
  EXPECT_EQ(reader->settings()[2].get(), 7u);
  EXPECT_EQ(reader->workers()[1].polls.get(), 11u);
  EXPECT_EQ(reader->scis()[9].refused[2].get(), 13u);
  EXPECT_EQ(reader->instances()[5].active.get(), 17u);
  Histogram responses;
  reader->times()[5].responses.add_to(responses);
  EXPECT_EQ(responses.count(), 1u);
  EXPECT_EQ(responses.sum, 5 * kMillisecond);
}

// No two arrays share a line, and nothing else is touched: the sum of what was written is all that is there.
TEST_F(CountersMemory, NothingOverlaps) {
  const auto writer = make_counters(bytes(), shape_);
  std::vector<const std::byte*> ends;
  const std::byte* last = bytes().data();
  const auto follows = [&](auto span) {
    EXPECT_GE(reinterpret_cast<const std::byte*>(span.data()), last);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(span.data()) % kCounterAlignment, 0u);
    last = reinterpret_cast<const std::byte*>(span.data() + span.size());
  };
  follows(writer.settings());
  follows(writer.workers());
  follows(writer.scis());
  follows(writer.instances());
  follows(writer.times());
  EXPECT_EQ(last, bytes().data() + bytes().size());
}

TEST_F(CountersMemory, RefusesByName) {
  EXPECT_EQ(refusal(), "counters: the header is none");
  make_counters(bytes(), shape_);
  ASSERT_EQ(refusal(), "");
  put<uint32_t>(8, 99);
  EXPECT_EQ(refusal(), "counters: of another version of margay-dataplane");
  make_counters(bytes(), shape_);
  put<uint32_t>(24, 8);  // the first size
  EXPECT_EQ(refusal(), "counters: of another version of margay-dataplane");
  make_counters(bytes(), shape_);
  put<uint32_t>(16, 4);  // instances
  EXPECT_EQ(refusal(), "counters: " + std::to_string(bytes().size()) + " bytes, expected " +
                           std::to_string(counters_bytes({2, 4, 5})));
  for (const auto& [at, value] : {std::pair<size_t, uint32_t>{12, 0}, {12, 257}, {16, 65'537}, {20, 65'537}}) {
    make_counters(bytes(), shape_);
    put(at, value);
    EXPECT_NE(refusal().find("expected what a site can have"), std::string::npos) << at << ": " << refusal();
  }
  const auto cut = open_counters(bytes().first(8));
  ASSERT_FALSE(cut);
  EXPECT_EQ(cut.error().message, "counters: shorter than their header");
}

TEST(OperatorSettings, EveryFieldComesBack) {
  const OperatorSetting settings[] = {
      {},
      {.generation = 65535, .admin = Admin::kDisabled, .max_sessions = (1u << 24) - 1, .weight = 65535},
      {.generation = 1, .admin = Admin::kEnabled, .max_sessions = {}, .weight = {}},
      {.generation = 2, .admin = {}, .max_sessions = 0, .weight = {}},
      {.generation = 3, .admin = {}, .max_sessions = {}, .weight = 0},
      {.generation = 4, .admin = Admin::kDraining, .max_sessions = 5, .weight = 6},
  };
  for (const OperatorSetting& s : settings) EXPECT_EQ(OperatorSetting::unpack(s.pack()), s) << s.generation;
  EXPECT_EQ(OperatorSetting{}.pack(), 0u);
}

// A word that no setting packs to: the admin that does not exist is left out.
TEST(OperatorSettings, HostileWord) {
  const OperatorSetting setting = OperatorSetting::unpack(~uint64_t{0});
  EXPECT_FALSE(setting.admin);
  EXPECT_EQ(setting.max_sessions, (1u << 24) - 1);
  EXPECT_EQ(setting.weight, 65535);
}

}  // namespace
}  // namespace margay::shared_table
