// SPDX-License-Identifier: Apache-2.0
#include "control/sci/sci.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace margay::control {
namespace {

std::string words(std::optional<uint32_t> level) { return level ? std::to_string(*level) : "none"; }

// What answers there is another instance, whatever its name.
bool moved(const InstanceSpec& from, const InstanceSpec& to) {
  return from.address != to.address || from.port != to.port;
}

std::optional<CpuRule> cpu_rule(const SciSpec& config) {
  return config.health.performance ? config.health.performance->cpu : std::nullopt;
}

}  // namespace

Sci::Sci(const SciSpec& config, uint64_t seed, uint64_t epoch, const std::vector<Known>& known, Nanoseconds now)
    : config_(config),
      plan_(seed),
      metrics_(config.metrics, cpu_rule(config)),
      reporting_(config, epoch, now),
      start_by_(now + kStartPatience),
      now_{.monotonic = now, .unix_ms = 0} {
  std::map<std::string, const Known*> known_by_id;
  for (const Known& k : known) known_by_id[k.id] = &k;
  // The table tells instances only: all that the site has now drain, so the SCI does.
  const bool all_drain = known.size() == config.instances.size() &&
                         std::all_of(known.begin(), known.end(), [](const Known& k) { return k.drain_deadline; });
  if (all_drain && !known.empty()) drain_deadline_ = known.front().drain_deadline;
  for (const InstanceSpec& instance : config.instances) {
    const auto found = known_by_id.find(instance.id);
    add(instance, found == known_by_id.end() ? nullptr : found->second);
  }
}

void Sci::add(const InstanceSpec& config, const Known* known) {
  const Nanoseconds now = now_.monotonic;
  HealthMonitor monitor =
      known != nullptr ? HealthMonitor(config_.health, now, known->health) : HealthMonitor(config_.health, now);
  const uint32_t key = keys_++;
  Instance& instance = instances_.try_emplace(config.id, key, config, monitor).first->second;
  if (known != nullptr && !drain_deadline_) instance.drain_deadline = known->drain_deadline;
  ids_[key] = config.id;
  plan(instance);
  publish(instance);
}

std::vector<Action> Sci::handle(const Event& event, Time now) {
  now_ = now;
  std::visit([this](const auto& e) { on(e); }, event);
  finish_overdue();
  begin_work();
  tell_loads();
  flush_table();
  report();
  return std::exchange(actions_, {});
}

Nanoseconds Sci::next_due() const {
  const Nanoseconds due = std::min(plan_.next_due(), started_ ? reporting_.next_due() : start_by_);
  return loads_due_ ? std::min(due, *loads_due_) : due;
}

void Sci::on(const LedgerSample& e) {
  if (lost_ && !back_) return;
  if (lost_ || e.stood_still) no_way_until_ = now_.monotonic;
  if (lost_) {
    lost_ = back_ = false;
    reporting_.raise(Trigger::kRecovery, now_.monotonic);
  }
  for (const LedgerSample::Entry& entry : e.instances) {
    Instance* instance = find(entry.id);
    if (instance == nullptr) continue;
    const Admin before = admin_of(*instance);
    if (entry.responses) instance->responses.take(*entry.responses, config_.computing_time.window, now_.monotonic);
    instance->ledger = entry.counts;
    if (admin_of(*instance) != before) {
      reporting_.raise(Trigger::kAdmin, now_.monotonic);
      computing_time_.forget();
    }
    publish(*instance);
  }
  ledger_at_ = now_.monotonic;
  observe();
}

void Sci::on(const DataPlaneLost&) {
  back_ = false;
  if (!std::exchange(lost_, true)) reporting_.raise(Trigger::kAllDown, now_.monotonic);
}

void Sci::on(const DataPlaneBack&) {
  back_ = true;
  for (auto& [id, instance] : instances_) {
    instance.published.reset();
    publish(instance);
  }
}

