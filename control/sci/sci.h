// SPDX-License-Identifier: Apache-2.0
#pragma once

// The control plane of one Service Contact Instance: wires Metric Collector, Metric Aggregator, Health Monitor and
// Reporting Interface (SCI-14). Pure: events and the time go in, actions come out; the same stream and seed give the
// same actions. One thread. Time must not go back.
//
// Nothing is reported before the first counters of the data plane, or the news that there are none, or a second of
// neither: a control plane that takes over must not say GAS 0 of a site that runs.

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "control/sci/check_plan.h"
#include "control/sci/events.h"
#include "control/sci/performance.h"
#include "control/sci/reporting.h"
#include "control/sci/response_window.h"

namespace margay::control {

class Sci {
 public:
  struct Known {  // out of the data plane's running snapshot
    std::string id;
    KnownHealth health;
    std::optional<Nanoseconds> drain_deadline = {};  // of one that the operator drains
  };

  static constexpr size_t kWorkMax = 64;  // pieces of work begun by one event
  static constexpr Nanoseconds kStartPatience = kSecond;
  static constexpr Nanoseconds kLoadBatch = kSecond;  // the data plane is told what was scraped at most so often
  // D-29, D-51: when so many instances fall silent together, and at least this share of all, our own prober is
  // suspected first: for so long their time-outs are its errors, which make UNKNOWN (existing sessions stay) and not
  // UNHEALTHY.
  static constexpr size_t kDoubtMin = 3;
  static constexpr Share kDoubtShare{0.5};
  static constexpr Nanoseconds kDoubt = 30 * kSecond;

  Sci(const SciSpec& config, uint64_t seed, uint64_t epoch, const std::vector<Known>& known, Nanoseconds now);

  std::vector<Action> handle(const Event& event, Time now);
  // When a Tick is wanted, unless another event comes first.
  Nanoseconds next_due() const;

  // As of the last event.
  SciState state() const;
  const HealthMonitor* monitor(const std::string& id) const;
  // The newest measurement; absent: there is none that is not stale.
  std::optional<MetricCollector::Reading> reading(const std::string& id, Metric metric, Nanoseconds now) const;
  // Times to first response seen in the path, in the window. nullptr: no such instance
  const Histogram* responses(const std::string& id) const;

 private:
  struct Instance {
    Instance(uint32_t k, const InstanceSpec& c, HealthMonitor m) : key(k), config(c), monitor(std::move(m)) {}

    uint32_t key;  // never used again
    InstanceSpec config;
    HealthMonitor monitor;
    std::optional<Nanoseconds> drain_deadline;  // of one that the operator drains, here
    LedgerCounts ledger;
    ResponseWindow responses;
    std::optional<Nanoseconds> probe_latency;  // of the last probe, if it passed
    std::optional<Nanoseconds> silent_since;   // its probes time out
    std::optional<TableChanged::Load> load;    // as it was last scraped
    std::optional<TableChanged::Entry> published;
  };
  using Instances = std::map<std::string, Instance>;

  void on(const CheckResult& e);
  void on(const ScrapeResult& e);
  void on(const LedgerSample& e);
  void on(const DataPlaneLost& e);
  void on(const DataPlaneBack& e);
  void on(const OperatorDrain& e);
  void on(const SecurityNotice& e);
  void on(const ConfigChanged& e);
  void on(const Pull& e);
  void on(const Stop& e);
  void on(const Tick& e);

  void add(const InstanceSpec& config, const Known* known);
  void remove(Instances::iterator it);
  void plan(const Instance& instance);
  void finish_overdue();
  void begin_work();
  void take_load(Instance& instance);
  void tell_loads();
  void check_performance(CheckPlan::Key key, Instance& instance);
  bool doubts_silence(Instance& instance);
  void judge(Instance& instance, CheckKind kind, Outcome outcome, std::string detail);
  void changed(Instance& instance, HealthChange change);
  void hasten(const Instance& instance);
  Measurements measure(Instance& instance);
  std::optional<Nanoseconds> drain_deadline_of(const Instance& instance) const;
  Admin admin_of(const Instance& instance) const;
  InstanceInput input_of(const Instance& instance) const;
  std::vector<InstanceInput> inputs() const;
  HealthSummary summary() const;
  SciState assess(const std::vector<InstanceInput>& inputs, ComputingTimeEstimator& estimator) const;
  SciState state_by(ComputingTimeEstimator& estimator) const;
  void observe();
  void publish(Instance& instance);
  void flush_table();
  void report();
  Instance* find(const std::string& id);

  SciSpec config_;
  CheckPlan plan_;
  MetricCollector metrics_;
  ComputingTimeEstimator computing_time_;
  ReportingInterface reporting_;
  Instances instances_;
  std::map<uint32_t, std::string> ids_;  // by key
  uint32_t keys_ = 0;
  std::optional<Nanoseconds> drain_deadline_;  // of the whole SCI, where the operator drains it
  bool lost_ = false, back_ = false, started_ = false;
  Nanoseconds no_way_until_ = 0;  // no data plane was there to let probes through, or none that ran
  Nanoseconds start_by_;
  Nanoseconds doubt_until_ = 0;
  std::optional<Nanoseconds> ledger_at_;
  std::optional<Nanoseconds> loads_due_;  // of loads that were scraped and not told
  Nanoseconds loads_told_ = 0;

  // Of the event being handled.
  Time now_;
  std::map<std::string, TableChanged::Entry> changed_;
  std::vector<std::string> removed_;
  std::vector<Action> actions_;
};

}  // namespace margay::control
