// SPDX-License-Identifier: Apache-2.0
#include "control/c_sma/metric_cache.h"

#include <gtest/gtest.h>

#include "tests/unit/control/c_sma/c_sma_rig.h"

namespace margay::c_sma {
namespace {

using test::kBegin;
using test::sci;

CacheConfig small(uint32_t max_entries) { return {.max_entries = max_entries, .quota_per_identity = Share{1.0}}; }

struct CacheRig {
  explicit CacheRig(const CacheConfig& config = small(100), const SelfDoubtConfig& doubt = {}) : cache(config, doubt) {}

  std::optional<Refusal> admit(const std::string& csci_id, const std::string& identity = "host",
                               const std::string& cs_id = "ARS") {
    last = cache.admit({csci_id, cs_id, identity}, now);
    return last.refusal;
  }
  std::optional<MetricCache::SourceChange> heard(const std::string& csci_id, SourceEvent event = SourceEvent::kReport,
                                                 Nanoseconds interval = 60 * kSecond) {
    MetricCache::Heard h{.event = event, .epoch = 1, .sequence = 1, .reporting_interval = interval};
    if (event == SourceEvent::kReport) h.metrics = northbound::Metrics{.gas = 100, .computing_time_ms = 10, .price = 3};
    h.health = test::kHealthyOne;
    return cache.heard(csci_id, h, now);
  }
  void report(const std::string& csci_id, const std::string& identity = "host", const std::string& cs_id = "ARS") {
    EXPECT_FALSE(admit(csci_id, identity, cs_id)) << csci_id;
    heard(csci_id);
  }
  // At the time that the cache asks for.
  MetricCache::Aged next() {
    now = std::max(now, cache.next_due());
    return cache.advance(now);
  }
  SourceState state(const std::string& csci_id) { return cache.entry(csci_id)->state; }