void Sci::on(const OperatorDrain& e) {
  Instance* one = e.id ? find(*e.id) : nullptr;
  if (e.id && one == nullptr) return;
  if (one != nullptr && !e.on && drain_deadline_) {  // this one is to serve: the drain of all is the others' now
    for (auto& [id, instance] : instances_) instance.drain_deadline = drain_deadline_of(instance);
    drain_deadline_.reset();
  }
  std::optional<Nanoseconds>& deadline = one != nullptr ? one->drain_deadline : drain_deadline_;
  if (deadline.has_value() == e.on) return;
  deadline = e.on ? std::optional(now_.monotonic + config_.drain_deadline) : std::nullopt;
  computing_time_.forget();
  reporting_.raise(Trigger::kAdmin, now_.monotonic);
  for (auto& [id, instance] : instances_) publish(instance);
}

void Sci::on(const SecurityNotice& e) { reporting_.raise(SecurityEvent{e.what, now_.unix_ms}, now_.monotonic); }
void Sci::on(const Pull&) { reporting_.raise(Trigger::kPulled, now_.monotonic); }
void Sci::on(const Stop&) { reporting_.raise(Trigger::kStop, now_.monotonic); }
void Sci::on(const Tick&) {}

void Sci::on(const ConfigChanged& e) {
  const Nanoseconds now = now_.monotonic;
  const bool served = serves(summary().sci_health());
  if (e.config.security_level != config_.security_level) {
    on(SecurityNotice{"security level changed from " + words(config_.security_level) + " to " +
                      words(e.config.security_level)});
  }
  config_ = e.config;
  metrics_.configure(config_.metrics, cpu_rule(config_));
  reporting_.configure(config_, now);

  std::map<std::string, const InstanceSpec*> wanted;
  for (const InstanceSpec& instance : config_.instances) wanted[instance.id] = &instance;
  for (auto it = instances_.begin(); it != instances_.end();) {
    const auto next = std::next(it);
    const auto found = wanted.find(it->first);
    if (found == wanted.end() || moved(it->second.config, *found->second)) remove(it);
    it = next;
  }
  for (const auto& [id, config] : wanted) {
    Instance* instance = find(id);
    if (instance == nullptr) {
      add(*config, nullptr);
      reporting_.raise(Trigger::kHealth, now);
      continue;
    }
    instance->config = *config;
    if (auto change = instance->monitor.configure(config_.health, now)) changed(*instance, std::move(*change));
    plan(*instance);
    hasten(*instance);
    publish(*instance);
  }
  if (served && !serves(summary().sci_health())) reporting_.raise(Trigger::kAllDown, now);
  observe();
}

void Sci::remove(Instances::iterator it) {
  const uint32_t key = it->second.key;
  for (const Work work : {Work::kLiveness, Work::kReadiness, Work::kPerformance, Work::kScrape}) {
    plan_.remove({key, work});
  }
  metrics_.remove(key);
  ids_.erase(key);
  changed_.erase(it->first);
  removed_.push_back(it->first);
  instances_.erase(it);
  computing_time_.forget();
  reporting_.raise(Trigger::kHealth, now_.monotonic);
}

std::optional<Nanoseconds> Sci::drain_deadline_of(const Instance& instance) const {
  if (!drain_deadline_ || !instance.drain_deadline) return drain_deadline_ ? drain_deadline_ : instance.drain_deadline;
  return std::min(drain_deadline_, instance.drain_deadline);
}

// The data plane's operator stands over ours.
Admin Sci::admin_of(const Instance& instance) const {
  return instance.ledger.admin.value_or(drain_deadline_of(instance) ? Admin::kDraining : Admin::kEnabled);
}

InstanceInput Sci::input_of(const Instance& instance) const {
  const auto response = metrics_.read(instance.key, Metric::kResponseTime, now_.monotonic);
  const auto tokens = metrics_.read(instance.key, Metric::kInputTokens, now_.monotonic);
  return {.health = instance.monitor.state(),
          .admin = admin_of(instance),
          .max_sessions = instance.config.max_sessions,
          .operators_max = instance.ledger.max_sessions,
          .active = instance.ledger.active,
          .provisional = instance.ledger.provisional,
          .weight = instance.ledger.weight.value_or(instance.config.weight),
          .barred = instance.config.barred,
          .responses = &instance.responses.recent(),
          .response_time = response ? std::optional(nanoseconds(response->value)) : std::nullopt,
          .input_tokens = tokens ? std::optional(static_cast<uint32_t>(std::min(tokens->value, 4e9))) : std::nullopt};
}

std::vector<InstanceInput> Sci::inputs() const {
  std::vector<InstanceInput> list;
  list.reserve(instances_.size());
  for (const auto& [id, instance] : instances_) list.push_back(input_of(instance));
  return list;
}

