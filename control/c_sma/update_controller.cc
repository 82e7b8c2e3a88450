// SPDX-License-Identifier: Apache-2.0
#include "control/c_sma/update_controller.h"

#include <algorithm>
#include <array>
#include <utility>

#include "control/c_sma/phase.h"

namespace margay::c_sma {
namespace {

using northbound::Row;
using northbound::RowKey;
using northbound::WithdrawReason;

bool moved(std::optional<uint32_t> base, std::optional<uint32_t> value, Share share, std::optional<uint32_t> absolute) {
  if (!base || !value) return base.has_value() != value.has_value();
  return crosses(*base, *value, share, absolute);
}

// Measured anew, with the same result: heartbeats tell it.
bool only_aged(const Row& committed, Row row) {
  row.measured_at = committed.measured_at;
  return committed == row;
}

}  // namespace

std::string_view name_of(Cause c) {
  static constexpr std::array<std::string_view, kCauses> kNames = {
      "NONE",      "HEARTBEAT", "THRESHOLD", "SECURITY_LEVEL", "POLICY",   "RESTORED",  "CONSISTENCY",
      "DISCOVERY", "SOURCE",    "HEALTH",    "ADMIN",          "SECURITY", "WITHDRAWAL"};
  return kNames[static_cast<size_t>(c)];
}

UpdateController::UpdateController(const CSmaConfig& config, Nanoseconds now)
    : config_(config), next_heartbeat_(now + 1 + phase_of(config.identity, config.updates.heartbeat)) {
  for (const AcceptedSci& sci : config.accept) listed_.insert(sci.cs_id);
}

void UpdateController::configure(const CSmaConfig& config, Nanoseconds now) {
  config_ = config;
  next_heartbeat_ = std::min(next_heartbeat_, now + config.updates.heartbeat);
  listed_.clear();
  for (const AcceptedSci& sci : config.accept) listed_.insert(sci.cs_id);
  touch_all(Cause::kPolicy);
}

// ---- what happened

UpdateController::Touched& UpdateController::touch(const std::string& cs_id, Cause cause) {
  Touched& touched = touched_[cs_id];
  touched.cause = std::max(touched.cause, cause);
  return touched;
}

void UpdateController::touch_all(Cause cause) {
  for (const auto& [cs_id, service] : services_) touch(cs_id, cause).all = true;
}

void UpdateController::set(const std::string& csci_id, const std::string& cs_id, northbound::SourceState source,
                           const Contribution& c) {
  Service& service = services_[cs_id];
  const auto [at, is_new] = scis_.try_emplace(csci_id);
  Sci& sci = at->second;
  Cause cause = Cause::kNone;
  if (is_new) {
    sci.cs_id = cs_id;
    service.scis.insert(csci_id);
    cause = c.restored ? Cause::kRestored : Cause::kDiscovery;
  } else {
    if (sci.source != source) cause = Cause::kSource;
    if (sci.contribution.health != c.health) cause = Cause::kHealth;
    if (sci.contribution.admin != c.admin) cause = Cause::kAdmin;
    service.aggregate.remove(sci.contribution);
    healthy_ -= sci.contribution.health.healthy > 0 ? 1 : 0;
  }
  service.aggregate.add(c);
  healthy_ += c.health.healthy > 0 ? 1 : 0;
  sci.source = source;
  sci.contribution = c;
  if (cause != Cause::kNone) {
    ++sci.changes;
    ++service.changes;
  }
  touch(cs_id, cause).scis.insert(csci_id);
}

void UpdateController::withdraw(const std::string& csci_id, WithdrawReason reason) {
  const auto found = scis_.find(csci_id);
  if (found == scis_.end()) return;
  const Sci& sci = found->second;
  Service& service = services_.at(sci.cs_id);
  service.aggregate.remove(sci.contribution);
  healthy_ -= sci.contribution.health.healthy > 0 ? 1 : 0;
  service.scis.erase(csci_id);
  ++service.changes;
  Touched& touched = touch(sci.cs_id, Cause::kWithdrawal);
  touched.scis.erase(csci_id);
  if (sci.committed) touched.withdrawals.push_back({.key = {sci.cs_id, csci_id}, .reason = reason});
  scis_.erase(found);
}

void UpdateController::urge(const std::string& csci_id, Cause cause) {
  const auto found = scis_.find(csci_id);
  if (found != scis_.end()) touch(found->second.cs_id, cause).scis.insert(csci_id);
}

// ---- rows

uint64_t UpdateController::healthy_scis(const Service& service) const {
  return config_.validation.consistency == Consistency::kSite ? healthy_ : service.aggregate.healthy_scis();
}

Transformed UpdateController::transform_sci(const Sci& sci, Smoother* smoother, Nanoseconds now) const {
  northbound::Metrics raw = sci.contribution.metrics;
  if (!sci.contribution.serves() && raw.gas) raw.gas = 0;  // CSMA-51
  Smoother* const mine = config_.updates.advertise == Advertise::kPerSci ? smoother : nullptr;
  return transform(raw, config_.transform, mine, sci.changes, healthy_scis(services_.at(sci.cs_id)), now);
}

Transformed UpdateController::transform_site(const Service& service, Smoother* smoother, Nanoseconds now) const {
  return transform(service.aggregate.metrics(config_.transform.computing_time), config_.transform, smoother,
                   service.changes, healthy_scis(service), now);
}

Row UpdateController::row_of(const Sci& sci, const Transformed& t) const {
  return {.key = {},
          .metrics = t.metrics,
          .health = sci.contribution.health,
          .sci_health = sci.contribution.health.sci_health(),
          .admin = sci.contribution.admin,
          .source = sci.source,
          .restored = sci.contribution.restored,
          .measured_at = sci.contribution.measured_at,
          .valid_for = config_.updates.valid_for};
}

Row UpdateController::row_of(const Service& service, const Transformed& t, Nanoseconds now) const {
  const SiteAggregate& site = service.aggregate;
  return {.key = {},
          .metrics = t.metrics,
          .health = site.health(),
          .sci_health = site.health().sci_health(),
          .scis = site.scis(),
          .restored = site.restored(),
          .measured_at = site.scis() > 0 ? site.measured_at() : now,
          .valid_for = config_.updates.valid_for};
}

// Where the last HEALTHY SCI went, or the first came, all rows of the scope are others (CSMA-52).
void UpdateController::watch_healthy() {
  const bool whole_site = config_.validation.consistency == Consistency::kSite;
  if (std::exchange(had_healthy_, healthy_ > 0) != (healthy_ > 0) && whole_site) touch_all(Cause::kNone);
  for (auto& [cs_id, touched] : touched_) {
    Service& service = services_.at(cs_id);
    const bool has = service.aggregate.healthy_scis() > 0;
    if (std::exchange(service.had_healthy, has) != has && !whole_site) touched.all = true;
  }
}

// ---- changes

std::vector<UpdateController::Commit> UpdateController::flush(Nanoseconds now) {
  if (now >= next_heartbeat_) {
    const Nanoseconds heartbeat = config_.updates.heartbeat;
    next_heartbeat_ += (now - next_heartbeat_) / heartbeat * heartbeat + heartbeat;
    touch_all(Cause::kHeartbeat);
    for (auto& [cs_id, touched] : touched_) touched.refresh = true;
  }
  watch_healthy();
  std::vector<Commit> commits;
  for (auto& [cs_id, touched] : touched_) {
    if (auto commit = make(cs_id, touched, now)) commits.push_back(std::move(*commit));
  }
  touched_.clear();
  return commits;
}

std::optional<UpdateController::Commit> UpdateController::make(const std::string& cs_id, Touched& touched,
                                                               Nanoseconds now) {
  Service& service = services_.at(cs_id);
  Pending pending{
      .commit = {.change = {.cs_id = cs_id, .withdrawals = std::move(touched.withdrawals)}, .cause = touched.cause},
      .go = touched.cause != Cause::kNone,
      .refresh = touched.refresh,
      .now = now};
  pending.whole = !pending.commit.change.withdrawals.empty();
  std::vector<std::pair<std::string, Row>> rows;
  for (const std::string& csci_id : touched.all ? service.scis : touched.scis) {
    Sci& sci = scis_.at(csci_id);
    const Transformed t = transform_sci(sci, &sci.smoother, now);
    Row row = row_of(sci, t);
    if (advertises_scis()) judge(pending, sci, row, true);
    if (std::exchange(sci.consistent, t.consistent) != t.consistent) trigger(pending, Cause::kConsistency);
    rows.emplace_back(csci_id, std::move(row));
  }
  const Transformed t = transform_site(service, &service.smoother, now);
  Row site = row_of(service, t, now);
  if (advertises_sites()) judge(pending, service, site, false);
  if (std::exchange(service.consistent, t.consistent) != t.consistent) {
    trigger(pending, Cause::kConsistency);
    pending.commit.consistent = t.consistent;
  }
  if (!pending.go) return std::nullopt;

  const bool gone = service.scis.empty() && !listed_.contains(cs_id);
  for (auto& [csci_id, row] : rows) {
    Sci& sci = scis_.at(csci_id);
    if (advertises_scis()) emit(pending, sci, std::move(row), {cs_id, csci_id}, false);
    if (!advertises_scis()) take_back(pending, sci, {cs_id, csci_id});
  }
  if (advertises_sites() && !gone) emit(pending, service, std::move(site), {cs_id, std::nullopt}, pending.whole);
  if (!advertises_sites() || gone) take_back(pending, service, {cs_id, std::nullopt});
  if (gone) services_.erase(cs_id);
  const northbound::Change& change = pending.commit.change;
  if (change.rows.empty() && change.withdrawals.empty()) return std::nullopt;
  return std::move(pending.commit);
}

// Whether the row is far enough from what was committed. Price is a mean of the site's, which moves with every GAS.
void UpdateController::judge(Pending& pending, const Line& line, const Row& row, bool is_sci) const {
  Cause cause = Cause::kNone;
  if (!line.committed) {
    pending.whole = true;
    cause = Cause::kPolicy;
  } else {
    const northbound::Metrics& was = line.committed->metrics;
    const northbound::Metrics& is = row.metrics;
    const UpdateConfig& c = config_.updates;
    if (moved(was.gas, is.gas, c.gas_change, c.gas_absolute) ||
        moved(was.computing_time_ms, is.computing_time_ms, c.computing_time_change, std::nullopt) ||
        was.reputation != is.reputation || (is_sci && was.price != is.price)) {
      cause = Cause::kThreshold;
    }
    if (was.security_level != is.security_level) cause = Cause::kSecurityLevel;
  }
  if (cause != Cause::kNone) trigger(pending, cause);
}

void UpdateController::trigger(Pending& pending, Cause cause) {
  pending.go = true;
  pending.commit.cause = std::max(pending.commit.cause, cause);
}

void UpdateController::emit(Pending& pending, Line& line, Row row, RowKey key, bool always) const {
  const bool same = line.committed && (pending.refresh ? *line.committed == row : only_aged(*line.committed, row));
  if (same && !always) return;
  line.committed = row;
  line.cause = pending.commit.cause;
  line.at = pending.now;
  row.key = std::move(key);
  pending.commit.change.rows.push_back(std::move(row));
}

void UpdateController::take_back(Pending& pending, Line& line, RowKey key) const {
  if (!line.committed) return;
  line.committed.reset();
  pending.commit.change.withdrawals.push_back({.key = std::move(key), .reason = WithdrawReason::kAdmin});
}

// ---- look-ups

std::optional<UpdateController::Explanation> UpdateController::explain(const std::string& csci_id,
                                                                       Nanoseconds now) const {
  const auto found = scis_.find(csci_id);
  if (found == scis_.end()) return std::nullopt;
  Smoother smoother = found->second.smoother;  // who looks moves nothing
  const Sci& sci = found->second;
  return Explanation{transform_sci(sci, &smoother, now), sci.committed, sci.cause, sci.at};
}

std::optional<UpdateController::Explanation> UpdateController::explain_site(const std::string& cs_id,
                                                                            Nanoseconds now) const {
  const auto found = services_.find(cs_id);
  if (found == services_.end()) return std::nullopt;
  Smoother smoother = found->second.smoother;
  const Service& service = found->second;
  return Explanation{transform_site(service, &smoother, now), service.committed, service.cause, service.at};
}

}  // namespace margay::c_sma
