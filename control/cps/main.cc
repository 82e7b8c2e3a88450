// SPDX-License-Identifier: Apache-2.0
// margay-cps: a C-PS that authenticates C-SMAs, verifies what they advertise, keeps and shows it. Exit status: 0 after
// an orderly end, 1 after an error that standard error tells in one line, 2 for wrong usage.

#include <signal.h>
#include <string.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "common/cli/foreground_shell.h"
#include "common/command_line.h"
#include "common/log.h"
#include "control/cli_thread.h"
#include "control/clocks.h"
#include "control/cps/cli/commands.h"
#include "control/cps/cps_service.h"
#include "control/waker.h"

namespace margay::cps {
namespace {

constexpr int kTurnMs = 100;

struct Options {
  std::string config;
  bool check = false, interactive = false;
};

int fail(const Error& error) {
  std::fprintf(stderr, "margay-cps: %s\n", error.message.c_str());
  return 1;
}

void loop(control::Waker& waker, CpsService& service, Commands& commands) {
  for (;;) {
    {
      const std::lock_guard turn(commands.control);
      while (const int signal = waker.signal()) {
        if (signal == SIGHUP) continue;  // certificates are watched, all else wants a restart
        spdlog::info("msg=\"ending\" signal=SIG{}", sigabbrev_np(signal));
        service.stop();
      }
      const Time now = control::read_clocks();
      if (service.stopping() || commands.shell_ended.load()) return service.finish(now);
      service.turn(now);
      waker.wake_at(service.next_due());
    }
    waker.wait(kTurnMs);
  }
}

Result<void> run(CpsConfig config, bool interactive) {
  auto waker = control::Waker::make();
  if (!waker) return waker.error();
  const std::string cli = config.cli_socket;
  auto service = CpsService::make(std::move(config), (*waker)->epoll(), control::read_clocks());
  if (!service) return service.error();
  const auto commands = std::make_shared<Commands>();
  register_commands(commands->table, **service);
  auto server = CliServer::open(cli, commands->executor);
  if (!server) return server.error();
  const control::CliThread cli_thread(std::move(*server));
  std::optional<ForegroundShell> shell;
  if (interactive) shell.emplace(commands);
  loop(**waker, **service, *commands);
  return {};
}

int main(int argc, char** argv) {
  Options options;
  CommandLine line("margay-cps", "A C-PS: verifies, keeps and shows what C-SMAs advertise.", MARGAY_VERSION);
  line.text("--config", options.config, "the site file", CommandLine::Need::kRequired, "FILE");
  line.flag("--check", options.check, "validate the site file and exit");
  line.flag("-i,--interactive", options.interactive, "a shell in the foreground; its end ends the daemon");
  if (const auto status = line.read(argc, argv)) return *status;
  auto config = read_cps_file(options.config);
  if (!config) return fail(config.error());
  if (options.check) {
    fmt::print("{}: ok ({} C-SMA{})\n", config->file, config->c_smas.size(), config->c_smas.size() == 1 ? "" : "s");
    return 0;
  }
  control::hold_signals();
  start_log();
  if (auto done = run(std::move(*config), options.interactive); !done) return fail(done.error());
  spdlog::info("msg=\"ended\"");
  if (options.interactive) std::_Exit(0);  // its thread may stand in a write to the terminal
  return 0;
}

}  // namespace
}  // namespace margay::cps

int main(int argc, char** argv) { return margay::cps::main(argc, argv); }
