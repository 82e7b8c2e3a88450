// SPDX-License-Identifier: Apache-2.0
#pragma once

// The shell that an operator types into: over a daemon's own table (margay-dataplane -i) or a connection to one
// (margay-cli). On a terminal it has line editing, history in $HOME/.margay_history, completion by the tab key and
// help by `?`; else it reads its input as a script. One thread; blocks for its input.
//
// Answers go to standard output, errors to standard error, with their column.

#include <cstdio>
#include <string>
#include <string_view>

#include "common/cli/executor.h"

namespace margay {

// Exit status of the programs that have a shell.
enum ShellStatus : int { kShellOk = 0, kShellCommandFailed = 1, kShellUsage = 2, kShellNoDaemon = 3 };

class Shell {
 public:
  Shell(Executor& executor, std::string prompt, bool json)
      : executor_(executor), prompt_(std::move(prompt)), json_(json) {}

  // Until `quit` or the end of standard input.
  ShellStatus run();
  // Line by line; empty ones and those that begin with '#' are passed over. Ends at the first error, which is
  // shown as `name:line: ...`.
  ShellStatus run_script(std::FILE* file, const std::string& name);
  // One line; `where` stands before an error.
  ShellStatus run_line(std::string_view line, std::string_view where);
  // The last line was `quit`, or the connection is gone.
  bool ended() const { return ended_; }

 private:
  ShellStatus run_interactive();

  Executor& executor_;
  std::string prompt_;
  bool json_;
  bool ended_ = false;
};

}  // namespace margay
