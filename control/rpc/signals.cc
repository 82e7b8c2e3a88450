// SPDX-License-Identifier: Apache-2.0
#include "control/rpc/signals.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace margay::rpc {

Result<std::shared_ptr<Signals>> Signals::open() {
  std::shared_ptr<Signals> signals(new Signals);
  signals->poll_ = Fd(epoll_create1(EPOLL_CLOEXEC));
  signals->event_ = Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  signals->timer_ = Fd(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  for (const Fd* fd : {&signals->event_, &signals->timer_}) {
    epoll_event in{.events = EPOLLIN, .data = {}};
    if (epoll_ctl(signals->poll_.get(), EPOLL_CTL_ADD, fd->get(), &in) != 0) {
      return Error{std::string("cannot wait for events: ") + std::strerror(errno)};
    }
  }
  return signals;
}

void Signals::put(Signal signal) {
  const std::lock_guard lock(mutex_);
  (signal.urgent ? urgent_ : waiting_).push_back(std::move(signal));
  constexpr uint64_t kOne = 1;
  // Cannot fail: the counter is taken to 0 whenever the queues are.
  if (waiting_.size() + urgent_.size() == 1) (void)!::write(event_.get(), &kOne, sizeof kOne);
}

void Signals::put_refused(std::string reason, std::string detail) {
  if (refused_.fetch_add(1, std::memory_order_relaxed) >= kRefusedMax) {
    refused_.fetch_sub(1, std::memory_order_relaxed);
    return;
  }
  put({.kind = Signal::Kind::kRefused, .text = std::move(detail), .reason = std::move(reason)});
}

std::optional<Signal> Signals::take() {
  const std::lock_guard lock(mutex_);
  if (waiting_.empty() && urgent_.empty()) return {};
  urgent_next_ = waiting_.empty() || (urgent_next_ && !urgent_.empty());
  std::deque<Signal>& from = urgent_next_ ? urgent_ : waiting_;
  urgent_next_ = !urgent_next_;
  std::optional<Signal> signal(std::move(from.front()));
  from.pop_front();
  uint64_t count;
  if (waiting_.empty() && urgent_.empty()) (void)!::read(event_.get(), &count, sizeof count);
  if (signal->kind == Signal::Kind::kRefused) refused_.fetch_sub(1, std::memory_order_relaxed);
  return signal;
}

void Signals::wake_at(Nanoseconds time) {
  if (time == armed_) return;
  armed_ = time;
  itimerspec at{};
  // 0 would switch the timer off.
  const Nanoseconds when = time == kNever ? 0 : std::max<Nanoseconds>(time, 1);
  at.it_value = {.tv_sec = static_cast<time_t>(when / kSecond), .tv_nsec = static_cast<long>(when % kSecond)};
  timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &at, nullptr);
}

void Signals::wait() const {
  pollfd one{.fd = poll_.get(), .events = POLLIN, .revents = 0};
  (void)poll(&one, 1, -1);
}

}  // namespace margay::rpc
