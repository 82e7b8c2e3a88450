// SPDX-License-Identifier: Apache-2.0
#include "control/control_loop.h"

#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include <spdlog/spdlog.h>

#include "common/cli/foreground_shell.h"
#include "common/cli/server.h"
#include "common/fd.h"
#include "control/cli/commands.h"
#include "control/http/pages.h"
#include "control/http/server.h"
#include "control/service.h"

namespace margay::control {
namespace {

constexpr std::chrono::milliseconds kTurn{100};

sigset_t signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&set, signal);
  return set;
}

// What wakes the loop besides instances' answers: signals, the time, and the data plane's socket.
class Waker {
 public:
  static Result<std::unique_ptr<Waker>> make() {
    std::unique_ptr<Waker> waker(new Waker);
    const sigset_t set = signals();
    waker->epoll_ = Fd(::epoll_create1(EPOLL_CLOEXEC));
    waker->signals_ = Fd(::signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
    waker->timer_ = Fd(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
    for (const Fd* fd : {&waker->signals_, &waker->timer_}) {
      epoll_event event{};
      event.events = EPOLLIN;
      event.data.fd = fd->get();
      if (::epoll_ctl(waker->epoll_.get(), EPOLL_CTL_ADD, fd->get(), &event) != 0) {
        return Error{std::string("cannot wait for signals and time: ") + strerror(errno)};
      }
    }
    return waker;
  }

  int epoll() const { return epoll_.get(); }

  // One that is due already rings at once.
  void wake_at(Nanoseconds when) {
    itimerspec spec{};
    const Nanoseconds at = when == kNever ? 0 : std::max<Nanoseconds>(when, 1);  // 0 would be never
    spec.it_value.tv_sec = static_cast<time_t>(at / kSecond);
    spec.it_value.tv_nsec = static_cast<long>(at % kSecond);
    ::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &spec, nullptr);
  }

  // 0: none
  int signal() const {
    signalfd_siginfo info{};
    return ::read(signals_.get(), &info, sizeof info) == sizeof info ? static_cast<int>(info.ssi_signo) : 0;
  }

 private:
  Waker() = default;
  Fd epoll_, signals_, timer_;
};

// The CLI's socket, served by a thread of its own until the end.
class CliThread {
 public:
  explicit CliThread(std::unique_ptr<CliServer> server)
      : server_(std::move(server)), thread_([this] {
          while (!stop_.load()) server_->poll(kTurn);
        }) {}
  CliThread(const CliThread&) = delete;
  CliThread& operator=(const CliThread&) = delete;
  ~CliThread() {
    stop_.store(true);
    thread_.join();
  }

 private:
  std::unique_ptr<CliServer> server_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

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
      waker.wake_at(service.site().next_due());
    }
    answers = service.wait(kTurn, waker.epoll());
  }
}

}  // namespace

void hold_signals() {
  const sigset_t set = signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signal(SIGPIPE, SIG_IGN);
}

Result<void> run_control(SiteSpec spec, const Options& options) {
  auto waker = Waker::make();
  if (!waker) return waker.error();
  const std::string cli = spec.cli_socket, site = spec.site.site, socket = spec.site.control_socket;
  const auto listen = spec.http_listen;
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
  const CliThread cli_thread(std::move(*server));
  std::optional<ForegroundShell> shell;
  if (options.interactive) shell.emplace(commands);
  loop(**waker, **service, *commands);
  return {};
}

}  // namespace margay::control
