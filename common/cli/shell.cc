// SPDX-License-Identifier: Apache-2.0
#include "common/cli/shell.h"

#include <unistd.h>

#include <cstdlib>
#include <memory>

#include "common/cli/line_editor.h"

namespace margay {
namespace {

bool print(std::string_view text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  return std::fflush(stdout) == 0 && written;
}

void print_error(std::string_view where, const CommandError& error, bool placed) {
  std::string text(where);
  if (placed) text += "error at column " + std::to_string(error.position) + ": ";
  std::fprintf(stderr, "%s%s\n", text.c_str(), error.message.c_str());
}

std::string history_file() {
  const char* home = std::getenv("HOME");
  return home != nullptr && *home != '\0' ? std::string(home) + "/.margay_history" : std::string();
}

// Reads one line; false at the end.
bool read_line(std::FILE* file, std::string& line) {
  line.clear();
  int c = 0;
  while ((c = std::fgetc(file)) != EOF && c != '\n') {
    if (line.size() <= CommandTable::kLineMax) line += static_cast<char>(c);
  }
  return c != EOF || !line.empty();
}

}  // namespace

ShellStatus Shell::run_line(std::string_view line, std::string_view where) {
  const Answer answer = executor_.run(line, json_, print);
  ended_ = answer.quit || answer.lost;
  if (answer.result) return kShellOk;
  print_error(where, answer.result.error(), !answer.lost);
  return answer.lost ? kShellNoDaemon : kShellCommandFailed;
}

ShellStatus Shell::run_script(std::FILE* file, const std::string& name) {
  std::string line;
  for (size_t number = 1; !ended_ && read_line(file, line); ++number) {
    const size_t first = line.find_first_not_of(" \t\r");
    if (first == std::string::npos || line[first] == '#') continue;
    const ShellStatus status = run_line(line, name + ":" + std::to_string(number) + ": ");
    if (status != kShellOk) return status;
  }
  return kShellOk;
}

ShellStatus Shell::run_interactive() {
  LineEditor editor(prompt_, history_file(), [this](std::string_view line) { return executor_.complete(line); });
  ShellStatus status = kShellOk;
  while (!ended_) {
    const std::optional<std::string> line = editor.read();
    if (!line) {
      print("\n");
      break;
    }
    status = run_line(*line, "");
  }
  return status == kShellNoDaemon ? status : kShellOk;
}

ShellStatus Shell::run() {
  if (::isatty(STDIN_FILENO) == 1) return run_interactive();
  return run_script(stdin, "stdin");
}

}  // namespace margay
