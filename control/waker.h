// SPDX-License-Identifier: Apache-2.0
#pragma once

// What wakes a daemon's loop: signals, the time, and whatever else is added to its epoll. One thread.

#include <memory>

#include "common/fd.h"
#include "common/result.h"
#include "common/units.h"

namespace margay::control {

// Blocks SIGTERM, SIGINT and SIGHUP for this thread and all that it makes; the Waker takes them. First thing in main.
void hold_signals();

class Waker {
 public:
  static Result<std::unique_ptr<Waker>> make();

  int epoll() const { return epoll_.get(); }
  // One that is due already rings at once.
  void wake_at(Nanoseconds when);
  // The next signal that came; 0: none.
  int signal() const;
  // Until something happens, at most so long.
  void wait(int milliseconds) const;

 private:
  Waker() = default;
  Fd epoll_, signals_, timer_;
};

}  // namespace margay::control
