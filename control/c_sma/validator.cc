// SPDX-License-Identifier: Apache-2.0
#include "control/c_sma/validator.h"

#include <algorithm>
#include <utility>

#include "control/c_sma/report_checks.h"

namespace margay::c_sma {
namespace {

using control::Report;

std::string words(const ReportOrder& o) {
  return "epoch " + std::to_string(o.epoch) + ", sequence " + std::to_string(o.sequence);
}

}  // namespace

Validator::Validator(const CSmaConfig& config) { configure(config); }

void Validator::configure(const CSmaConfig& config) {
  config_ = config;
  std::unordered_map<std::string, Known> known;
  for (const AcceptedSci& sci : config_.accept) {
    Known& now = known[sci.csci_id];
    const auto before = known_.find(sci.csci_id);
    if (before != known_.end()) now = std::move(before->second);
    now.accepted = sci;
  }
  known_ = std::move(known);
}

Validator::Checked Validator::check(const Report& report, const Peer& peer, Time now) {
  for (auto refusal : {check_authority(report, peer), check_format(report)}) {
    if (refusal) return {.refusal = std::move(refusal)};
  }
  if (auto refusal = check_ranges(report, config_.validation.ranges)) return {.refusal = std::move(refusal)};
  if (auto refusal = check_order(report)) return {.refusal = std::move(refusal)};

  const ClockWatch::Finding skew = clocks_.judge(peer.identity, report.timestamp_ms, now, config_.validation);
  Checked checked{.own_clock = skew.too_far && skew.own_clock, .skew_alarm_ms = skew.alarm_ms};
  if (skew.too_far && !skew.own_clock) {
    checked.refusal =
        refused(Refusal::kSkew, "its clock says " + std::to_string(report.timestamp_ms) + ", ours " +
                                    std::to_string(now.unix_ms) + " (Unix ms), expected at most " +
                                    std::to_string(config_.validation.skew_refuse / kMillisecond) + " ms between them");
  }
  return checked;
}

std::optional<Judgement> Validator::check_authority(const Report& report, const Peer& peer) const {
  const AcceptedSci* accepted = listed(report.csci_id);
  if (accepted == nullptr) return refused(Refusal::kNotListed, "the site file lists no such SCI");
  if (accepted->cs_id != report.cs_id) {
    return refused(Refusal::kWrongCsId, "its service is " + accepted->cs_id + ", not " + report.cs_id);
  }
  if (peer.co_located || peer.names.contains({report.csci_id, report.cs_id})) return std::nullopt;
  return refused(Refusal::kNotInCertificate, "the certificate of " + peer.identity + " does not name it");
}

std::optional<Judgement> Validator::check_order(const Report& report) const {
  const std::optional<ReportOrder>& last = known_.at(report.csci_id).order;
  const ReportOrder order{report.epoch, report.sequence};
  if (!last || order > *last) return std::nullopt;
  const Refusal why = order == *last              ? Refusal::kDuplicate
                      : order.epoch < last->epoch ? Refusal::kOldEpoch
                                                  : Refusal::kOldSequence;
  return refused(why, words(order) + ", after " + words(*last));
}

Judgement Validator::weigh(const Report& report, bool own_clock, Nanoseconds now) {
  Known& known = known_.at(report.csci_id);
  known.order = ReportOrder{report.epoch, report.sequence};
  Judgement judgement = known.anomalies.judge(report, config_.validation, known.accepted.gas_ceiling, now);
  if (!own_clock) return judgement;
  judgement.anomalies.add(Anomaly::kOwnClock);
  if (judgement.verdict == Verdict::kAccepted) judgement.verdict = Verdict::kFlagged;
  if (judgement.detail.empty()) judgement.detail = "its clock and ours differ, ours is suspected";
  return judgement;
}

void Validator::release(const std::string& csci_id, Nanoseconds now) {
  if (const auto found = known_.find(csci_id); found != known_.end()) found->second.anomalies.release(now);
}

const AcceptedSci* Validator::listed(const std::string& csci_id) const {
  const auto found = known_.find(csci_id);
  return found == known_.end() ? nullptr : &found->second.accepted;
}

std::optional<ReportOrder> Validator::order(const std::string& csci_id) const {
  const auto found = known_.find(csci_id);
  return found == known_.end() ? std::nullopt : found->second.order;
}

std::vector<std::pair<std::string, ReportOrder>> Validator::orders() const {
  std::vector<std::pair<std::string, ReportOrder>> all;
  for (const auto& [csci_id, known] : known_) {
    if (known.order) all.emplace_back(csci_id, *known.order);
  }
  std::sort(all.begin(), all.end());
  return all;
}

void Validator::set_order(const std::string& csci_id, std::optional<ReportOrder> order) {
  if (const auto found = known_.find(csci_id); found != known_.end()) found->second.order = order;
}

}  // namespace margay::c_sma
