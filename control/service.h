// SPDX-License-Identifier: Apache-2.0
#pragma once

// margay-control as its commands and its loop see it: the site, where reports go, and what may be asked of it. Whoever
// touches it holds the turn (Commands::control).

#include <memory>
#include <string>
#include <vector>

#include "control/agent/agent.h"
#include "control/clocks.h"
#include "control/collection/http/prober.h"
#include "control/collection/http/samples.h"
#include "control/collection/pull_port.h"
#include "control/collection/report_streams.h"
#include "control/http/metrics_page.h"
#include "control/record/recorder.h"
#include "control/report_lines.h"
#include "control/site.h"
#include "control/statistics.h"

namespace margay::control {

class Service {
 public:
  // `epoll`: the loop's. `recording`: a file, or empty. Errors are those of the site and of the places for reports and
  // the recording.
  static Result<std::unique_ptr<Service>> make(SiteSpec spec, int epoll, const std::string& recording);

  // Events and time, until nothing is due. The loop only, as the two after it: they touch the prober.
  void turn();
  // What instances answered; waits until there is something to do, at most `patience`. Holds no turn while it waits.
  std::vector<Prober::Answer> wait(std::chrono::milliseconds patience, int wake) {
    return prober_.poll(patience, wake);
  }
  void answer(const std::vector<Prober::Answer>& answers);

  // Reads the site file again: all of it is taken over or, with an error, none. What changed; told in the log too.
  Result<std::vector<std::string>> reload();
  void stop() { stopping_ = true; }
  bool stopping() const { return stopping_; }
  // The last reports.
  void finish();

  // When a turn is wanted, unless something comes before.
  Nanoseconds next_due() const;

  Site& site() { return *site_; }
  const Site& site() const { return *site_; }
  const ReportLines& reports() const { return lines_; }
  const Statistics& statistics() const { return statistics_; }
  SiteNumbers numbers() const;
  // nullptr: no C-SMA runs here
  Agent* agent() { return agent_.get(); }
  const Agent* agent() const { return agent_.get(); }
  const ReportStreams& streams() const { return *streams_; }
  // nullptr: nobody asks for reports
  PullPort* pull_port() { return pull_port_.get(); }
  const PullPort* pull_port() const { return pull_port_.get(); }
  // Somebody asks for the report of an SCI. REQUIRES: pull_port()
  void pull(const std::string& csci_id, PullPort::Respond respond);

 private:
  Service() = default;
  Site::Parts parts();
  Result<void> join();
  void reported(const Report& report);
  bool want_report(const std::string& csci_id);
  void handled(const std::string& csci_id, const Event& event, const std::vector<Action>& actions, Time at);
  Result<std::vector<std::string>> take_over();

  Prober prober_;  // the loop's, which waits in it without the turn
  std::vector<Prober::Question> questions_;
  ReportLines lines_;
  SampleMakers samples_;
  Statistics statistics_;
  Recorder recorder_;
  std::unique_ptr<Site> site_;
  std::unique_ptr<Agent> agent_;
  std::unique_ptr<ReportStreams> streams_;
  std::unique_ptr<PullPort> pull_port_;
  uint64_t seed_ = 0;
  int epoll_ = -1;
  Time now_;  // of this turn, or command
  bool stopping_ = false;
  bool recording_ = false;  // as of the last turn
};

}  // namespace margay::control
