// SPDX-License-Identifier: Apache-2.0
#include "control/c_sma/anomaly_watch.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

namespace margay::c_sma {
namespace {

// D-48: a share of the older value, and the floor.
struct Rule {
  Share change;
  Nanoseconds within;
  uint32_t floor;
  bool broken(uint32_t older, uint32_t value) const {
    const uint32_t difference = older > value ? older - value : value - older;
    return difference >= floor && difference > 0 && change.exceeded_by(difference, older);
  }
};

Rule rule_of(const GasAnomaly& a) { return {a.change, a.within, a.floor}; }
Rule rule_of(const ComputingTimeAnomaly& a) {
  return {a.change, a.within, static_cast<uint32_t>(a.floor / kMillisecond)};
}

// HEALTHY is the best.
bool better(HealthState a, HealthState b) { return static_cast<int>(a) < static_cast<int>(b); }

uint64_t mix(uint64_t a, uint64_t b) { return (a ^ b) * 0x9e3779b97f4a7c15 ^ (a >> 29); }

std::string change_words(std::string_view what, uint32_t from, uint32_t to, std::string_view unit) {
  return std::string(what) + " from " + std::to_string(from) + " to " + std::to_string(to) + std::string(unit);
}

}  // namespace

void AnomalyWatch::Window::keep(Nanoseconds within, Nanoseconds now) {
  std::erase_if(samples, [&](const Sample& s) { return now - s.at > within; });
}

Judgement AnomalyWatch::judge(const control::Report& report, const ValidationConfig& config,
                              std::optional<uint32_t> ceiling, Nanoseconds now) {
  const auto gas = report.state.gas ? std::optional(report.state.gas->value) : std::nullopt;
  Round round{.report = report,
              .config = config,
              .ceiling = ceiling,
              .now = now,
              .values = {gas, report.state.computing_time.value, report.state.health.sci_health()}};
  gas_.keep(config.gas_anomaly.within, now);
  computing_time_.keep(config.computing_time_anomaly.within, now);
  judge_health(round);
  round.condition_changed = take_condition(report);
  judge_gas(round);
  judge_computing_time(round);
  if (gas.value_or(0) > 0 && round.values.computing_time == 0u)
    round.judgement.anomalies.add(Anomaly::kComputingTimeZero);
  if (gas.value_or(0) > 0 && !serves(round.values.health)) round.judgement.anomalies.add(Anomaly::kGasWithoutService);

  Judgement& judgement = round.judgement;
  judgement.verdict = round.held                    ? Verdict::kQuarantined
                      : judgement.anomalies.empty() ? Verdict::kAccepted
                                                    : Verdict::kFlagged;
  judgement.confirms = round.confirms && !round.held;
  believe(round);
  return std::move(judgement);
}

// Whether the health summary, the administrative condition or an instance is another than was last told.
bool AnomalyWatch::take_condition(const control::Report& report) {
  std::vector<Fingerprint> told;
  for (const control::InstanceDetail& i : report.state.instances) {
    const auto state = static_cast<uint64_t>(i.health) << 40 | static_cast<uint64_t>(i.admin) << 32 | i.limit;
    told.push_back({std::hash<std::string>{}(i.id), mix(state, 0x51ed270b)});
  }
  const auto by_id = [](const Fingerprint& a, const Fingerprint& b) { return a.id < b.id; };
  std::sort(told.begin(), told.end(), by_id);
  if (!report.full) {  // the others are as they were
    for (const Fingerprint& old : instances_) {
      if (!std::binary_search(told.begin(), told.end(), old, by_id)) told.push_back(old);
    }
    std::sort(told.begin(), told.end(), by_id);
  }
  const bool details_changed = !told.empty() && told != instances_;
  const bool changed =
      summary_ && (*summary_ != report.state.health || admin_ != report.state.admin || details_changed);
  summary_ = report.state.health;
  admin_ = report.state.admin;
  if (!told.empty()) instances_ = std::move(told);
  return changed;
}

void AnomalyWatch::hold(Round& round, bool confirmed) const {
  if (confirmed) {
    round.confirms = true;
  } else if (round.config.anomalous == Anomalous::kQuarantine) {
    round.held = true;
  }
}

// More than so many transitions; one back to what is worse is believed.
void AnomalyWatch::judge_health(Round& round) {
  const Flapping& rule = round.config.flapping;
  std::erase_if(transitions_, [&](Nanoseconds at) { return round.now - at > rule.within; });
  const HealthState health = round.values.health;
  if (!summary_ || summary_->sci_health() == health) {
    if (waiting_ && believed_ && better(health, believed_->health)) round.confirms = true;
    return;
  }
  transitions_.push_back(round.now);
  if (transitions_.size() <= rule.transitions) return;
  round.judgement.anomalies.add(Anomaly::kFlapping);
  round.judgement.detail =
      std::to_string(transitions_.size()) + " changes of health in " + std::to_string(rule.within / kSecond) + " s";
  if (believed_ && better(health, believed_->health)) hold(round, false);
}

void AnomalyWatch::judge_gas(Round& round) {
  if (!round.values.gas) return;
  const uint32_t gas = *round.values.gas;
  Judgement& judgement = round.judgement;
  if (round.ceiling && gas > *round.ceiling) {
    judgement.anomalies.add(Anomaly::kGasCeiling);
    judgement.detail = "GAS " + std::to_string(gas) + ", its ceiling is " + std::to_string(*round.ceiling);
    round.held = true;
    return;
  }
  if (round.condition_changed) {
    gas_.samples.clear();
    return;
  }
  const Rule rule = rule_of(round.config.gas_anomaly);
  bool rise = false;
  for (const Sample& s : gas_.samples) {
    if (!rule.broken(s.value, gas)) continue;
    judgement.anomalies.add(Anomaly::kGasChange);
    judgement.detail = change_words("GAS", s.value, gas, "");
    rise = rise || gas > s.value;
  }
  if (rise) hold(round, waiting_ && waiting_->gas && !rule.broken(*waiting_->gas, gas));
}

void AnomalyWatch::judge_computing_time(Round& round) {
  if (!round.values.computing_time) return;
  const uint32_t time = *round.values.computing_time;
  const Rule rule = rule_of(round.config.computing_time_anomaly);
  bool faster = false;
  for (const Sample& s : computing_time_.samples) {
    if (!rule.broken(s.value, time)) continue;
    round.judgement.anomalies.add(Anomaly::kComputingTimeChange);
    round.judgement.detail = change_words("Computing Time", s.value, time, " ms");
    faster = faster || time < s.value;
  }
  if (faster) {
    hold(round, waiting_ && waiting_->computing_time && !rule.broken(*waiting_->computing_time, time));
  }
}

void AnomalyWatch::remember(Window& window, std::optional<uint32_t> value, Nanoseconds now) {
  if (value) window.samples.push_back({*value, now});
}

void AnomalyWatch::believe(const Round& round) {
  Values now_believed = round.values;
  if (round.held) {
    waiting_ = round.values;
    if (!believed_) return;
    now_believed = *believed_;
    if (round.values.gas && believed_->gas) now_believed.gas = std::min(*round.values.gas, *believed_->gas);
    if (round.values.computing_time && believed_->computing_time) {
      now_believed.computing_time = std::max(*round.values.computing_time, *believed_->computing_time);
    }
    if (better(believed_->health, round.values.health)) now_believed.health = round.values.health;
  } else {
    if (round.confirms) gas_.samples.clear();
    if (round.confirms) computing_time_.samples.clear();
    waiting_.reset();
  }
  remember(gas_, now_believed.gas, round.now);
  remember(computing_time_, now_believed.computing_time, round.now);
  believed_ = now_believed;
}

void AnomalyWatch::release(Nanoseconds now) {
  if (!waiting_) return;
  believed_ = std::exchange(waiting_, std::nullopt);
  gas_.samples.clear();
  computing_time_.samples.clear();
  remember(gas_, believed_->gas, now);
  remember(computing_time_, believed_->computing_time, now);
}

}  // namespace margay::c_sma
