// SPDX-License-Identifier: Apache-2.0
#include "control/c_sma/metric_cache.h"

#include <algorithm>

#include "common/check.h"

namespace margay::c_sma {
namespace {

constexpr Nanoseconds kDecaySteps = 10;  // of a grace

void bump(std::map<std::string, uint32_t, std::less<>>& counts, const std::string& key, int sign) {
  uint32_t& n = counts[key];
  n += static_cast<uint32_t>(sign);
  if (n == 0) counts.erase(key);
}

bool full(const std::map<std::string, uint32_t, std::less<>>& counts, const std::string& key, Share share,
          uint32_t max_entries) {
  const uint32_t quota = std::max<uint32_t>(1, share.floor_of(max_entries));
  const auto found = counts.find(key);
  return quota < max_entries && found != counts.end() && found->second >= quota;
}

// From when its values age. While we were not there we could not hear of others.
Nanoseconds valued_at(const CacheEntry& entry) { return entry.restored ? entry.heard_at : entry.updated_at; }

}  // namespace

MetricCache::MetricCache(const CacheConfig& config, const SelfDoubtConfig& self_doubt)
    : config_(config), doubt_(self_doubt), table_(config.max_entries) {}

std::vector<MetricCache::Gone> MetricCache::configure(const CacheConfig& config, const SelfDoubtConfig& self_doubt) {
  config_ = config;
  doubt_.configure(self_doubt);
  std::vector<Gone> evicted;
  while (sources_.size() > config_.max_entries) evicted.push_back(evict());
  for (auto& [csci_id, source] : sources_) {
    CacheEntry entry = now_of(source);
    entry.ttl = ttl_of(entry.reporting_interval);
    const Nanoseconds last = std::max(entry.heard_at, entry.state_since);
    put(source, std::move(entry));
    if (!source.deferred) schedule(source, due_of(now_of(source), last));
  }
  return evicted;
}

// ---- entries

Ttl MetricCache::ttl_of(Nanoseconds reporting_interval) const {
  const Nanoseconds usual = reporting_interval > 0 ? 2 * reporting_interval : kTtl;  // CSMA-66
  return {config_.ttl_gas.value_or(usual), config_.ttl_computing_time.value_or(usual),
          config_.ttl_optional.value_or(usual)};
}

void MetricCache::count_in(const CacheEntry& entry, int sign) {
  size_t& n = counts_[static_cast<size_t>(entry.state)];
  n = sign > 0 ? n + 1 : n - 1;
  if (entry.state == SourceState::kFailed) return;
  bump(by_identity_, entry.id->identity, sign);
  bump(by_cs_id_, entry.id->cs_id, sign);
  uint32_t& ttls = ttls_[entry.ttl.gas];
  ttls += static_cast<uint32_t>(sign);
  if (ttls == 0) ttls_.erase(entry.ttl.gas);
}

MetricCache::Source& MetricCache::insert(CacheEntry entry) {
  count_in(entry, 1);
  Source& source = sources_[entry.id->csci_id];
  source.serial = ++serials_;
  source.slot = table_.add(std::move(entry));
  place(source);
  return source;
}

void MetricCache::put(Source& source, CacheEntry entry) {
  count_in(now_of(source), -1);
  count_in(entry, 1);
  table_.replace(source.slot, std::move(entry));
}

// To the end of those with its state: it has just been updated, or its state has.
void MetricCache::place(Source& source) {
  if (source.order != nullptr) source.order->erase(source.place);
  const SourceState state = now_of(source).state;
  source.order = state == SourceState::kFailed ? &failed_ : state == SourceState::kStale ? &stale_ : &live_;
  source.place = source.order->insert(source.order->end(), &source);
}

void MetricCache::remove(const std::string& csci_id) {
  const auto found = sources_.find(csci_id);
  MARGAY_CHECK(found != sources_.end());
  Source& source = found->second;
  sound(source);
  schedule(source, kNever);
  source.order->erase(source.place);
  count_in(now_of(source), -1);
  table_.remove(source.slot);
  sources_.erase(found);
}

// D-19: FAILED, then STALE, then the least recently updated.
MetricCache::Gone MetricCache::evict() {
  Order& order = !failed_.empty() ? failed_ : !stale_.empty() ? stale_ : live_;
  const CacheEntry& entry = now_of(*order.front());
  const Gone gone{entry.id, entry.state};
  remove(gone.id->csci_id);
  return gone;
}

std::optional<Refusal> MetricCache::over_quota(const SourceId& id) const {
  if (full(by_identity_, id.identity, config_.quota_per_identity, config_.max_entries)) return Refusal::kQuotaIdentity;
  if (full(by_cs_id_, id.cs_id, config_.quota_per_cs_id, config_.max_entries)) return Refusal::kQuotaCsId;
  return std::nullopt;
}

MetricCache::Admission MetricCache::admit(const SourceId& id, Nanoseconds now) {
  const auto found = sources_.find(id.csci_id);
  if (found != sources_.end()) {
    const CacheEntry& entry = now_of(found->second);
    MARGAY_DCHECK(entry.id->cs_id == id.cs_id);
    const bool other = entry.id->identity != id.identity;
    if (!other && entry.state != SourceState::kFailed) return {};
    if (const auto refusal = over_quota(id)) return {.refusal = refusal};
    if (!other) return {};
    CacheEntry theirs = entry;
    theirs.id = std::make_shared<const SourceId>(id);
    put(found->second, std::move(theirs));
    return {};
  }
  if (const auto refusal = over_quota(id)) return {.refusal = refusal};
  const bool no_room = sources_.size() >= config_.max_entries;
  const bool may_evict = config_.at_limit == AtLimit::kEvict ? !sources_.empty() : !failed_.empty();
  if (no_room && !may_evict) return {.refusal = Refusal::kCacheFull};
  Admission admission;
  if (no_room) admission.evicted = evict();
  const auto shared = std::make_shared<const SourceId>(id);
  insert({.id = shared, .state_since = now, .heard_at = now, .ttl = ttl_of(0)});
  admission.discovered = SourceChange{shared, std::nullopt, SourceState::kActive};
  return admission;
}

bool MetricCache::restore(CacheEntry entry, Nanoseconds now) {
  if (sources_.size() >= config_.max_entries || over_quota(*entry.id) || sources_.contains(entry.id->csci_id)) {
    return false;
  }
  entry.state = SourceState::kActive;
  entry.state_since = entry.heard_at = now;
  entry.restored = true;
  entry.doubted = false;
  entry.ttl = ttl_of(entry.reporting_interval);
  Source& source = insert(std::move(entry));
  schedule(source, now + now_of(source).ttl.gas);
  return true;
}

std::optional<MetricCache::SourceChange> MetricCache::heard(const std::string& csci_id, const Heard& report,
                                                            Nanoseconds now) {
  Source& source = sources_.at(csci_id);
  CacheEntry entry = now_of(source);
  const SourceState from = entry.state;
  entry.state = next_state(from, report.event);
  if (entry.state != from) entry.state_since = now;
  entry.epoch = report.epoch;
  entry.sequence = report.sequence;
  entry.reporting_interval = report.reporting_interval;
  entry.ttl = ttl_of(report.reporting_interval);
  entry.heard_at = now;
  entry.doubted = report.doubted;
  if (report.metrics) {
    entry.known = true;
    entry.metrics = *report.metrics;
    entry.health = report.health;
    entry.admin = report.admin;
  } else if (from == SourceState::kFailed) {
    entry.known = false;  // what it was worth died with it
  }
  if (report.event == SourceEvent::kReport) {
    entry.restored = false;
    entry.updated_at = now;
  }
  const Id id = entry.id;
  const SourceState to = entry.state;
  put(source, std::move(entry));
  sound(source);
  if (report.event == SourceEvent::kReport || to != from) place(source);
  schedule(source, due_of(now_of(source), now));
  if (to == from) return std::nullopt;
  return SourceChange{id, from, to};
}

// ---- aging

// It is not silent any more.
void MetricCache::sound(Source& source) {
  if (std::exchange(source.silent, false)) doubt_.heard(source.silent_at);
  if (std::exchange(source.deferred, false)) --deferred_;
}

void MetricCache::schedule(Source& source, Nanoseconds at) {
  if (source.due == at) return;
  if (source.due != kNever) due_.erase({source.due, source.serial});
  source.due = at;
  if (at != kNever) due_[{at, source.serial}] = &source;
}

// When a class other than GAS expires.
Nanoseconds MetricCache::expiry_of(const CacheEntry& entry) const {
  const Nanoseconds since = valued_at(entry);
  const northbound::Metrics& m = entry.metrics;
  Nanoseconds at = kNever;
  if (m.computing_time_ms || m.computing_time_minimum_ms || m.computing_time_maximum_ms) {
    at = since + entry.ttl.computing_time;
  }
  if (m.price || m.reputation || m.security_level) at = std::min(at, since + entry.ttl.optional);
  return at;
}

// After something happened at `now`.
Nanoseconds MetricCache::due_of(const CacheEntry& entry, Nanoseconds now) const {
  switch (entry.state) {
    case SourceState::kActive:
    case SourceState::kHealthy:
      return std::min(entry.heard_at + entry.ttl.gas, expiry_of(entry));
    case SourceState::kStale: {
      const Nanoseconds end = entry.state_since + config_.grace;
      const Nanoseconds step = config_.grace / kDecaySteps;
      return config_.stale == Stale::kDecay && step > 0 ? std::min(end, now + step) : end;
    }
    case SourceState::kFailed:
      return kNever;
  }
  return kNever;
}

MetricCache::Aged MetricCache::advance(Nanoseconds now) {
  Aged aged;
  while (!due_.empty() && due_.begin()->first.first <= now) age(*due_.begin()->second, now, aged);
  if (deferred_ == 0) aged.doubt_ended = doubt_.settle(now);
  return aged;
}

void MetricCache::age(Source& source, Nanoseconds now, Aged& aged) {
  const CacheEntry& entry = now_of(source);
  if (entry.state == SourceState::kStale) {
    if (entry.state_since + config_.grace <= now) return end_grace(source, now, aged);
    aged.worth_less.push_back(entry.id);
    return schedule(source, due_of(entry, now));
  }
  if (entry.heard_at + entry.ttl.gas <= now) return go_silent(source, now, aged);
  expire_classes(source, now, aged);
}

// The grace begins now, however late we are: the source is asked first.
void MetricCache::go_silent(Source& source, Nanoseconds now, Aged& aged) {
  CacheEntry entry = now_of(source);
  const SourceChange change{entry.id, entry.state, next_state(entry.state, SourceEvent::kTtl)};
  const Nanoseconds ttl = entry.ttl.gas;
  entry.state = change.to;
  entry.state_since = now;
  put(source, std::move(entry));
  place(source);
  source.silent = true;
  source.silent_at = now;
  const size_t reporting = count(SourceState::kActive) + count(SourceState::kHealthy);
  if (doubt_.went_silent(now, ttl, reporting)) aged.doubt_began = true;
  schedule(source, due_of(now_of(source), now));
  aged.changes.push_back(change);
}

void MetricCache::end_grace(Source& source, Nanoseconds now, Aged& aged) {
  if (!doubt_.may_fail(sources_.size() - count(SourceState::kFailed), now)) {
    if (!std::exchange(source.deferred, true)) {
      ++deferred_;
      aged.spared.push_back(now_of(source).id);
    }
    return schedule(source, doubt_.retry_at(now));
  }
  if (std::exchange(source.deferred, false)) --deferred_;
  CacheEntry entry = now_of(source);
  const SourceChange change{entry.id, entry.state, next_state(entry.state, SourceEvent::kGrace)};
  entry.state = change.to;
  entry.state_since = now;
  put(source, std::move(entry));
  place(source);
  schedule(source, kNever);
  aged.changes.push_back(change);
}

void MetricCache::expire_classes(Source& source, Nanoseconds now, Aged& aged) {
  CacheEntry entry = now_of(source);
  if (valued_at(entry) + entry.ttl.computing_time <= now) {
    entry.metrics.computing_time_ms.reset();
    entry.metrics.computing_time_minimum_ms.reset();
    entry.metrics.computing_time_maximum_ms.reset();
  }
  if (valued_at(entry) + entry.ttl.optional <= now) {
    entry.metrics.price.reset();
    entry.metrics.reputation.reset();
    entry.metrics.security_level.reset();
  }
  aged.worth_less.push_back(entry.id);
  put(source, std::move(entry));
  schedule(source, due_of(now_of(source), now));
}

bool MetricCache::loop_late(Nanoseconds by, Nanoseconds now) {
  return doubt_.loop_late(by, ttls_.empty() ? kTtl : ttls_.begin()->first, now);
}

// ---- look-ups

const CacheEntry* MetricCache::entry(const std::string& csci_id) const {
  const auto found = sources_.find(csci_id);
  return found == sources_.end() ? nullptr : &now_of(found->second);
}

std::optional<uint32_t> MetricCache::gas_of(const CacheEntry& entry, Nanoseconds now) const {
  if (entry.state == SourceState::kFailed) return 0;
  const bool decays = entry.state == SourceState::kStale && config_.stale == Stale::kDecay && !doubt_.active();
  if (!decays || !entry.metrics.gas) return entry.metrics.gas;
  const Nanoseconds gone = std::min(now - entry.state_since, config_.grace);
  if (gone == config_.grace) return 0;
  // Exact: milliseconds times a 32-bit number fit.
  return static_cast<uint32_t>(*entry.metrics.gas * ((config_.grace - gone) / kMillisecond) /
                               std::max<Nanoseconds>(1, config_.grace / kMillisecond));
}

}  // namespace margay::c_sma
