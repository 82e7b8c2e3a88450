// SPDX-License-Identifier: Apache-2.0
#pragma once

// One core under replay, with what stands in for its world. One thread.

#include <cstdint>
#include <functional>
#include <string_view>

#include "common/result.h"
#include "common/time_point.h"
#include "common/units.h"
#include "control/record/wire.h"
#include "margay/v1/sci_events.pb.h"

namespace margay::control {

// Where machines write what their cores want.
class Tape {
 public:
  struct Counts {
    uint64_t records = 0, events = 0, actions = 0;
  };
  // Takes a line without its end.
  using Sink = std::function<void(std::string_view)>;

  explicit Tape(Sink sink) : sink_(std::move(sink)) {}
  void action(const v1::Record& record) {
    ++counts.actions;
    sink_(json_line(record));
  }
  Counts counts;

 private:
  Sink sink_;
};

class Machine {
 public:
  Machine() = default;
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;
  virtual ~Machine() = default;

  // When something happens of its own; kNever: nothing.
  virtual Nanoseconds next_due() const = 0;
  // The first of what is due.
  virtual void run(Time now) = 0;
  // A record that is no start. An error tells what is wrong with it.
  virtual Result<void> take(const v1::Record& record, Time now) = 0;
};

}  // namespace margay::control