  MetricCache cache;
  MetricCache::Admission last;
  Nanoseconds now = kBegin;
};

TEST(SourceState, EveryTransition_CSMA77_CSMA78_CSMA79_CSMA80_CSMA81_CSMA83) {
  using S = SourceState;
  using E = SourceEvent;
  const struct {
    S from;
    E event;
    S to;
  } rows[] = {
      {S::kActive, E::kReport, S::kHealthy},  {S::kActive, E::kSign, S::kActive},
      {S::kActive, E::kTtl, S::kStale},       {S::kActive, E::kGrace, S::kActive},
      {S::kHealthy, E::kReport, S::kHealthy}, {S::kHealthy, E::kSign, S::kHealthy},
      {S::kHealthy, E::kTtl, S::kStale},      {S::kHealthy, E::kGrace, S::kHealthy},
      {S::kStale, E::kReport, S::kHealthy},   {S::kStale, E::kSign, S::kActive},
      {S::kStale, E::kTtl, S::kStale},        {S::kStale, E::kGrace, S::kFailed},
      {S::kFailed, E::kReport, S::kHealthy},  {S::kFailed, E::kSign, S::kActive},
      {S::kFailed, E::kTtl, S::kFailed},      {S::kFailed, E::kGrace, S::kFailed},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(next_state(row.from, row.event), row.to)
        << northbound::name_of(row.from) << " " << static_cast<int>(row.event);
  }
}

TEST(MetricCache, AnEntryHoldsWhatWasReported_CSMA56_CSMA57_CSMA58_CSMA59_CSMA60_CSMA61_CSMA62) {
  CacheRig r;
  EXPECT_FALSE(r.admit("a"));
  EXPECT_EQ(r.last.discovered->to, SourceState::kActive);
  EXPECT_FALSE(r.last.discovered->from);
  r.now += kSecond;
  MetricCache::Heard h{.event = SourceEvent::kReport, .epoch = 7, .sequence = 9, .reporting_interval = 30 * kSecond};
  h.metrics = northbound::Metrics{.gas = 400, .computing_time_ms = 5, .price = 1, .reputation = 2, .security_level = 3};
  h.health = {3, 2, 1, 1};
  h.admin = Admin::kDraining;
  const auto change = r.cache.heard("a", h, r.now);
  EXPECT_EQ(change->from, SourceState::kActive);
  EXPECT_EQ(change->to, SourceState::kHealthy);
  const std::optional<CacheEntry> e = r.cache.table().find("a");
  ASSERT_TRUE(e);
  EXPECT_EQ(*e->id, (SourceId{"a", "ARS", "host"}));
  EXPECT_EQ(e->metrics, *h.metrics);
  EXPECT_EQ(e->health, h.health);
  EXPECT_EQ(e->admin, Admin::kDraining);
  EXPECT_EQ(e->updated_at, r.now);
  EXPECT_EQ(e->state_since, r.now);
  EXPECT_EQ(e->epoch, 7u);
  EXPECT_EQ(e->sequence, 9u);
  EXPECT_EQ(e->ttl.gas, 60 * kSecond);  // twice the interval
}

TEST(MetricCache, TtlIsTwiceTheIntervalTold_120SecondsWhereNoneIs_CSMA66) {
  CacheRig r;
  r.report("a");
  EXPECT_EQ(r.cache.entry("a")->ttl.gas, 120 * kSecond);
  r.heard("a", SourceEvent::kReport, 0);
  EXPECT_EQ(r.cache.entry("a")->ttl.gas, 120 * kSecond);
  r.heard("a", SourceEvent::kReport, 10 * kSecond);
  EXPECT_EQ(r.cache.entry("a")->ttl.gas, 20 * kSecond);
  EXPECT_EQ(r.cache.next_due(), kBegin + 20 * kSecond);
}

TEST(MetricCache, StaleAfter120SecondsFailedTenLater_CSMA67_CSMA70_CSMA163) {
  CacheRig r;
  r.report("a");
  r.now += 120 * kSecond - 1;
  EXPECT_TRUE(r.cache.advance(r.now).changes.empty());
  EXPECT_EQ(r.cache.next_due(), kBegin + 120 * kSecond);
  const auto stale = r.next();
  ASSERT_EQ(stale.changes.size(), 1u);
  EXPECT_EQ(stale.changes[0].from, SourceState::kHealthy);
  EXPECT_EQ(stale.changes[0].to, SourceState::kStale);
  EXPECT_EQ(r.cache.gas_of(*r.cache.entry("a"), r.now), 100u);  // its last values stand (D-27)
  r.now += 10 * kSecond - 1;
  EXPECT_TRUE(r.cache.advance(r.now).changes.empty());
  const auto failed = r.next();
  EXPECT_EQ(r.now, kBegin + 130 * kSecond);
  ASSERT_EQ(failed.changes.size(), 1u);
  EXPECT_EQ(failed.changes[0].to, SourceState::kFailed);
  EXPECT_EQ(r.cache.gas_of(*r.cache.entry("a"), r.now), 0u);
  EXPECT_EQ(r.cache.next_due(), kNever);
}

TEST(MetricCache, AReportWithinTheGraceBringsItBack_CSMA83) {
  CacheRig r;
  r.report("a");
  r.next();
  r.now += 9 * kSecond;
  EXPECT_EQ(r.heard("a")->to, SourceState::kHealthy);
  EXPECT_EQ(r.cache.next_due(), r.now + 120 * kSecond);
}

TEST(MetricCache, AFailedSourceComesBackWithItsNextReport_CSMA83) {
  CacheRig r;
  r.report("a");
  r.next();
  r.next();
  EXPECT_FALSE(r.admit("a"));
  EXPECT_FALSE(r.last.discovered);
  EXPECT_EQ(r.heard("a", SourceEvent::kSign)->to, SourceState::kActive);
  EXPECT_FALSE(r.cache.entry("a")->known);  // what it was worth died with it
  EXPECT_EQ(r.heard("a")->to, SourceState::kHealthy);
  EXPECT_TRUE(r.cache.entry("a")->known);
}

TEST(MetricCache, ASignOfLifeRenewsLivenessNotValues_D10) {
  CacheRig r;
  r.report("a");
  r.now += 100 * kSecond;
  r.heard("a", SourceEvent::kSign);
  EXPECT_EQ(r.cache.entry("a")->heard_at, r.now);
  EXPECT_EQ(r.cache.entry("a")->updated_at, kBegin);
  EXPECT_EQ(r.cache.entry("a")->metrics.gas, 100u);
  r.now += 119 * kSecond;
  EXPECT_TRUE(r.cache.advance(r.now).changes.empty());
}

TEST(MetricCache, EachClassHasATtl_AndGasMakesStale_CSMA68_D52) {
  CacheConfig c = small(10);
  c.ttl_gas = 100 * kSecond;
  c.ttl_computing_time = 20 * kSecond;
  c.ttl_optional = 50 * kSecond;
  CacheRig r(c);
  r.report("a");
  auto aged = r.next();
  EXPECT_EQ(r.now, kBegin + 20 * kSecond);
  EXPECT_EQ(aged.worth_less.size(), 1u);
  EXPECT_FALSE(r.cache.entry("a")->metrics.computing_time_ms);
  EXPECT_TRUE(r.cache.entry("a")->metrics.price);
  r.next();
  EXPECT_EQ(r.now, kBegin + 50 * kSecond);
  EXPECT_FALSE(r.cache.entry("a")->metrics.price);
  EXPECT_EQ(r.cache.entry("a")->metrics.gas, 100u);
  EXPECT_EQ(r.state("a"), SourceState::kHealthy);
  r.next();
  EXPECT_EQ(r.now, kBegin + 100 * kSecond);
  EXPECT_EQ(r.state("a"), SourceState::kStale);
}

TEST(MetricCache, ALateTimerGivesTheWholeGraceStill_CSMA70_D29) {
  for (const Stale stale : {Stale::kStand, Stale::kDecay}) {
    CacheConfig c = small(10);
    c.stale = stale;
    CacheRig r(c);
    r.report("a");
    r.now += 1000 * kSecond;
    r.cache.advance(r.now);
    EXPECT_EQ(r.state("a"), SourceState::kStale);
    r.now += 10 * kSecond - 1;
    r.cache.advance(r.now);
    EXPECT_EQ(r.state("a"), SourceState::kStale);
    r.now += 1;
    r.cache.advance(r.now);
    EXPECT_EQ(r.state("a"), SourceState::kFailed);
  }
}

TEST(MetricCache, GraceIsConfigurable_CSMA70) {
  CacheConfig c = small(10);
  c.grace = 3 * kSecond;
  CacheRig r(c);
  r.report("a");
  r.next();
  r.next();
  EXPECT_EQ(r.now, kBegin + 123 * kSecond);
  EXPECT_EQ(r.state("a"), SourceState::kFailed);
}

TEST(MetricCache, StaleDecayLetsGasFallLinearlyToNothing_D27) {
  CacheConfig c = small(10);
  c.stale = Stale::kDecay;
  CacheRig r(c);
  r.report("a");
  r.next();
  EXPECT_EQ(r.cache.gas_of(*r.cache.entry("a"), r.now), 100u);
  for (uint32_t tenth = 1; tenth < 10; ++tenth) {
    EXPECT_EQ(r.next().worth_less.size(), 1u);
    EXPECT_EQ(r.now, kBegin + (120 + tenth) * kSecond);
    EXPECT_EQ(r.cache.gas_of(*r.cache.entry("a"), r.now), 100 - 10 * tenth);
  }
  r.next();
  EXPECT_EQ(r.state("a"), SourceState::kFailed);
}

TEST(MetricCache, AtTheLimitTheLeastRecentlyUpdatedGivesWay_CSMA74_CSMA75_D19) {
  CacheRig r(small(3));
  for (const char* id : {"a", "b", "c"}) r.report(id);
  r.heard("a");
  r.heard("b", SourceEvent::kSign);  // no update
  r.cache.entry("b");                // a look-up refreshes nothing
  (void)r.cache.table().find("b");
  r.report("d");
  EXPECT_EQ(r.last.evicted->id->csci_id, "b");
  EXPECT_EQ(r.last.evicted->state, SourceState::kHealthy);
  EXPECT_EQ(r.cache.size(), 3u);
  EXPECT_FALSE(r.cache.table().find("b"));
  r.report("e");
  EXPECT_EQ(r.last.evicted->id->csci_id, "c");
}

TEST(MetricCache, FailedThenStaleGiveWayFirst_D19) {
  CacheRig r(small(3), {.share = Share{1.0}, .hold = kSecond});
  r.report("failed");
  r.now += 5 * kSecond;
  r.report("stale");
  r.next();
  r.next();  // 130 s
  EXPECT_EQ(r.state("stale"), SourceState::kStale);
  r.cache.advance(kBegin + 130 * kSecond);
  EXPECT_EQ(r.state("failed"), SourceState::kFailed);
  r.now = kBegin + 130 * kSecond;
  r.report("live");
  r.report("x");
  EXPECT_EQ(r.last.evicted->id->csci_id, "failed");
  r.report("y");
  EXPECT_EQ(r.last.evicted->id->csci_id, "stale");
  r.report("z");
  EXPECT_EQ(r.last.evicted->id->csci_id, "live");
}

TEST(MetricCache, AtLimitRefuseTurnsTheNewcomerAway_D19) {
  CacheConfig c = small(2);
  c.at_limit = AtLimit::kRefuse;
  CacheRig r(c);
  r.report("a");
  r.report("b");
  EXPECT_EQ(r.admit("c"), Refusal::kCacheFull);
  EXPECT_FALSE(r.admit("a"));
  EXPECT_EQ(r.cache.size(), 2u);
  r.next();
  r.now += 10 * kSecond;
  r.cache.advance(r.now);
  EXPECT_EQ(r.state("a"), SourceState::kFailed);
  r.report("c");  // what has failed is worth nothing
  EXPECT_EQ(r.last.evicted->id->csci_id, "a");
}

TEST(MetricCache, AnIdentitysQuotaIsAShareOfTheCache_D19) {
  CacheConfig c = small(20);
  c.quota_per_identity = Share{0.1};
  CacheRig r(c);
  r.report("a", "mallory");
  r.report("b", "mallory");
  EXPECT_EQ(r.admit("c", "mallory"), Refusal::kQuotaIdentity);
  r.report("c", "alice");
  r.cache.remove("a");
  r.report("d", "mallory");
}

TEST(MetricCache, AServicesQuotaToo_AndAtLeastOneEntry_D19) {
  CacheConfig c = small(20);
  c.quota_per_cs_id = Share{0.01};
  CacheRig r(c);
  r.report("a", "host", "ARS");
  EXPECT_EQ(r.admit("b", "host", "ARS"), Refusal::kQuotaCsId);
  r.report("b", "host", "VRS");
}

TEST(MetricCache, FailedEntriesDoNotCountInAQuotaUntilTheyComeBack_D19) {
  CacheConfig c = small(20);
  c.quota_per_identity = Share{0.05};
  CacheRig r(c);
  r.report("a");
  r.next();
  r.next();
  r.report("b");
  EXPECT_EQ(r.admit("a"), Refusal::kQuotaIdentity);
}

TEST(MetricCache, AnotherIdentityThatReportsForItCountsInItsOwnQuota_D19) {
  CacheConfig c = small(20);
  c.quota_per_identity = Share{0.05};
  CacheRig r(c);
  r.report("a", "old");
  r.report("b", "new");
  EXPECT_EQ(r.admit("a", "new"), Refusal::kQuotaIdentity);
  r.cache.remove("b");
  EXPECT_FALSE(r.admit("a", "new"));
  EXPECT_EQ(r.cache.entry("a")->id->identity, "new");
  r.report("c", "old");
}

TEST(MetricCache, ALowerLimitEvictsAtOnce_CSMA74_CSMA76) {
  CacheRig r(small(10));
  for (uint32_t i = 0; i < 10; ++i) r.report(sci(i));
  const auto evicted = r.cache.configure(small(7), {});
  ASSERT_EQ(evicted.size(), 3u);
  EXPECT_EQ(evicted[0].id->csci_id, "sci-0");
  EXPECT_EQ(evicted[2].id->csci_id, "sci-2");
}

TEST(MetricCache, AReloadMovesTheTimersOfThoseThatAreHere_CSMA68) {
  CacheRig r;
  r.report("a");
  CacheConfig c = small(100);
  c.ttl_gas = 30 * kSecond;
  r.cache.configure(c, {});
  EXPECT_EQ(r.cache.next_due(), kBegin + 30 * kSecond);
  r.next();
  c.grace = 2 * kSecond;
  r.cache.configure(c, {});
  EXPECT_EQ(r.cache.next_due(), kBegin + 32 * kSecond);
}

TEST(MetricCache, ManySourcesShareOneClockCheaply_CSMA178) {
  CacheRig r({.max_entries = 100'000, .quota_per_identity = Share{1.0}});
  for (uint32_t i = 0; i < 100'000; ++i) {
    r.now = kBegin + i;
    r.report(sci(i));
  }
  EXPECT_EQ(r.cache.size(), 100'000u);
  EXPECT_EQ(r.cache.next_due(), kBegin + 120 * kSecond);
  r.now = kBegin + 100'000;
  r.heard(sci(0));
  EXPECT_EQ(r.cache.next_due(), kBegin + 120 * kSecond + 1);
}

}  // namespace
}  // namespace margay::c_sma
