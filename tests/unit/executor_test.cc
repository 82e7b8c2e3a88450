// SPDX-License-Identifier: Apache-2.0

// Whose turn it is while an answer goes out.

#include "common/cli/executor.h"

#include <gtest/gtest.h>

#include <mutex>
#include <vector>

namespace margay {
namespace {

// `list`: four pieces of 5000 bytes; `fail`: an error behind some text.
class Executors : public testing::Test {
 protected:
  Executors() {
    table_.add({"list", "", "", [](const Arguments&, Reply& reply) -> CommandResult {
                  reply.table("rows", {"row"});
                  for (int i = 0; i < 4 && reply.wanted(); ++i) reply.row({std::string(5000, 'x')});
                  return {};
                }});
    table_.add({"fail", "", "", [](const Arguments&, Reply& reply) -> CommandResult {
                  reply.field("so_far", 1u);
                  return CommandError{3, "no"};
                }});
  }

  std::string run(Executor& executor, std::string_view line, Answer& answer) {
    std::string text;
    answer = executor.run(line, true, [&](std::string_view piece) {
      sink_had_the_turn_ = control_.try_lock();
      if (sink_had_the_turn_) control_.unlock();
      text += piece;
      return true;
    });
    return text;
  }

  CommandTable table_;
  std::mutex control_;
  LocalExecutor local_{table_, control_};
  bool sink_had_the_turn_ = false;
};

TEST_F(Executors, ACollectedAnswerGoesOutWithTheTurnGivenBack) {
  Answer answer;
  const std::string at_once = run(local_, "list", answer);
  EXPECT_FALSE(sink_had_the_turn_);
  CollectingExecutor collecting(local_);
  EXPECT_EQ(run(collecting, "list", answer), at_once);
  EXPECT_TRUE(sink_had_the_turn_);
  EXPECT_TRUE(answer.result);
}

TEST_F(Executors, AnErrorComesBehindTheText) {
  Answer answer;
  CollectingExecutor collecting(local_);
  EXPECT_EQ(run(collecting, "fail", answer), "{\"so_far\":1}\n");
  ASSERT_FALSE(answer.result);
  EXPECT_EQ(answer.result.error().message, "no");
}

TEST_F(Executors, AnAnswerBeyondTheMostIsCutAndSaidToBe) {
  Answer answer;
  CollectingExecutor collecting(local_, 12'000);
  const std::string text = run(collecting, "list", answer);
  EXPECT_GT(text.size(), 0u);
  EXPECT_LE(text.size(), 12'000u);
  ASSERT_FALSE(answer.result);
  EXPECT_NE(answer.result.error().message.find("12000 bytes"), std::string::npos);
}

}  // namespace
}  // namespace margay
