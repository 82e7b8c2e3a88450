// SPDX-License-Identifier: Apache-2.0
#include "control/c_sma/c_sma.h"

#include <algorithm>
#include <array>

namespace margay::c_sma {

using northbound::WithdrawReason;

std::string_view name_of(AuditKind k) {
  static constexpr std::array<std::string_view, kAuditKinds> kNames = {
      "REFUSED",   "ANOMALY", "CONFIRMED", "SOURCE_FAILED", "EVICTED",      "DEREGISTERED", "REVOKED",
      "TAKE_OVER", "SKEW",    "OWN_CLOCK", "SELF_DOUBT",    "INCONSISTENT", "OPERATOR",     "PULL_FAILED"};
  return kNames[static_cast<size_t>(k)];
}

CSma::CSma(const CSmaConfig& config, const SavedState& saved, Time now)
    : config_(config),
      validator_(config),
      cache_(config.cache, config.self_doubt),
      updates_(config, now.monotonic),
      now_(now) {
  restore(saved);
}

std::vector<Action> CSma::handle(const Event& event, Time now) {
  now_ = now;
  started_ = true;
  watch_clock();
  std::visit([this](const auto& e) { on(e); }, event);
  age();
  end_round();
  flush();
  return std::exchange(actions_, {});
}

Nanoseconds CSma::next_due() const {
  if (!started_) return 0;
  const Nanoseconds again = pull_again_.empty() ? kNever : pull_again_.begin()->first;
  return std::min({cache_.next_due(), updates_.next_due(), again, round_over_ ? kNever : round_until_});
}

// ---- events but reports, which c_sma_reports.cc has

void CSma::on(const StreamClosed& e) { streams_.closed(e.stream); }
void CSma::on(const Tick&) {}

void CSma::on(const PullFailed& e) {
  audit(AuditKind::kPullFailed, "", e.csci_id, e.why);
  const CacheEntry* entry = cache_.entry(e.csci_id);
  if (entry == nullptr || entry->state != SourceState::kStale) return;
  pull_again_.emplace(now_.monotonic + kPullAgain, e.csci_id);
}

void CSma::on(const Revoked& e) {
  for (const StreamId stream : streams_.of_identity(e.identity)) close(stream, "its certificate is revoked");
  const auto theirs = entries_where([&e](const CacheEntry& entry) { return entry.id->identity == e.identity; });
  for (const std::string& csci_id : theirs) remove(csci_id, WithdrawReason::kRevoked, "its certificate is revoked");
  audit(AuditKind::kRevoked, e.identity, "", std::to_string(theirs.size()) + " SCIs withdrawn");
}

void CSma::on(const ConfigChanged& e) {
  config_ = e.config;
  validator_.configure(config_);
  updates_.configure(config_, now_.monotonic);
  const auto unlisted = entries_where([this](const CacheEntry& entry) {
    const AcceptedSci* accepted = validator_.listed(entry.id->csci_id);
    return accepted == nullptr || accepted->cs_id != entry.id->cs_id;
  });
  for (const std::string& csci_id : unlisted) {
    if (const auto stream = streams_.of(csci_id)) close(*stream, "the site file does not list it any more");
    remove(csci_id, WithdrawReason::kAdmin, "the site file does not list it any more");
  }
  for (const MetricCache::Gone& source : cache_.configure(config_.cache, config_.self_doubt)) evicted(source);
  std::erase_if(last_reports_, [this](const auto& r) { return validator_.listed(r.first) == nullptr; });
  std::erase_if(awaited_, [this](const std::string& csci_id) { return validator_.listed(csci_id) == nullptr; });
}

void CSma::on(const QuarantineDrop& e) {
  if (quarantine_.find(e.csci_id) == nullptr) return;
  quarantine_.drop(e.csci_id);
  audit(AuditKind::kOperator, e.who, e.csci_id, "dropped out of quarantine");
}

void CSma::on(const EpochReset& e) {
  validator_.set_order(e.csci_id, std::nullopt);
  audit(AuditKind::kOperator, e.who, e.csci_id, "its epoch is reset");
}

void CSma::on(const LoopLate& e) {
  if (!cache_.loop_late(e.by, now_.monotonic)) return;
  audit(AuditKind::kSelfDoubt, "", "",
        "our loop was late by " + std::to_string(e.by / kMillisecond) + " ms: no source fails for now");
}

// ---- what follows from them

void CSma::audit(AuditKind kind, std::string who, std::string what, std::string detail) {
  actions_.emplace_back(Audit{kind, std::move(who), std::move(what), std::move(detail)});
}

void CSma::close(StreamId stream, std::string why) {
  streams_.closed(stream);
  actions_.emplace_back(CloseStream{stream, std::move(why)});
}

void CSma::pull(const std::string& csci_id, std::string why) {
  const auto [last, first] = pulled_at_.try_emplace(csci_id, now_.monotonic);
  if (!first && now_.monotonic - last->second < kPullGap) return;
  last->second = now_.monotonic;
  actions_.emplace_back(PullWanted{csci_id, std::move(why)});
}

std::vector<std::string> CSma::entries_where(const std::function<bool(const CacheEntry&)>& wanted) const {
  std::vector<std::string> found;
  cache_.table().for_each([&](const CacheEntry& entry) {
    if (wanted(entry)) found.push_back(entry.id->csci_id);
  });
  std::sort(found.begin(), found.end());
  return found;
}

void CSma::watch_clock() {
  if (validator_.watch_clock(now_)) audit(AuditKind::kOwnClock, "", "", "our wall clock has jumped");
  const bool suspected = validator_.clocks().own_suspected(now_.monotonic);
  if (std::exchange(own_clock_, suspected) == suspected) return;
  audit(
      AuditKind::kOwnClock, "", "",
      suspected ? "our wall clock is suspected: no report is refused for its time" : "our wall clock is trusted again");
}

void CSma::changed(const MetricCache::SourceChange& change, std::string why) {
  actions_.emplace_back(SourceChanged{change.id->csci_id, change.id->cs_id, change.from, change.to, std::move(why)});
}

void CSma::gone(const MetricCache::Gone& source, WithdrawReason reason, std::string why) {
  const auto& [csci_id, cs_id, identity] = *source.id;
  updates_.withdraw(csci_id, reason);
  quarantine_.drop(csci_id);
  pulled_at_.erase(csci_id);
  actions_.emplace_back(SourceChanged{csci_id, cs_id, source.state, std::nullopt, std::move(why)});
}

void CSma::remove(const std::string& csci_id, WithdrawReason reason, std::string why) {
  const CacheEntry* entry = cache_.entry(csci_id);
  if (entry == nullptr) return;
  const MetricCache::Gone source{entry->id, entry->state};
  cache_.remove(csci_id);
  gone(source, reason, std::move(why));
}

void CSma::evicted(const MetricCache::Gone& source) {
  audit(AuditKind::kEvicted, source.id->identity, source.id->csci_id, "the cache is full");
  gone(source, WithdrawReason::kEvicted, "the cache is full");
}

// What the entry counts for now.
void CSma::publish(const std::string& csci_id) {
  const CacheEntry& entry = *cache_.entry(csci_id);
  if (!entry.known || entry.state == SourceState::kFailed) {
    updates_.withdraw(csci_id, WithdrawReason::kFailed);
    return;
  }
  Contribution c{.metrics = entry.metrics,
                 .health = entry.health,
                 .admin = entry.admin,
                 .restored = entry.restored,
                 .measured_at = entry.updated_at};
  c.metrics.gas = cache_.gas_of(entry, now_.monotonic);
  updates_.set(csci_id, entry.id->cs_id, entry.state, c);
}

void CSma::age() {
  const MetricCache::Aged aged = cache_.advance(now_.monotonic);
  for (const MetricCache::SourceChange& change : aged.changes) {
    const std::string& csci_id = change.id->csci_id;
    const bool failed = change.to == SourceState::kFailed;
    changed(change, failed ? "nothing within the grace" : "nothing within the TTL");
    if (failed) {
      audit(AuditKind::kSourceFailed, change.id->identity, csci_id, "no report within TTL and grace: withdrawn");
    } else {
      pull(csci_id, "no report within its TTL");
    }
    publish(csci_id);
  }
  for (const MetricCache::Id& id : aged.worth_less) publish(id->csci_id);
  for (const MetricCache::Id& id : aged.spared) pull(id->csci_id, "silent, but so are many others");
  if (aged.doubt_began) {
    audit(AuditKind::kSelfDoubt, "", "", "many sources fell silent together: no source fails for now");
  }
  if (aged.doubt_ended) audit(AuditKind::kSelfDoubt, "", "", "over");

  while (!pull_again_.empty() && pull_again_.begin()->first <= now_.monotonic) {
    const std::string csci_id = pull_again_.begin()->second;
    pull_again_.erase(pull_again_.begin());
    const CacheEntry* entry = cache_.entry(csci_id);
    if (entry != nullptr && entry->state == SourceState::kStale) pull(csci_id, "the pull before failed");
  }
}

void CSma::flush() {
  for (UpdateController::Commit& commit : updates_.flush(now_.monotonic)) {
    if (commit.consistent) {
      audit(AuditKind::kInconsistent, "", commit.change.cs_id,
            *commit.consistent ? "an SCI is HEALTHY again" : "no SCI is HEALTHY: GAS is advertised as 0");
    }
    actions_.emplace_back(Commit{std::move(commit.change), critical(commit.cause), commit.cause});
  }
}

std::optional<CSma::Explanation> CSma::explain(const std::string& csci_id) const {
  const AcceptedSci* accepted = validator_.listed(csci_id);
  if (accepted == nullptr) return std::nullopt;
  Explanation all;
  if (const auto last = last_reports_.find(csci_id); last != last_reports_.end()) all.last_report = last->second;
  if (const CacheEntry* entry = cache_.entry(csci_id)) all.entry = *entry;
  all.waiting = quarantine_.find(csci_id);
  all.row = updates_.explain(csci_id, now_.monotonic);
  all.site = updates_.explain_site(accepted->cs_id, now_.monotonic);
  return all;
}

}  // namespace margay::c_sma
