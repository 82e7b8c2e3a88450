// SPDX-License-Identifier: Apache-2.0
// The core under events in any order, beside a model that sums everything anew after each.
#include <gtest/gtest.h>

#include <map>
#include <memory>

#include "tests/support/seed.h"
#include "tests/unit/control/c_sma/c_sma_rig.h"

namespace margay::c_sma {
namespace {

using margay::test::Random;
using test::CSmaRig;
using test::Said;
using test::sci;

constexpr uint32_t kScis = 8;
constexpr Nanoseconds kDead = 130 * kSecond;  // TTL and grace

// All that differs is committed, and all that is said is believed.
CSmaConfig exact_config() {
  CSmaConfig c = test::config_of(kScis);
  for (uint32_t i = 0; i < kScis; ++i) c.accept[i].cs_id = i % 3 == 0 ? "VRS" : "ARS";
  c.updates.gas_change = Share{0};
  c.updates.gas_absolute = 0;
  c.updates.computing_time_change = Share{0};
  c.validation.anomalous = Anomalous::kFlag;
  c.self_doubt.share = Share{4};  // never
  return c;
}

struct Model {
  struct Source {
    Said said;
    Nanoseconds heard = 0, measured = 0;
  };
  static bool serves(const Said& s) { return s.health.healthy + s.health.degraded > 0 && s.admin == Admin::kEnabled; }

  void age(Nanoseconds now) {
    std::erase_if(sources, [&](const auto& s) { return now - s.second.heard >= kDead; });
  }
  bool any_healthy(const std::string& cs_id) const {
    return std::any_of(sources.begin(), sources.end(), [&](const auto& s) {
      const bool in_scope = config.validation.consistency == Consistency::kSite || service(s.first) == cs_id;
      return in_scope && s.second.said.health.healthy > 0;
    });
  }
  std::string service(uint32_t i) const { return config.accept[i].cs_id; }
  uint32_t advertised(uint64_t gas, const std::string& cs_id) const {
    const uint32_t with_margin = config.transform.safety_margin.floor_of(static_cast<uint32_t>(gas));
    return any_healthy(cs_id) ? with_margin : 0;
  }

  // By service and SCI: GAS and Computing Time.
  using Table = std::map<std::string, std::string>;
  static std::string words(std::optional<uint32_t> gas, std::optional<uint32_t> time) {
    return (gas ? std::to_string(*gas) : "-") + " at " + (time ? std::to_string(*time) : "-") + " ms";
  }
  Table table(const std::set<std::string>& seen) const {
    Table rows;
    const bool per_sci = config.updates.advertise != Advertise::kPerSite;
    for (const auto& [i, source] : sources) {
      if (!per_sci) break;
      const Said& s = source.said;
      rows[service(i) + " " + sci(i)] = words(advertised(serves(s) ? *s.gas : 0, service(i)), s.computing_time);
    }
    if (config.updates.advertise == Advertise::kPerSci) return rows;
    for (const std::string& cs_id : seen) rows[cs_id + " "] = site(cs_id);
    return rows;
  }
  std::string site(const std::string& cs_id) const {
    uint64_t gas = 0, weighted = 0, plain = 0, serving = 0;
    for (const auto& [i, source] : sources) {
      const Said& s = source.said;
      if (service(i) != cs_id || !serves(s)) continue;
      gas += *s.gas;
      weighted += uint64_t{*s.gas} * *s.computing_time;
      plain += *s.computing_time;
      ++serving;
    }
    const uint64_t over = gas > 0 ? gas : serving, sum = gas > 0 ? weighted : plain;
    const auto time = serving > 0 ? std::optional(static_cast<uint32_t>((sum + over - 1) / over)) : std::nullopt;
    return words(advertised(gas, cs_id), time);
  }

  CSmaConfig config;
  std::map<uint32_t, Source> sources;
};

struct Story {
  explicit Story(uint64_t seed)
      : random(seed), model{exact_config(), {}}, rig(std::make_unique<CSmaRig>(model.config)) {}

