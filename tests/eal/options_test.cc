// SPDX-License-Identifier: Apache-2.0
// The command line of margay-dataplane: what ends it before the site file is read.
#include "dataplane/options.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace margay::dp {
namespace {

std::variant<Options, int> read(std::vector<std::string> words) {
  words.insert(words.begin(), "margay-dataplane");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  return read_options(static_cast<int>(argv.size()), argv.data());
}

TEST(Options, WhatFollowsTheDashesIsForEal) {
  const auto options = read({"--config", "site.yaml", "-i", "--", "--no-huge", "-l", "0,1"});
  ASSERT_TRUE(std::holds_alternative<Options>(options));
  EXPECT_EQ(std::get<Options>(options).config, "site.yaml");
  EXPECT_TRUE(std::get<Options>(options).interactive);
  EXPECT_EQ(std::get<Options>(options).eal_args, (std::vector<std::string>{"--no-huge", "-l", "0,1"}));
}

TEST(Options, WrongUsageIsOneLineAndStatusTwo) {
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {},
           {"--config", "site.yaml", "junk"},
           {"--config", "site.yaml", "--nonsense"},
           {"--config", "site.yaml", "--", "junk"},
           {"--config", "site.yaml", "--check", "--", "--proc-type=secondary"},
       }) {
    testing::internal::CaptureStderr();
    const auto options = read(words);
    const std::string told = testing::internal::GetCapturedStderr();
    ASSERT_TRUE(std::holds_alternative<int>(options)) << told;
    EXPECT_EQ(std::get<int>(options), 2);
    EXPECT_TRUE(told.starts_with("margay-dataplane: ")) << told;
    EXPECT_EQ(std::count(told.begin(), told.end(), '\n'), 1) << told;
  }
}

}  // namespace
}  // namespace margay::dp
