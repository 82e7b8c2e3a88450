// SPDX-License-Identifier: Apache-2.0

// margay-cli: commands to a running Margay daemon over its Unix socket.
//
//   margay-cli [-s SOCKET] [--json] [COMMAND...]     one command, or a shell when there is none
//   margay-cli [-s SOCKET] [--json] -f SCRIPT        commands from a file, to its end or the first error
//   margay-cli [-s SOCKET] [--json] --every SECONDS COMMAND...   the same again and again: a live view
//   margay-cli [--json] audit verify FILE            whether an audit log is whole; asks no daemon
//
// Exit status: 0 done; 1 a command failed; 2 the options are wrong; 3 no daemon, or it closed the connection.

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/audit/chain.h"
#include "common/cli/client.h"
#include "common/cli/reply.h"
#include "common/cli/shell.h"
#include "common/command_line.h"

namespace margay {
namespace {

struct Options {
  std::string socket = "/run/margay/cli.sock";
  std::string script;
  double every = 0;  // seconds; 0: once
  bool json = false;
};

ShellStatus run_script_file(Shell& shell, const std::string& path) {
  if (path == "-") return shell.run_script(stdin, "stdin");
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "r"), &std::fclose);
  if (!file) {
    std::fprintf(stderr, "margay-cli: cannot read %s\n", path.c_str());
    return kShellUsage;
  }
  return shell.run_script(file.get(), path);
}

// Exit status 1: it is not.
int verify_audit_file(const std::string& path, bool json) {
  std::ifstream file(path, std::ios::binary);
  const auto chain = file ? verify_audit(file, path) : Result<AuditChain>(Error{path + ": cannot be read"});
  if (!chain) {
    std::fprintf(stderr, "margay-cli: %s\n", chain.error().message.c_str());
    return kShellCommandFailed;
  }
  Reply reply([](std::string_view text) { return std::fwrite(text.data(), 1, text.size(), stdout) == text.size(); },
              json);
  reply.field("lines", chain->lines());
  reply.field("head", chain->head());
  reply.finish(false);
  return kShellOk;
}

// Until a command fails, or a signal.
ShellStatus run_again_and_again(Shell& shell, const std::string& line, double seconds) {
  const bool terminal = ::isatty(STDOUT_FILENO) != 0;
  for (;;) {
    if (terminal) std::fputs("\x1b[H\x1b[2J", stdout);  // home, clear
    const ShellStatus status = shell.run_line(line, "margay-cli: ");
    std::fflush(stdout);
    if (status != kShellOk) return status;
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  }
}

int run(const Options& options, const std::vector<std::string>& words) {
  const Result<std::unique_ptr<Client>> client = Client::connect(options.socket);
  if (!client) {
    std::fprintf(stderr, "margay-cli: %s\n", client.error().message.c_str());
    return kShellNoDaemon;
  }
  Shell shell(**client, "margay> ", options.json);
  if (!options.script.empty()) return run_script_file(shell, options.script);
  if (words.empty()) return shell.run();
  std::string line;
  for (const std::string& word : words) {
    if (!line.empty()) line += ' ';
    line += quote_if_needed(word);
  }
  return options.every > 0 ? run_again_and_again(shell, line, options.every) : shell.run_line(line, "margay-cli: ");
}

}  // namespace
}  // namespace margay

int main(int argc, char** argv) {
  margay::CommandLine line("margay-cli", "Commands to a running Margay daemon; a shell when no command is given.",
                           MARGAY_VERSION);
  margay::Options options;
  std::vector<std::string> words;
  line.text("-s,--socket", options.socket, "the daemon's CLI socket");
  line.text("-f,--file", options.script, "run the commands of a file (-: standard input), end at the first error");
  line.flag("--json", options.json, "answer in JSON");
  line.seconds("--every", options.every, "the same command again and again, with so many seconds between", 0.1, 86400);
  line.footer(
      "COMMAND: `margay-cli help` lists what the daemon knows.\n"
      "Exit status: 0 done; 1 a command failed; 2 wrong options; 3 no daemon, or it closed the connection.");
  line.rest(words);
  if (const auto status = line.read(argc, argv)) return *status;
  if (!words.empty() && !options.script.empty()) {
    std::fprintf(stderr, "margay-cli: expected either -f or a command, not both\n");
    return margay::kShellUsage;
  }
  if (words.empty() && options.every > 0) {
    std::fprintf(stderr, "margay-cli: --every wants a command\n");
    return margay::kShellUsage;
  }
  if (!words.empty() && words.front().starts_with('-')) {
    std::fprintf(stderr, "margay-cli: there is no option %s\n", words.front().c_str());
    return margay::kShellUsage;
  }
  if (words.size() == 3 && words[0] == "audit" && words[1] == "verify") {
    return margay::verify_audit_file(words[2], options.json);
  }
  return margay::run(options, words);
}
