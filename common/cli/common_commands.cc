// SPDX-License-Identifier: Apache-2.0
#include "common/cli/common_commands.h"

#include <utility>

namespace margay {

// help [WORDS]
void add_help(CommandTable& table) {
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

// quit
void add_quit(CommandTable& table) {
  table.add({"quit", "end this shell; the daemon goes on", "touches nothing",
             [](const Arguments&, Reply& reply) -> CommandResult {
               reply.end_session();
               return {};
             }});
}

// shutdown
void add_shutdown(CommandTable& table, const std::string& help, std::function<void()> stop) {
  table.add(
      {"shutdown", help, "as SIGTERM does", [stop = std::move(stop)](const Arguments&, Reply& reply) -> CommandResult {
         stop();
         reply.field("shutdown", true, "the daemon ends");
         reply.end_session();
         return {};
       }});
}

// version
void add_version(CommandTable& table, const std::string& program) {
  table.add(
      {"version", "the daemon's version", "reads nothing", [program](const Arguments&, Reply& reply) -> CommandResult {
         reply.field("version", MARGAY_VERSION, program + " " MARGAY_VERSION);
         return {};
       }});
}

}  // namespace margay
