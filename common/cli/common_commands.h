// SPDX-License-Identifier: Apache-2.0
#pragma once

// Commands that every daemon has.

#include <functional>
#include <string>

#include "common/cli/command_table.h"

namespace margay {

// REQUIRES: the table outlives its use.
void add_help(CommandTable& table);
void add_quit(CommandTable& table);
// `help`: what ends, and what goes on without it. `stop` is called in the command's turn, and does not wait.
void add_shutdown(CommandTable& table, const std::string& help, std::function<void()> stop);
void add_version(CommandTable& table, const std::string& program);

}  // namespace margay
