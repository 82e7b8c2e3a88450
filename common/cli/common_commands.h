// SPDX-License-Identifier: Apache-2.0
#pragma once

// Commands that every daemon has.

#include <string>

#include "common/cli/command_table.h"

namespace margay {

// REQUIRES: the table outlives its use.
void add_help(CommandTable& table);
void add_quit(CommandTable& table);
void add_version(CommandTable& table, const std::string& program);

}  // namespace margay
