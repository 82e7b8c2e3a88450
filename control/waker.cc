// SPDX-License-Identifier: Apache-2.0
#include "control/waker.h"

#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "control/watch.h"

namespace margay::control {
namespace {

sigset_t signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&set, signal);
  return set;
}

}  // namespace

void hold_signals() {
  const sigset_t set = signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
}

Result<std::unique_ptr<Waker>> Waker::make() {
  std::unique_ptr<Waker> waker(new Waker);
  const sigset_t set = signals();
  waker->epoll_ = Fd(::epoll_create1(EPOLL_CLOEXEC));
  waker->signals_ = Fd(::signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
  waker->timer_ = Fd(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
  for (const Fd* fd : {&waker->signals_, &waker->timer_}) {
    if (!watch(waker->epoll_.get(), fd->get())) {
      return Error{std::string("cannot wait for signals and time: ") + strerror(errno)};
    }
  }
  return waker;
}

void Waker::wake_at(Nanoseconds when) {
  itimerspec spec{};
  const Nanoseconds at = when == kNever ? 0 : std::max<Nanoseconds>(when, 1);  // 0 would be never
  spec.it_value.tv_sec = static_cast<time_t>(at / kSecond);
  spec.it_value.tv_nsec = static_cast<long>(at % kSecond);
  ::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &spec, nullptr);
}

int Waker::signal() const {
  signalfd_siginfo info{};
  return ::read(signals_.get(), &info, sizeof info) == sizeof info ? static_cast<int>(info.ssi_signo) : 0;
}

void Waker::wait(int milliseconds) const {
  epoll_event event{};
  ::epoll_wait(epoll_.get(), &event, 1, milliseconds);
}

}  // namespace margay::control
