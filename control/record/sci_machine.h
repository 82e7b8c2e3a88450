// SPDX-License-Identifier: Apache-2.0
#pragma once

// An SCI under replay. In a stream without recorded ticks, instances that have Answers answer its probes and scrapes.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "control/record/machine.h"

namespace margay::control {

class SciMachine : public Machine {
 public:
  SciMachine(const Beginning& beginning, bool ticks_recorded, Nanoseconds now, Tape& tape)
      : csci_id_(beginning.config.csci_id),
        sci_(beginning.config, beginning.seed, beginning.epoch, beginning.known, now),
        ticks_recorded_(ticks_recorded),
        tape_(tape) {}

  Nanoseconds next_due() const override;
  void run(Time now) override;
  Result<void> take(const v1::Record& record, Time now) override;

 private:
  struct Answering {
    std::optional<Outcome> liveness, readiness;  // absent: not answered
    Nanoseconds latency = 0;
    std::string detail;
    std::vector<Sample> samples;  // none: the scrape fails
  };

  Result<void> answer_from_now_on(const v1::Answers& answers);
  void handle(const Event& event, Time now);
  void answer(const Action& action, Nanoseconds now);

  std::string csci_id_;
  Sci sci_;
  bool ticks_recorded_;
  Tape& tape_;
  std::map<std::string, Answering> answering_;  // by SI-ID
  std::multimap<Nanoseconds, Event> coming_;    // answers under way
};

}  // namespace margay::control
