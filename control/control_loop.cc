// SPDX-License-Identifier: Apache-2.0
#include "control/control_loop.h"

#include <signal.h>
#include <string.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>

#include <spdlog/spdlog.h>

#include "common/cli/foreground_shell.h"
#include "common/cli/server.h"
#include "control/cli/commands.h"
#include "control/cli_thread.h"
#include "control/http/pages.h"
#include "control/http/report_page.h"
#include "control/http/server.h"
#include "control/service.h"
#include "control/waker.h"

namespace margay::control {
namespace {

constexpr std::chrono::milliseconds kTurn{100};

void heed_signals(const Waker& waker, Service& service) {
  while (const int signal = waker.signal()) {
    spdlog::info("msg=\"{}\" signal={}", signal == SIGHUP ? "reloading" : "ending",
                 std::string("SIG") + sigabbrev_np(signal));
    if (signal == SIGHUP) {
      (void)service.reload();  // the log has its error
    } else {
      service.stop();
    }
  }
}

void loop(Waker& waker, Service& service, Commands& commands) {
  std::vector<Prober::Answer> answers;
  for (;;) {
    {
      const std::lock_guard turn(commands.control);
      heed_signals(waker, service);
      service.answer(answers);
      if (service.stopping() || commands.shell_ended.load()) return service.finish();
      service.turn();
      waker.wake_at(service.next_due());
    }
    answers = service.wait(kTurn, waker.epoll());
  }
}

}  // namespace

Result<void> run_control(SiteSpec spec, const Options& options) {
  auto waker = Waker::make();
  if (!waker) return waker.error();
  const std::string cli = spec.cli_socket, site = spec.site.site, socket = spec.site.control_socket;
  const auto listen = spec.http_listen;
  const PulledBy pulled_by = spec.pulled_by;
  auto service = Service::make(std::move(spec), (*waker)->epoll(), options.record);
  if (!service) return service.error();
  const auto commands = std::make_shared<Commands>();
  register_commands(commands->table, **service);
  auto server = CliServer::open(cli, commands->executor);
  if (!server) return server.error();
  spdlog::info("msg=\"control plane\" site={} scis={} data_plane={} cli={}", site,
               (*service)->site().spec().scis.size(), socket, cli);
  std::unique_ptr<HttpServer> http;
  if (listen) {
    auto opened = HttpServer::open(*listen, [&service = **service, commands](const std::string& path) {
      return http_answer(service, commands->control, path);
    });
    if (!opened) return in("control.http.listen", opened.error());
    http = std::move(*opened);
  }
  std::unique_ptr<HttpServer> pulls;
  if (pulled_by.http) {
    auto opened = open_report_server(pulled_by, **service, commands);
    if (!opened) return in("control.pulled_by.http", opened.error());
    pulls = std::move(*opened);
  }
  const CliThread cli_thread(std::move(*server));
  std::optional<ForegroundShell> shell;
  if (options.interactive) shell.emplace(commands);
  loop(**waker, **service, *commands);
  return {};
}

}  // namespace margay::control
