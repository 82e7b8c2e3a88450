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
  if (begin_turn_) begin_turn_();
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
  if (begin_turn_) begin_turn_();
  return table_.complete(line);
}

Answer CollectingExecutor::run(std::string_view line, bool json, const Reply::Sink& sink) {
  std::string text;
  bool cut = false;
  Answer answer = behind_.run(line, json, [&](std::string_view piece) {
    cut = cut || piece.size() > answer_max_ - text.size();
    if (!cut) text += piece;
    return !cut;
  });
  if (!text.empty()) sink(text);
  if (cut && answer.result) {
    answer.result = CommandError{1, "the answer ends here: it is longer than " + std::to_string(answer_max_) +
                                        " bytes, which margay-cli would show whole"};
  }
  return answer;
}

}  // namespace margay
