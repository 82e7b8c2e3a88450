// SPDX-License-Identifier: Apache-2.0
#include "dataplane/control_loop.h"

#include <signal.h>
#include <string.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include <spdlog/spdlog.h>

#include "common/cli/foreground_shell.h"
#include "common/cli/server.h"
#include "common/shared_table/heartbeat_watch.h"
#include "dataplane/cli/commands.h"

namespace margay::dp {
namespace {

using shared_table::HeartbeatWatch;

constexpr std::chrono::milliseconds kTurn{100};

// SIGHUP is what the end of a terminal sends; under nohup(1) it is ignored, and stays so.
sigset_t ending_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  struct sigaction hang_up {};
  sigaction(SIGHUP, nullptr, &hang_up);
  if (hang_up.sa_handler != SIG_IGN) sigaddset(&set, SIGHUP);
  return set;
}

bool signal_arrived() {
  const sigset_t set = ending_signals();
  const timespec at_once{};
  const int signal = sigtimedwait(&set, nullptr, &at_once);
  if (signal > 0) spdlog::info("msg=\"ending\" signal={}", std::string("SIG") + sigabbrev_np(signal));
  return signal > 0;
}

void tell_stalls(HeartbeatWatch& watch, Nanoseconds now) {
  for (const HeartbeatWatch::News& news : watch.look(now)) {
    if (news.stalled) {
      spdlog::error("msg=\"worker makes no progress\" worker={} for_ms={}", news.worker,
                    news.stood_still / kMillisecond);
    } else {
      spdlog::warn("msg=\"worker goes on\" worker={} stood_still_ms={}", news.worker, news.stood_still / kMillisecond);
    }
  }
}

void tell_links(DataPlane& data_plane) {
  for (const LinkChange& change : data_plane.ports.follow_links()) {
    const PortConfig& port = data_plane.config.ports[change.port];
    spdlog::log(change.up ? spdlog::level::info : spdlog::level::warn, "msg=\"link {}\" port={} device={}",
                change.up ? "up" : "down", port.name, port.device);
  }
}

void keep_bindings(DataPlane& data_plane) {
  if (auto done = data_plane.keep_bindings(); !done) {
    spdlog::error("msg=\"bindings will not outlive this process\" why={:?}", done.error().message);
  }
}

void write_recording(DataPlane& data_plane) {
  if (auto done = data_plane.write_recording(); !done) {
    spdlog::error("msg=\"recording of the table ended\" why={:?}", done.error().message);
  }
}

}  // namespace

void hold_signals() {
  const sigset_t set = ending_signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signal(SIGPIPE, SIG_IGN);
  // What the kernel sends in place of the TAP driver's own signal when too many of those wait; it would end us.
  signal(SIGIO, SIG_IGN);
}

Result<void> run_control(DataPlane& data_plane, bool interactive) {
  const auto commands = std::make_shared<Commands>([&data_plane] { data_plane.begin_turn(); });
  register_commands(commands->table, data_plane);
  auto server = CliServer::open(data_plane.config.cli_socket, commands->executor);
  if (!server) return server.error();
  HeartbeatWatch watch(data_plane.shared.worker_counters, data_plane.now());
  std::optional<ForegroundShell> shell;
  if (interactive) shell.emplace(commands);
  while (!data_plane.stop.load() && !commands->shell_ended.load() && !signal_arrived()) {
    (*server)->poll(kTurn);
    tell_stalls(watch, data_plane.now());
    keep_bindings(data_plane);
    const std::lock_guard turn(commands->control);  // drivers are asked by one thread at a time
    tell_links(data_plane);
    write_recording(data_plane);
  }
  const std::lock_guard turn(commands->control);
  write_recording(data_plane);
  return {};
}

}  // namespace margay::dp
