// SPDX-License-Identifier: Apache-2.0
#include "common/cli/foreground_shell.h"

#include <unistd.h>

#include <thread>

#include "common/cli/shell.h"

namespace margay {

ForegroundShell::ForegroundShell(std::shared_ptr<Commands> commands)
    : commands_(std::move(commands)), has_terminal_(::tcgetattr(STDIN_FILENO, &terminal_) == 0) {
  std::thread([shared = commands_] {
    // A terminal may take no output for as long as it likes: nothing is written during a turn.
    CollectingExecutor executor(shared->executor);
    Shell(executor, "margay> ", false).run();
    shared->shell_ended.store(true);
  }).detach();
}

ForegroundShell::~ForegroundShell() {
  commands_->control.lock();  // for good
  if (has_terminal_) ::tcsetattr(STDIN_FILENO, TCSANOW, &terminal_);
}

}  // namespace margay
