// SPDX-License-Identifier: Apache-2.0
#pragma once

// margay-control as its commands and its loop see it: the site, where reports go, and what may be asked of it. Whoever
// touches it holds the turn (Commands::control).

#include <memory>
#include <string>
#include <vector>

#include "control/collection/http/prober.h"
#include "control/collection/http/samples.h"
#include "control/http/metrics_page.h"
#include "control/record/recorder.h"
#include "control/report_lines.h"
#include "control/site.h"
#include "control/statistics.h"

namespace margay::control {

// What the clocks say.
Time read_clocks();

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

  Site& site() { return *site_; }
  const Site& site() const { return *site_; }
  const ReportLines& reports() const { return lines_; }
  const Statistics& statistics() const { return statistics_; }
  SiteNumbers numbers() const;

 private:
  Service() = default;
  Site::Parts parts();
  void handled(const std::string& csci_id, const Event& event, const std::vector<Action>& actions, Time at);
  Result<std::vector<std::string>> take_over();

  Prober prober_;  // the loop's, which waits in it without the turn
  std::vector<Prober::Question> questions_;
  ReportLines lines_;
  SampleMakers samples_;
  Statistics statistics_;
  Recorder recorder_;
  std::unique_ptr<Site> site_;
  bool stopping_ = false;
};

}  // namespace margay::control
