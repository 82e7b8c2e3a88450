// SPDX-License-Identifier: Apache-2.0
#include "common/cli/executor.h"

#include <exception>

namespace margay {
namespace {

// What a library throws (no memory, say) ends the command, not the daemon.
CommandResult call(const ParsedLine& parsed, Reply& reply) {
  try {
    return parsed.command->handler(parsed.arguments, reply);
  } catch (const std::exception& e) {
    return CommandError{1, std::string("the command failed: ") + e.what()};
  }
}

}  // namespace

Answer LocalExecutor::run(std::string_view line, bool json, const Reply::Sink& sink) {
  const std::lock_guard lock(control_);
  ParsedLine parsed;
  if (CommandResult r = table_.parse(line, parsed); !r) return {r};
  if (parsed.command == nullptr) return {};
  Reply reply(sink, json || parsed.json);
  CommandResult result = call(parsed, reply);
  reply.finish(!result);
  return {result, reply.ends_session()};
}

Completion LocalExecutor::complete(std::string_view line) {
  const std::lock_guard lock(control_);
  return table_.complete(line);
}

}  // namespace margay
