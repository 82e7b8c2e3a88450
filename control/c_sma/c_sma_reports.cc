// SPDX-License-Identifier: Apache-2.0
// The way of a report through the core.
#include <utility>

#include "control/c_sma/believed.h"
#include "control/c_sma/c_sma.h"

namespace margay::c_sma {

using control::Report;
using northbound::WithdrawReason;

void CSma::on(const ReportReceived& e) { answer(e, judge(e)); }

Judgement CSma::judge(const ReportReceived& e) {
  Validator::Checked checked = validator_.check(e.report, *e.peer, now_);
  if (checked.skew_alarm_ms) {
    audit(AuditKind::kSkew, e.peer->identity, "",
          "its clock is off by " + std::to_string(*checked.skew_alarm_ms) + " ms, reports will be refused above " +
              std::to_string(config_.validation.skew_refuse / kMillisecond));
  }
  if (checked.refusal) return std::move(*checked.refusal);
  if (auto refusal = claim_stream(e)) return std::move(*refusal);
  if (e.report.trigger == control::Trigger::kStop) {
    deregister(e);
    return {};
  }
  if (auto refusal = admit(e)) return std::move(*refusal);
  const Judgement judgement = validator_.weigh(e.report, checked.own_clock, now_.monotonic);
  take(e, judgement);
  return judgement;
}

std::optional<Judgement> CSma::claim_stream(const ReportReceived& e) {
  const Streams::Claim claim = streams_.claim(e.report.csci_id, e.peer->identity, e.stream, now_.monotonic);
  if (claim.closed) actions_.emplace_back(CloseStream{*claim.closed, "a newer stream took over"});
  if (claim.alarm) {
    audit(AuditKind::kTakeOver, e.peer->identity, e.report.csci_id, "its stream is taken over again and again");
  }
  if (!claim.refusal) return std::nullopt;
  if (e.stream != 0) close(e.stream, std::string(name_of(*claim.refusal)));
  return refused(*claim.refusal, "another stream is live");
}

std::optional<Judgement> CSma::admit(const ReportReceived& e) {
  const SourceId id{e.report.csci_id, e.report.cs_id, e.peer->identity};
  const MetricCache::Admission admission = cache_.admit(id, now_.monotonic);
  if (admission.evicted) evicted(*admission.evicted);
  if (admission.discovered) changed(*admission.discovered, "discovered");
  if (!admission.refusal) return std::nullopt;
  return refused(*admission.refusal,
                 std::to_string(cache_.size()) + " entries of " + std::to_string(config_.cache.max_entries));
}

void CSma::deregister(const ReportReceived& e) {
  validator_.set_order(e.report.csci_id, ReportOrder{e.report.epoch, e.report.sequence});
  awaited_.erase(e.report.csci_id);
  audit(AuditKind::kDeregistered, e.peer->identity, e.report.csci_id, "it stops");
  remove(e.report.csci_id, WithdrawReason::kDeregistered, "it stops");
}

// A report that was not refused.
void CSma::take(const ReportReceived& e, const Judgement& judgement) {
  const Report& report = e.report;
  const CacheEntry before = *cache_.entry(report.csci_id);
  const bool follows = report.epoch == before.epoch && report.sequence == before.sequence + 1;
  // By a question that is asked again and again every report comes as one that was asked for.
  const bool polled = e.stream == 0 && !e.peer->co_located;
  const bool asked = e.pulled || (report.trigger == control::Trigger::kPulled && !polled);
  awaited_.erase(report.csci_id);
  if (judgement.verdict == Verdict::kQuarantined) {
    quarantine_.put(report, judgement, e.peer->identity, now_.monotonic);
    heard(report.csci_id, doubted(report, before), std::string(judgement.reason()));
    if (!asked) pull(report.csci_id, "in quarantine: " + std::string(judgement.reason()));
    return;
  }
  quarantine_.drop(report.csci_id);
  heard(report.csci_id, believed(report, before), "reports");
  if (judgement.confirms) audit(AuditKind::kConfirmed, e.peer->identity, report.csci_id, "a second report says so too");
  if (!report.security_events.empty() || report.security_events_dropped > 0) {
    updates_.urge(report.csci_id, Cause::kSecurity);
  }
  if (!report.full && !follows && !asked) pull(report.csci_id, "a delta, and the report before it is missing");
}

void CSma::heard(const std::string& csci_id, const MetricCache::Heard& heard, std::string why) {
  if (const auto change = cache_.heard(csci_id, heard, now_.monotonic)) changed(*change, std::move(why));
  publish(csci_id);
}

void CSma::answer(const ReportReceived& e, Judgement judgement) {
  const std::string_view reason = judgement.reason();
  if (!reason.empty()) {
    audit(judgement.refusal ? AuditKind::kRefused : AuditKind::kAnomaly, e.peer->identity, e.report.csci_id,
          std::string(reason) + ": " + judgement.detail);
  }
  note(e, judgement);
  actions_.emplace_back(Judged{e.stream, e.report.csci_id, e.report.epoch, e.report.sequence, judgement.verdict, reason,
                               std::move(judgement.detail), now_.unix_ms});
}

// What somebody else claims of an SCI is not its report.
void CSma::note(const ReportReceived& e, const Judgement& judgement) {
  const bool theirs = judgement.refusal != Refusal::kNotInCertificate && judgement.refusal != Refusal::kSecondStream;
  if (!theirs || validator_.listed(e.report.csci_id) == nullptr) return;
  const Report& r = e.report;
  last_reports_[r.csci_id] = {.trigger = r.trigger,
                              .full = r.full,
                              .pulled = e.pulled,
                              .identity = e.peer->identity,
                              .gas = r.state.gas ? std::optional(r.state.gas->value) : std::nullopt,
                              .computing_time_ms = r.state.computing_time.value,
                              .health = r.state.health,
                              .order = {r.epoch, r.sequence},
                              .timestamp_ms = r.timestamp_ms,
                              .at = now_.monotonic,
                              .judgement = judgement};
}

void CSma::on(const ReportUnreadable& e) {
  audit(AuditKind::kRefused, e.identity, e.csci_id, std::string(name_of(Refusal::kUnreadable)) + ": " + e.why);
  actions_.emplace_back(
      Judged{e.stream, e.csci_id, 0, 0, Verdict::kRefused, name_of(Refusal::kUnreadable), e.why, now_.unix_ms});
}

void CSma::on(const QuarantineRelease& e) {
  const Quarantine::Item* item = quarantine_.find(e.csci_id);
  if (item == nullptr) return;
  const CacheEntry* entry = cache_.entry(e.csci_id);
  const bool lives = entry != nullptr && entry->state != SourceState::kStale && entry->state != SourceState::kFailed;
  if (!lives) return audit(AuditKind::kOperator, e.who, e.csci_id, "not released: it is silent");
  audit(AuditKind::kOperator, e.who, e.csci_id, "released out of quarantine");
  validator_.release(e.csci_id, now_.monotonic);
  heard(e.csci_id, believed(item->report, *entry), "released out of quarantine");
  quarantine_.drop(e.csci_id);
}

// ---- restart

SavedState CSma::save(Time now) const {
  SavedState saved{.saved_ms = now.unix_ms};
  for (auto& [csci_id, order] : validator_.orders()) saved.orders.push_back({csci_id, order});
  for (const std::string& csci_id :
       entries_where([](const CacheEntry& entry) { return entry.known && entry.state != SourceState::kFailed; })) {
    const CacheEntry& entry = *cache_.entry(csci_id);
    saved.entries.push_back({.csci_id = csci_id,
                             .cs_id = entry.id->cs_id,
                             .identity = entry.id->identity,
                             .metrics = entry.metrics,
                             .health = entry.health,
                             .admin = entry.admin,
                             .reporting_interval = entry.reporting_interval,
                             .age = now.monotonic - entry.updated_at});
  }
  return saved;
}

// Values that would have failed by now are not advertised again; that their SCIs report is awaited all the same.
void CSma::restore(const SavedState& saved) {
  for (const SavedOrder& o : saved.orders) validator_.set_order(o.csci_id, o.order);
  const Nanoseconds now = now_.monotonic;
  const Nanoseconds away =
      now_.unix_ms > saved.saved_ms ? static_cast<Nanoseconds>(now_.unix_ms - saved.saved_ms) * kMillisecond : 0;
  Nanoseconds longest = 0;
  for (const SavedEntry& e : saved.entries) {
    const AcceptedSci* accepted = validator_.listed(e.csci_id);
    if (accepted == nullptr || accepted->cs_id != e.cs_id) continue;
    awaited_.insert(e.csci_id);
    const Nanoseconds interval = e.reporting_interval > 0 ? e.reporting_interval : MetricCache::kTtl / 2;
    longest = std::max(longest, std::min(interval, config_.cache.ttl_gas.value_or(2 * interval)));
    const Nanoseconds age = e.age + away;
    const ReportOrder order = validator_.order(e.csci_id).value_or(ReportOrder{});
    CacheEntry entry{.id = std::make_shared<const SourceId>(SourceId{e.csci_id, e.cs_id, e.identity}),
                     .known = true,
                     .metrics = e.metrics,
                     .health = e.health,
                     .admin = e.admin,
                     .updated_at = now > age ? now - age : 0,
                     .epoch = order.epoch,
                     .sequence = order.sequence,
                     .reporting_interval = e.reporting_interval};
    const bool too_old = age > config_.cache.ttl_gas.value_or(2 * interval) + config_.cache.grace;
    if (too_old || !cache_.restore(std::move(entry), now)) continue;
    changed({cache_.entry(e.csci_id)->id, std::nullopt, SourceState::kActive}, "restored");
    publish(e.csci_id);
  }
  round_until_ = now + longest;
}

void CSma::end_round() {
  if (round_over_ || (!awaited_.empty() && now_.monotonic < round_until_)) return;
  round_over_ = true;
  actions_.emplace_back(FirstRoundOver{static_cast<uint32_t>(awaited_.size())});
  awaited_.clear();
}

}  // namespace margay::c_sma