  void report(uint32_t i) {
    Said s{.gas = random.below(1000), .computing_time = 1 + random.below(1000)};
    s.health = {random.below(3), random.below(2), random.below(2), 0};
    if (random.one_in(5)) s.admin = Admin::kDraining;
    const bool stops = random.one_in(10);
    if (stops) s.trigger = control::Trigger::kStop;
    const control::Report report = rig->next_report(sci(i), s);
    EXPECT_NE(rig->send(report), Verdict::kRefused) << rig->reason();
    if (!stops) seen.insert(model.service(i));
    if (stops) model.sources.erase(i);
    if (!stops) model.sources[i] = {s, rig->now, rig->now};
    if (!random.one_in(4)) return;
    EXPECT_EQ(rig->send(report), Verdict::kRefused);
  }
  void reload() {
    CSmaConfig& c = model.config;
    c.updates.advertise = static_cast<Advertise>(random.below(3));
    c.validation.consistency = static_cast<Consistency>(random.below(2));
    c.transform.safety_margin = Share{0.25 * (1 + random.below(4))};
    rig->reload(c);
  }
  void restart() {
    const SavedState saved = rig->core.save(rig->time());
    auto next = std::make_unique<CSmaRig>(model.config, saved, rig->now, rig->wall);
    next->sequences = rig->sequences;
    rig = std::move(next);
    rig->tick();
    seen.clear();
    std::erase_if(model.sources, [&](const auto& s) { return rig->now - s.second.measured > kDead; });
    for (auto& [i, source] : model.sources) {
      source.heard = rig->now;
      seen.insert(model.service(i));
    }
  }
  void revoke(const std::string& identity) {
    rig->handle(Revoked{identity});
    if (identity == rig->peer->identity) model.sources.clear();
  }
  void step() {
    switch (random.below(12)) {
      case 0:
        return reload();
      case 1:
        return random.one_in(4) ? restart() : rig->tick();
      case 2:
        return revoke(random.one_in(6) ? "here" : "nobody");
      case 3:
        return rig->run_for(random.below(70'000) * kMillisecond);
      default:
        rig->run_for(random.below(3000) * kMillisecond);
        return report(random.below(kScis));
    }
  }
  // What the core's cache holds.
  std::string sources() const {
    std::string text;
    for (uint32_t i = 0; i < kScis; ++i) {
      const CacheEntry* e = rig->entry(sci(i));
      if (e == nullptr) continue;
      text += sci(i) + " " + std::string(northbound::name_of(e->state)) + " " +
              Model::words(e->metrics.gas, e->metrics.computing_time_ms) + ", " +
              std::string(margay::name_of(e->health.sci_health())) + " " + std::string(margay::name_of(e->admin)) +
              "\n";
    }
    return text;
  }
  void expect_equal() {
    model.age(rig->now);
    Model::Table rows;
    for (const auto& [key, row] : rig->table) {
      rows[key.cs_id + " " + key.csci_id.value_or("")] = Model::words(row.metrics.gas, row.metrics.computing_time_ms);
    }
    ASSERT_EQ(rows, model.table(seen)) << sources();
    size_t cached = 0;
    rig->core.cache().for_each([&](const CacheEntry& e) { cached += e.state != SourceState::kFailed ? 1 : 0; });
    ASSERT_EQ(cached, model.sources.size());
  }

  Random random;
  Model model;
  std::unique_ptr<CSmaRig> rig;
  std::set<std::string> seen;  // CS-IDs, since the start
};

TEST(CSma, WhatACpsHoldsIsTheSumOfWhatLives) {
  const uint64_t seed = margay::test::test_seed();
  SCOPED_TRACE(margay::test::seed_text(seed));
  for (uint64_t i = 0; i < 60; ++i) {
    Story run(seed + i);
    for (int step = 0; step < 200; ++step) {
      run.step();
      run.expect_equal();
      if (testing::Test::HasFailure()) {
        ADD_FAILURE() << "run " << i << ", step " << step;
        return;
      }
    }
  }
}

}  // namespace
}  // namespace margay::c_sma
