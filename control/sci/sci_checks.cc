// SPDX-License-Identifier: Apache-2.0
// Sci's checks and scrapes: when they begin, what they ask, and what becomes of their answers.
#include <algorithm>
#include <utility>

#include "control/sci/performance.h"
#include "control/sci/sci.h"

namespace margay::control {
namespace {

Work work_of(CheckKind k) { return static_cast<Work>(k); }
static_assert(static_cast<Work>(CheckKind::kPerformance) == Work::kPerformance);

// {address} and {port} filled in; an IPv6 address in its brackets.
std::string fill(std::string url, const InstanceSpec& instance) {
  const bool v6 = instance.address.find(':') != std::string::npos;
  const std::pair<std::string, std::string> fields[] = {
      {"{address}", v6 ? "[" + instance.address + "]" : instance.address}, {"{port}", std::to_string(instance.port)}};
  for (const auto& [field, text] : fields) {
    for (size_t at = url.find(field); at != std::string::npos; at = url.find(field, at + text.size())) {
      url.replace(at, field.size(), text);
    }
  }
  return url;
}

}  // namespace

void Sci::plan(const Instance& instance) {
  const HealthConfig& health = config_.health;
  const auto set = [&](Work work, bool wanted, WorkPlan plan, bool confirm) {
    plan.confirm = std::min(plan.confirm, plan.interval);
    if (wanted) {
      plan_.set({instance.key, work}, plan, confirm, now_.monotonic);
    } else {
      plan_.remove({instance.key, work});
    }
  };
  const auto probe = [&](CheckKind kind, const std::optional<ProbeConfig>& config) {
    const WorkPlan plan = config ? WorkPlan{config->interval, health.confirm_interval, config->timeout} : WorkPlan{};
    set(work_of(kind), config.has_value(), plan, instance.monitor.confirming(kind));
  };
  probe(CheckKind::kLiveness, health.liveness);
  probe(CheckKind::kReadiness, health.readiness);
  // To look again before there is a new measurement would count one measurement twice.
  const Nanoseconds again = std::max(health.confirm_interval, config_.metrics.interval);
  const auto& performance = health.performance;
  set(Work::kPerformance, performance.has_value(), {performance ? performance->interval : 0, again, 0},
      instance.monitor.confirming(CheckKind::kPerformance));
  const Nanoseconds interval = config_.metrics.interval;
  set(Work::kScrape, !config_.metrics.prometheus.empty(), {interval, interval, interval}, false);
}

void Sci::finish_overdue() {
  for (const CheckPlan::Due& late : plan_.overdue(now_.monotonic)) {
    Instance& instance = instances_.at(ids_.at(late.key.instance));
    if (late.key.work == Work::kScrape) {
      metrics_.on_failed_scrape(late.key.instance);
      plan_.finish(late.key, false, now_.monotonic);
    } else {
      judge(instance, static_cast<CheckKind>(late.key.work), Outcome::kError, "the prober missed its own deadline");
    }
  }
}

void Sci::begin_work() {
  for (const CheckPlan::Due& due : plan_.take(now_.monotonic, kWorkMax)) {
    Instance& instance = instances_.at(ids_.at(due.key.instance));
    const InstanceSpec& config = instance.config;
    const auto probe = [&](const ProbeConfig& check) {
      actions_.emplace_back(ProbeRequest{config.id, static_cast<CheckKind>(due.key.work), due.serial,
                                         fill(check.http, config), config.address, config.port, due.deadline});
    };
    switch (due.key.work) {
      case Work::kLiveness:
        probe(*config_.health.liveness);
        break;
      case Work::kReadiness:
        probe(*config_.health.readiness);
        break;
      case Work::kPerformance:
        check_performance(due.key, instance);
        break;
      case Work::kScrape:
        actions_.emplace_back(
            ScrapeRequest{config.id, due.serial, fill(config_.metrics.prometheus, config), due.deadline});
        break;
    }
  }
}

void Sci::on(const CheckResult& e) {
  Instance* instance = find(e.id);
  if (instance == nullptr || !plan_.in_flight({instance->key, work_of(e.kind)}, e.serial)) return;
  if (e.outcome == Outcome::kPass) instance->probe_latency = e.latency;
  if (e.outcome == Outcome::kFail && e.silent && doubts_silence(*instance)) {
    return judge(*instance, e.kind, Outcome::kError,
                 "many fell silent together, the prober may be at fault: " + e.detail);
  }
  if (e.outcome != Outcome::kFail || !e.silent) instance->silent_since.reset();
  judge(*instance, e.kind, e.outcome, e.detail);
}

// Together: within the time in which each of them is probed once.
bool Sci::doubts_silence(Instance& instance) {
  const Nanoseconds now = now_.monotonic;
  if (now < doubt_until_ || instance.silent_since) return now < doubt_until_;
  instance.silent_since = now;
  Nanoseconds together = 0;
  for (const auto& check : {config_.health.liveness, config_.health.readiness}) {
    if (check) together = std::max(together, check->interval + check->timeout);
  }
  const auto silent = static_cast<uint32_t>(std::count_if(instances_.begin(), instances_.end(), [&](const auto& i) {
    return i.second.silent_since && now - *i.second.silent_since <= together;
  }));
  const auto all = static_cast<uint32_t>(instances_.size());
  if (silent >= kDoubtMin && silent >= kDoubtShare.floor_of(all + 1)) doubt_until_ = now + kDoubt;
  return now < doubt_until_;
}

void Sci::on(const ScrapeResult& e) {
  Instance* instance = find(e.id);
  const CheckPlan::Key key{instance != nullptr ? instance->key : 0, Work::kScrape};
  if (instance == nullptr || !plan_.in_flight(key, e.serial)) return;
  if (e.ok) {
    metrics_.on_scrape(key.instance, e.samples, now_.monotonic);
    take_load(*instance);
  } else {
    metrics_.on_failed_scrape(key.instance);
  }
  plan_.finish(key, false, now_.monotonic);
}

// What an instance has least of limits it (SCI-77).
void Sci::take_load(Instance& instance) {
  std::optional<double> load;
  for (const Metric m : {Metric::kCpu, Metric::kMemory, Metric::kGpu, Metric::kGpuMemory}) {
    const auto share = metrics_.read(instance.key, m, now_.monotonic);
    if (share) load = std::max(load.value_or(0), std::min(share->value, 1.0));
  }
  if (!load) return;
  const Nanoseconds lifetime = 3 * config_.metrics.interval;
  instance.load = {*load, instance.ledger.active, now_.monotonic + lifetime, lifetime};
  if (config_.tells_load && !loads_due_) loads_due_ = std::max(now_.monotonic, loads_told_ + kLoadBatch);
}

// Those of many instances meet in one change of the table.
void Sci::tell_loads() {
  if (!loads_due_ || now_.monotonic < *loads_due_) return;
  loads_due_.reset();
  loads_told_ = now_.monotonic;
  for (auto& [id, instance] : instances_) publish(instance);
}

void Sci::check_performance(CheckPlan::Key key, Instance& instance) {
  const auto verdict = judge_performance(*config_.health.performance, measure(instance));
  if (verdict) {
    judge(instance, CheckKind::kPerformance, verdict->outcome, verdict->detail);
  } else {
    plan_.finish(key, instance.monitor.confirming(CheckKind::kPerformance), now_.monotonic);
  }
}

// Response times: those seen in the path since the last look, for they are what clients get; else what the instance
// tells of itself; else how long the last probe took, so that an instance that gets no requests can show it is fast.
Measurements Sci::measure(Instance& instance) {
  const Nanoseconds now = now_.monotonic;
  Measurements measured;
  measured.response_time = instance.responses.look();
  if (!measured.response_time) {
    const auto told = metrics_.read(instance.key, Metric::kResponseTime, now);
    measured.response_time = told ? std::optional(nanoseconds(told->value)) : instance.probe_latency;
  }

  const auto requests = metrics_.read(instance.key, Metric::kRequests, now);
  const auto errors = metrics_.read(instance.key, Metric::kErrors, now);
  if (requests && errors) {
    measured.error_rate = errors->value <= 0 ? 0 : std::min(errors->value / std::max(requests->value, 1e-9), 1.0);
  }
  measured.cpu_too_high = metrics_.cpu_too_high(instance.key, now);
  return measured;
}

void Sci::judge(Instance& instance, CheckKind kind, Outcome outcome, std::string detail) {
  const bool probe_failed = kind != CheckKind::kPerformance && outcome != Outcome::kPass;
  if (probe_failed) instance.probe_latency.reset();
  const CheckPlan::Key key{instance.key, work_of(kind)};
  // The way of probes leads through the data plane: what began without it fails, and tells nothing of the instance
  // (D-23).
  const bool no_way = lost_ || plan_.started(key) < no_way_until_;
  std::optional<HealthChange> change;
  if (!(probe_failed && no_way)) {
    change = instance.monitor.on_check(kind, outcome, std::move(detail), now_.monotonic);
  }
  plan_.finish(key, instance.monitor.confirming(kind), now_.monotonic);
  if (change) changed(instance, std::move(*change));
}

void Sci::changed(Instance& instance, HealthChange change) {
  const Nanoseconds now = now_.monotonic;
  reporting_.raise(Trigger::kHealth, now);
  if (change.recovery) reporting_.raise(Trigger::kRecovery, now);
  if (serves(change.from) && !serves(summary().sci_health())) reporting_.raise(Trigger::kAllDown, now);
  computing_time_.forget();
  hasten(instance);
  publish(instance);
  actions_.emplace_back(Transition{instance.config.id, std::move(change)});
}

void Sci::hasten(const Instance& instance) {
  for (const CheckKind kind : {CheckKind::kLiveness, CheckKind::kReadiness, CheckKind::kPerformance}) {
    if (instance.monitor.confirming(kind)) plan_.hasten({instance.key, work_of(kind)}, now_.monotonic);
  }
}

}  // namespace margay::control
