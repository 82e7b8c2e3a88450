// SPDX-License-Identifier: Apache-2.0
#include "control/statistics.h"

#include <algorithm>
#include <utility>

namespace margay::control {

void Statistics::handled(const std::string& csci_id, const Event& event, const std::vector<Action>& actions,
                         Nanoseconds next_due, Nanoseconds now) {
  SciStatistics& sci = scis_[csci_id];
  if (std::holds_alternative<Tick>(event) && sci.next_due <= now) {
    slip_.add(now - sci.next_due);
    slip_max_ = std::max(slip_max_, now - sci.next_due);
  }
  sci.next_due = next_due;
  if (const auto* check = std::get_if<CheckResult>(&event)) count(sci, *check, now);
  if (const auto* scrape = std::get_if<ScrapeResult>(&event)) {
    InstanceStatistics& instance = sci.instances[scrape->id];
    ++(scrape->ok ? instance.scrapes_passed : instance.scrapes_failed);
  }
  for (const Action& action : actions) count(sci, action, now);
}

void Statistics::count(SciStatistics& sci, const CheckResult& result, Nanoseconds now) {
  const auto kind = static_cast<size_t>(result.kind);
  InstanceStatistics& instance = sci.instances[result.id];
  if (kind >= instance.checks.size()) return;
  CheckCounts& check = instance.checks[kind] ? *instance.checks[kind] : instance.checks[kind].emplace();
  ++check.outcomes[static_cast<size_t>(result.outcome)];
  if (result.outcome == Outcome::kPass) check.latency.add(result.latency);
  check.last = result.outcome;
  check.last_latency = result.latency;
  check.last_at = now;
  check.last_detail = result.detail;
}

void Statistics::count(SciStatistics& sci, const Action& action, Nanoseconds now) {
  if (const auto* transition = std::get_if<Transition>(&action)) {
    InstanceStatistics& instance = sci.instances[transition->id];
    ++instance.entered[static_cast<size_t>(transition->change.to)];
    instance.last_change = transition->change;
  } else if (const auto* ready = std::get_if<ReportReady>(&action)) {
    ++sci.reports[static_cast<size_t>(ready->report.trigger)];
    sci.last_report = ready->report;
    sci.last_report_at = now;
  }
}

const InstanceStatistics* Statistics::find(const std::string& csci_id, const std::string& si_id) const {
  const auto sci = scis_.find(csci_id);
  if (sci == scis_.end()) return nullptr;
  const auto instance = sci->second.instances.find(si_id);
  return instance == sci->second.instances.end() ? nullptr : &instance->second;
}

void Statistics::keep(const std::vector<SciSpec>& scis) {
  std::map<std::string, SciStatistics> kept;
  for (const SciSpec& spec : scis) {
    const auto before = scis_.find(spec.csci_id);
    if (before == scis_.end()) continue;
    SciStatistics& sci = kept[spec.csci_id] = before->second;
    std::erase_if(sci.instances, [&spec](const auto& i) {
      return std::none_of(spec.instances.begin(), spec.instances.end(),
                          [&i](const InstanceSpec& s) { return s.id == i.first; });
    });
  }
  scis_ = std::move(kept);
}

}  // namespace margay::control
