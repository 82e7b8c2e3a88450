// SPDX-License-Identifier: Apache-2.0
#pragma once

// Deterministic replay: the real cores over a stream of records (proto/margay/v1/sci_events.proto), whose times are the
// clock. Same stream, same actions, byte for byte. One thread; reads no clock.
//
// A recording is replayed as it is: events in, actions out, its own actions passed over. In a stream written by hand
// (a Start without ticks_recorded) whatever is due between two lines gets its Tick in its own time, and instances
// that have Answers answer their probes and scrapes. What is due at the time of a line comes before that line. A line
// without `wall` leaves the wall clock going on.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control/record/wire.h"

namespace margay::control {

struct Answering {
  std::optional<Outcome> liveness, readiness;  // absent: not answered
  Nanoseconds latency = 0;
  std::string detail;
  std::vector<Sample> samples;  // none: the scrape fails
};

class Replay {
 public:
  struct Counts {
    uint64_t records = 0, events = 0, actions = 0;
  };
  // Takes a line without its end.
  using Sink = std::function<void(std::string_view)>;

  // `site` is the configuration of Starts that have none.
  Replay(std::vector<SciSpec> site, Sink sink);

  Result<void> line(std::string_view json);
  const Counts& counts() const { return counts_; }

 private:
  struct Machine {
    Machine(const Beginning& b, Nanoseconds now, bool recorded)
        : sci(b.config, b.seed, b.epoch, b.known, now), ticks_recorded(recorded) {}
    Nanoseconds next_due() const;

    Sci sci;
    bool ticks_recorded;
    std::map<std::string, Answering> answering = {};  // by SI-ID
    std::multimap<Nanoseconds, Event> coming = {};    // answers under way
  };

  Result<void> start(const v1::Record& record, Time at);
  Result<void> answer_from_now_on(const v1::Record& record, Machine& machine);
  void run_until(Nanoseconds end);
  void handle(const std::string& csci_id, Machine& machine, const Event& event);
  void answer(Machine& machine, const Action& action);
  const SciSpec* site_spec(const std::string& csci_id) const;
  Time now() const;

  std::vector<SciSpec> site_;
  Sink sink_;
  Counts counts_;
  std::map<std::string, Machine> machines_;  // by CSCI-ID
  Nanoseconds now_ = 0;
  int64_t wall_less_monotonic_ms_ = 0;
};

// Line by line; the error names the file and line. `out` is overwritten, and holds the actions until then.
Result<Replay::Counts> replay_file(const std::string& in, const std::string& out, std::vector<SciSpec> site);

}  // namespace margay::control