HealthSummary Sci::summary() const {
  HealthSummary counts;
  for (const auto& [id, instance] : instances_) counts.count(instance.monitor.state());
  return counts;
}

// All of the state but the instances' details.
SciState Sci::assess(const std::vector<InstanceInput>& inputs, ComputingTimeEstimator& estimator) const {
  SciState state;
  state.health = summary();
  state.admin = drain_deadline_ ? Admin::kDraining : Admin::kEnabled;
  state.data_plane_lost = lost_;
  state.price = config_.price;
  state.reputation = config_.reputation;
  state.security_level = config_.security_level;
  state.ledger_at = ledger_at_;
  // Without a ledger nothing is known but that nobody serves, where nobody does.
  const bool nobody = lost_ || std::none_of(inputs.begin(), inputs.end(), contributes);
  if (nobody) {
    state.gas = Gas{};
    return state;
  }
  if (ledger_at_) state.gas = aggregate_gas(inputs, config_.degradation_factor, config_.safety_margin);
  state.computing_time = estimator.estimate(inputs, config_.degradation_factor, config_.computing_time, now_.monotonic);
  return state;
}

// Whoever looks does not change what was usual.
SciState Sci::state() const {
  ComputingTimeEstimator copy = computing_time_;
  return state_by(copy);
}

SciState Sci::state_by(ComputingTimeEstimator& estimator) const {
  const std::vector<InstanceInput> list = inputs();
  SciState state = assess(list, estimator);
  auto input = list.begin();
  for (const auto& [id, instance] : instances_) {
    const uint32_t limit = limit_of(*input, config_.degradation_factor);
    state.instances.push_back({id, input->health, input->admin, limit, input->active});
    ++input;
  }
  return state;
}

void Sci::observe() {
  if (started_) reporting_.observe(assess(inputs(), computing_time_), now_.monotonic);
}

void Sci::publish(Instance& instance) {
  const HealthState health = instance.monitor.state();
  const auto deadline = drain_deadline_of(instance);
  TableChanged::Entry entry{.id = instance.config.id,
                            .health = health,
                            .health_since = instance.monitor.since(),
                            .serves_since = serves(health) ? instance.monitor.serves_since() : 0,
                            .admin = deadline ? Admin::kDraining : Admin::kEnabled,
                            .drain_deadline = deadline.value_or(0),
                            .limit = margay::limit_of(health, instance.config.max_sessions, config_.degradation_factor),
                            .weight = instance.config.weight,
                            .load = config_.tells_load ? instance.load : std::nullopt};
  if (instance.published == entry) return;
  instance.published = entry;
  changed_[entry.id] = std::move(entry);
}

void Sci::flush_table() {
  if (changed_.empty() && removed_.empty()) return;
  TableChanged table{.changed = {}, .removed = std::exchange(removed_, {})};
  for (auto& [id, entry] : changed_) table.changed.push_back(std::move(entry));
  changed_.clear();
  actions_.emplace_back(std::move(table));
}

void Sci::report() {
  const Nanoseconds now = now_.monotonic;
  if (!started_ && (ledger_at_ || lost_ || now >= start_by_)) {
    started_ = true;
    reporting_.raise(Trigger::kStart, now);
  }
  if (started_ && reporting_.due(now))
    actions_.emplace_back(ReportReady{reporting_.make(state_by(computing_time_), now, now_.unix_ms)});
}

Sci::Instance* Sci::find(const std::string& id) {
  const auto found = instances_.find(id);
  return found == instances_.end() ? nullptr : &found->second;
}

const HealthMonitor* Sci::monitor(const std::string& id) const {
  const auto found = instances_.find(id);
  return found == instances_.end() ? nullptr : &found->second.monitor;
}

std::optional<MetricCollector::Reading> Sci::reading(const std::string& id, Metric metric, Nanoseconds now) const {
  const auto found = instances_.find(id);
  return found == instances_.end() ? std::nullopt : metrics_.read(found->second.key, metric, now);
}

const Histogram* Sci::responses(const std::string& id) const {
  const auto found = instances_.find(id);
  return found == instances_.end() ? nullptr : &found->second.responses.recent();
}

}  // namespace margay::control
