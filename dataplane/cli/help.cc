// SPDX-License-Identifier: Apache-2.0
// help [WORDS]
#include "dataplane/cli/commands.h"

namespace margay::dp {

void add_help(CommandTable& table, DataPlane&) {
  table.add({"help [WORDS]", "the commands, or those that begin with these words", "reads nothing but the table",
             [&table](const Arguments& arguments, Reply& reply) -> CommandResult {
               const auto* words = arguments.option("WORDS");
               const std::vector<Argument> none;
               const std::vector<const Command*> found = table.matching(words != nullptr ? *words : none);
               if (found.empty()) return words->front().error("no command begins with these words");
               reply.table("help", {"command", "help", "safety"}, Reply::Layout::kBlocks);
               for (const Command* command : found) reply.row({command->pattern, command->help, command->safety});
               return {};
             }});
}

}  // namespace margay::dp
