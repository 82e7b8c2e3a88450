// SPDX-License-Identifier: Apache-2.0
#pragma once

// Runs several threads of simulated control (fibers) in one real thread and decides from a seed which of them
// goes on at each step, so that a test can visit interleavings that real threads hardly ever meet, and can meet
// each of them again. Code under test calls step() before each access to shared memory: what lies between two
// calls is one indivisible step, and memory is sequentially consistent.
//
// Now and then a fiber stalls in the middle of whatever it does, for up to Pace::stall_steps_max steps of the
// others. One real thread; a fiber must not throw.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include <boost/context/fiber.hpp>

#include "tests/support/seed.h"

namespace margay::test {

class Interleaver {
 public:
  struct Pace {
    uint32_t switch_per_256 = 128;  // chance that a step changes to another fiber
    uint32_t stall_per_65536 = 64;  // chance that a step makes the fiber stall
    uint32_t stall_steps_max = 10'000;
  };

  Interleaver(uint64_t seed, Pace pace) : random_(seed), pace_(pace) {}
  Interleaver(const Interleaver&) = delete;
  Interleaver& operator=(const Interleaver&) = delete;

  void add(std::function<void()> body) { fibers_.push_back(Fiber{make(fibers_.size(), std::move(body)), 0, false}); }

  // Runs all bodies to their end. REQUIRES: at least one, and not run before.
  void run() {
    live_ = fibers_.size();
    main_ = fibers_.size();
    fibers_.push_back(Fiber{{}, UINT64_MAX, true});
    current_ = main_;
    switch_to(pick());
  }

  // From a body: lets others go on, or not. Outside run() it does nothing.
  void step() {
    if (live_ == 0) return;
    ++steps_;
    const uint64_t dice = random_.next();
    const bool stalls = (dice >> 8 & 0xffff) < pace_.stall_per_65536;
    if (stalls) fibers_[current_].asleep_until = steps_ + 1 + random_.below(pace_.stall_steps_max);
    if (!stalls && (dice & 0xff) >= pace_.switch_per_256) return;
    const size_t next = pick();
    if (next != current_) switch_to(next);
  }

  bool running() const { return live_ > 0; }
  size_t current() const { return current_; }  // index in the order of add()
  uint64_t steps() const { return steps_; }

 private:
  struct Fiber {
    boost::context::fiber context;
    uint64_t asleep_until;
    bool ended;
  };

  boost::context::fiber make(size_t self, std::function<void()> body) {
    return boost::context::fiber([this, self, body = std::move(body)](boost::context::fiber&& previous) {
      fibers_[previous_].context = std::move(previous);
      body();
      fibers_[self].ended = true;
      --live_;
      previous_ = self;
      current_ = live_ > 0 ? pick() : main_;
      return std::move(fibers_[current_].context);
    });
  }

  // The fiber that resumes us has left its index in previous_: its context is kept there.
  void switch_to(size_t next) {
    previous_ = current_;
    current_ = next;
    boost::context::fiber from = std::move(fibers_[next].context).resume();
    fibers_[previous_].context = std::move(from);
  }

  // Any fiber that is awake; if all sleep, the one that wakes first. REQUIRES: live_ > 0
  size_t pick() {
    const size_t n = fibers_.size() - 1;
    const size_t start = random_.below(n);
    size_t first = main_;
    for (size_t k = 0; k < n; ++k) {
      const size_t f = start + k < n ? start + k : start + k - n;
      if (fibers_[f].ended) continue;
      if (fibers_[f].asleep_until <= steps_) return f;
      if (first == main_ || fibers_[f].asleep_until < fibers_[first].asleep_until) first = f;
    }
    return first;
  }

  Random random_;
  Pace pace_;
  std::vector<Fiber> fibers_;
  size_t live_ = 0, main_ = 0, current_ = 0, previous_ = 0;
  uint64_t steps_ = 0;
};

}  // namespace margay::test
