// SPDX-License-Identifier: Apache-2.0
#pragma once

// Something that carries out command lines: the daemon's own table (LocalExecutor) or a connection to it (Client).
// The shell runs over either.

#include <functional>
#include <mutex>
#include <string>
#include <string_view>

#include "common/cli/command_table.h"
#include "common/cli/reply.h"

namespace margay {

struct Answer {
  CommandResult result;
  bool quit = false;  // the command ends the session
  bool lost = false;  // the connection is gone; `result` says why
};

class Executor {
 public:
  virtual ~Executor() = default;
  // Gives the answer's text to `sink` piece by piece.
  virtual Answer run(std::string_view line, bool json, const Reply::Sink& sink) = 0;
  virtual Completion complete(std::string_view line) = 0;
};

// Runs commands in this process, one at a time: every executor over the same table shares one mutex, and whoever
// holds it is the daemon's control thread for that moment. Any thread. REQUIRES: table and mutex outlive it.
class LocalExecutor : public Executor {
 public:
  // `begin_turn` is called before each command and completion, if it is given.
  LocalExecutor(const CommandTable& table, std::mutex& control, std::function<void()> begin_turn = {})
      : table_(table), control_(control), begin_turn_(std::move(begin_turn)) {}

  Answer run(std::string_view line, bool json, const Reply::Sink& sink) override;
  Completion complete(std::string_view line) override;

 private:
  const CommandTable& table_;
  std::mutex& control_;
  std::function<void()> begin_turn_;
};

// Gives an answer to its sink only once the executor behind it is done, so that a sink that blocks, a terminal,
// holds up nobody else. An answer beyond kAnswerMax is cut, and an error says so. One thread.
// REQUIRES: the executor behind outlives it.
class CollectingExecutor : public Executor {
 public:
  static constexpr size_t kAnswerMax = size_t{64} << 20;

  explicit CollectingExecutor(Executor& behind, size_t answer_max = kAnswerMax)
      : behind_(behind), answer_max_(answer_max) {}

  Answer run(std::string_view line, bool json, const Reply::Sink& sink) override;
  Completion complete(std::string_view line) override { return behind_.complete(line); }

 private:
  Executor& behind_;
  const size_t answer_max_;
};

}  // namespace margay
