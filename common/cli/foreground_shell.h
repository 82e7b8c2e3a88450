// SPDX-License-Identifier: Apache-2.0
#pragma once

// The shell that a daemon's `-i` asks for, on a thread of its own, and whose turn it is.

#include <termios.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "common/cli/command_table.h"
#include "common/cli/executor.h"

namespace margay {

// A daemon's commands. Shared with the foreground shell's thread, which may outlive the daemon's loop.
struct Commands {
  explicit Commands(std::function<void()> begin_turn = {}) : executor(table, control, std::move(begin_turn)) {}

  CommandTable table;
  std::mutex control;  // who holds it has the turn
  LocalExecutor executor;
  std::atomic<bool> shell_ended{false};
};

// It may be waiting for a key, or for its terminal to take output, when the daemon ends: then its thread is left behind
// without another turn, and the terminal put back as it was. Once that happened the end of stdio would wait for that
// thread: the process ends by _Exit.
class ForegroundShell {
 public:
  explicit ForegroundShell(std::shared_ptr<Commands> commands);
  ForegroundShell(const ForegroundShell&) = delete;
  ForegroundShell& operator=(const ForegroundShell&) = delete;
  ~ForegroundShell();

 private:
  std::shared_ptr<Commands> commands_;
  termios terminal_{};
  bool has_terminal_;
};

}  // namespace margay
