// SPDX-License-Identifier: Apache-2.0
#pragma once

// Deterministic replay: the real cores over a stream of records (proto/margay/v1/sci_events.proto), whose times are the
// clock. Same stream, same actions, byte for byte. One thread; reads no clock.
//
// A recording is replayed as it is: events in, actions out, its own actions passed over. In a stream written by hand
// (a start without ticks_recorded) whatever is due between two lines gets its Tick in its own time, and what stands in
// for the world answers. What is due at the time of a line comes before that line. A line without `wall` leaves the
// wall clock going on.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "control/c_sma/config.h"
#include "control/record/machine.h"
#include "control/record/wire.h"

namespace margay::control {

// Configurations of starts that have none.
struct ReplaySite {
  std::vector<SciSpec> scis = {};
  std::optional<c_sma::CSmaConfig> c_sma = {};
};

class Replay {
 public:
  using Counts = Tape::Counts;
  using Sink = Tape::Sink;

  Replay(ReplaySite site, Sink sink) : site_(std::move(site)), tape_(std::move(sink)) {}

  Result<void> line(std::string_view json);
  const Counts& counts() const { return tape_.counts; }

 private:
  using Key = std::pair<bool, std::string>;  // whether it is a C-SMA, and its CSCI-ID or identity

  Result<void> start(const Key& key, const v1::Record& record, Time at);
  Result<std::unique_ptr<Machine>> make(const Key& key, const v1::Record& record, Time at);
  void run_until(Nanoseconds end);
  void set_clock(const v1::Record& record, Time at);
  Time now() const;

  ReplaySite site_;
  Tape tape_;
  std::map<Key, std::unique_ptr<Machine>> machines_;
  Nanoseconds now_ = 0;
  int64_t wall_less_monotonic_ms_ = 0;
};

// Line by line; the error names the file and line. `out` is overwritten, and holds the actions until then.
Result<Replay::Counts> replay_file(const std::string& in, const std::string& out, ReplaySite site);

}  // namespace margay::control
