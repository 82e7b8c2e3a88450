// SPDX-License-Identifier: Apache-2.0
#pragma once

// All SCIs of the site, and what joins them to the world: counters and health of the data plane in, snapshots out;
// questions to instances out, answers in; reports out. What happens is told in the log with its cause.
//
// The SCIs begin with the first data plane that connects, from what it runs, or after kStartPatience without one. Where
// one that runs a snapshot comes later and an SCI knows nothing yet, that SCI begins again from it: the data plane must
// not be told UNKNOWN of instances that serve.
//
// One thread at a time: the control loop's, or whoever holds its turn. Nothing here waits.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/result.h"
#include "control/collection/http/exposition.h"
#include "control/collection/http/prober.h"
#include "control/epoch_store.h"
#include "control/sci/sci.h"
#include "control/site_reader.h"
#include "control/table/data_plane_link.h"
#include "control/table/table_plan.h"

namespace margay::control {

// "liveness failed 3 times"
std::string words_of(const HealthCause& cause);

class Site {
 public:
  static constexpr Nanoseconds kStartPatience = kSecond;

  // What the site needs of others. Each may be left out.
  struct Parts {
    std::function<void(const Prober::Question&)> ask;
    std::function<void(const Report&)> report;
    // What a scrape's series mean for an instance of an SCI.
    std::function<std::vector<Sample>(const SciSpec&, const std::string& id, const std::vector<Series>&)> samples;
    // For a recording: how an SCI began, what it was told and what it wanted.
    std::function<void(const SciSpec&, uint64_t seed, uint64_t epoch, const std::vector<Sci::Known>&, Time)> begun;
    std::function<void(const std::string& csci_id, const Event&, const std::vector<Action>&, Time)> handled;
  };

  // `epoll`: told of the data plane's sockets, -1: nobody. The error names what is too much.
  static Result<std::unique_ptr<Site>> make(SiteSpec spec, Parts parts, uint64_t seed, int epoll, Nanoseconds now);

  void turn(Time now);
  void answer(const Prober::Answer& answer, Time now);
  Nanoseconds next_due() const;

  // Takes over a site file that was read again: whole or, with an error, not at all. Says what changed.
  Result<std::vector<std::string>> reload(SiteSpec next, Time now);
  // The last reports go out. Nothing is to come after it.
  void stop(Time now);
  // To the core of one SCI. REQUIRES: there is one
  void tell(const std::string& csci_id, const Event& event, Time now);

  // For whoever looks.
  const SiteSpec& spec() const { return spec_; }
  const std::map<std::string, Sci>& scis() const { return scis_; }
  const DataPlaneLink& link() const { return *link_; }
  const TablePlan& plan() const { return plan_; }
  size_t asking() const { return asked_.size(); }

 private:
  struct Asked {
    std::string csci_id, id;
    bool scrape = false;
    CheckKind kind{};
    uint64_t serial = 0;
  };

  Site(SiteSpec spec, Parts parts, uint64_t seed)
      : spec_(std::move(spec)), parts_(std::move(parts)), seed_(seed), epochs_(spec_.state_directory) {}
  void begin(const std::vector<size_t>& which, Time now);
  void begin_all(Time now);
  void begin_ignorant_again(Time now);
  void follow(const DataPlaneLink::Turn& turn, Time now);
  void perform(const std::string& csci_id, const ProbeRequest& request);
  void perform(const std::string& csci_id, const ScrapeRequest& request);
  void perform(const std::string& csci_id, const TableChanged& change);
  void perform(const std::string& csci_id, const Transition& transition);
  void perform(const std::string& csci_id, const ReportReady& ready);
  void ask(Asked asked, Prober::Question question, Nanoseconds deadline);
  void plan_next(const std::string& csci_id);
  void drop(const std::string& csci_id, Time now);
  const SciSpec* spec_of(const std::string& csci_id) const;

  SiteSpec spec_;
  Parts parts_;
  uint64_t seed_;
  EpochStore epochs_;
  TablePlan plan_;
  std::unique_ptr<DataPlaneLink> link_;
  std::map<std::string, Sci> scis_;  // by CSCI-ID
  std::map<std::string, size_t> spec_index_;
  std::set<std::pair<Nanoseconds, std::string>> due_;
  std::map<std::string, Nanoseconds> due_of_;
  std::map<uint64_t, Asked> asked_;  // by ticket
  uint64_t tickets_ = 0;
  Nanoseconds begin_by_ = 0;
  bool begun_ = false, lost_ = false;
  std::string lost_why_;
  Nanoseconds now_ = 0;
};

}  // namespace margay::control
