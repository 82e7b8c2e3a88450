// SPDX-License-Identifier: Apache-2.0
#pragma once

// A core of a C-SMA in simulated time, and reports for it. What came out is kept.

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "control/c_sma/c_sma.h"

namespace margay::c_sma::test {

using control::Report;
using control::Trigger;
using northbound::Row;
using northbound::WithdrawReason;

inline constexpr Nanoseconds kBegin = 1000 * kSecond;
inline constexpr int64_t kUnix = 1'700'000'000'000;

// The rows of CSMA-65.
inline const std::string kArs1 = "188.3.67.3:67", kVrs = "188.3.67.3:68", kArs2 = "188.3.67.4:69",
                         kLlms = "188.3.67.4:70";
inline constexpr HealthSummary kHealthyOne{1, 0, 0, 0}, kDegradedOne{0, 1, 0, 0}, kDeadOne{0, 0, 1, 0};

inline CSmaConfig example_config() {
  CSmaConfig c{.identity = "c-sma", .accept = {{kArs1, "ARS"}, {kVrs, "VRS"}, {kArs2, "ARS"}, {kLlms, "LLMS"}}};
  c.cache.quota_per_identity = Share{1.0};
  return c;
}
inline CSmaConfig config_of(uint32_t scis, const std::string& cs_id = "ARS") {
  CSmaConfig c{.identity = "c-sma"};
  c.cache.max_entries = 2 * scis + 16;
  for (uint32_t i = 0; i < scis; ++i) c.accept.push_back({"sci-" + std::to_string(i), cs_id});
  c.cache.quota_per_identity = Share{1.0};
  return c;
}
inline std::string sci(uint32_t i) { return "sci-" + std::to_string(i); }

struct Said {  // by an SCI
  std::optional<uint32_t> gas = 100, computing_time = 10;
  HealthSummary health = kHealthyOne;
  Trigger trigger = Trigger::kPeriodic;
  bool full = true;
  Admin admin = Admin::kEnabled;
  std::optional<uint32_t> price = {}, reputation = {}, security_level = {};
  Nanoseconds interval = 60 * kSecond;
  uint64_t epoch = 1;
};

inline Report report_of(const std::string& csci_id, const std::string& cs_id, uint64_t sequence, const Said& said,
                        int64_t unix_ms = kUnix) {
  Report r{.csci_id = csci_id,
           .cs_id = cs_id,
           .timestamp_ms = unix_ms,
           .epoch = said.epoch,
           .sequence = sequence,
           .full = said.full,
           .trigger = said.trigger,
           .reporting_interval = said.interval};
  if (said.gas) r.state.gas = control::Gas{.value = *said.gas};
  r.state.computing_time.value = said.computing_time;
  r.state.health = said.health;
  r.state.admin = said.admin;
  r.state.price = said.price;
  r.state.reputation = said.reputation;
  r.state.security_level = said.security_level;
  return r;
}

class CSmaRig {
 public:
  explicit CSmaRig(CSmaConfig c = example_config(), const SavedState& saved = {}, Nanoseconds begin = kBegin,
                   int64_t unix_begin = kUnix)
      : config(std::move(c)), now(begin), wall(unix_begin), core(config, saved, time()) {
    peer = std::make_shared<Peer>(Peer{.identity = "here", .co_located = true});
  }

  Time time() const { return {now, wall + skew_ms}; }
  void pass(Nanoseconds span) {
    now += span;
    wall += static_cast<int64_t>(span / kMillisecond);
  }

  void handle(const Event& event) {
    for (Action& action : core.handle(event, time())) {
      if (auto* commit = std::get_if<Commit>(&action)) {
        apply(*commit);
        commits.push_back(*commit);
      }
      if (auto* audit = std::get_if<Audit>(&action)) audits.push_back(*audit);
      if (auto* pull = std::get_if<PullWanted>(&action)) pulls.push_back(pull->csci_id);
      if (auto* answer = std::get_if<Judged>(&action)) judged.push_back(*answer);
      if (auto* close = std::get_if<CloseStream>(&action)) closed.push_back(close->stream);
      if (auto* change = std::get_if<SourceChanged>(&action)) changes.push_back(*change);
      if (auto* over = std::get_if<FirstRoundOver>(&action)) rounds.push_back(over->missing);
    }
  }
  void tick() { handle(Tick{}); }
  // Does all that is due within so much time, when it is due.
  void run_for(Nanoseconds span) {
    const Nanoseconds end = now + span;
    while (core.next_due() <= end) {
      pass(std::max(now, core.next_due()) - now);
      tick();
    }
    pass(end - now);
    tick();
  }

  std::string service_of(const std::string& csci_id) const {
    const auto found = std::find_if(config.accept.begin(), config.accept.end(),
                                    [&](const AcceptedSci& s) { return s.csci_id == csci_id; });
    return found == config.accept.end() ? "ARS" : found->cs_id;
  }
  Report next_report(const std::string& csci_id, const Said& said = {}) {
    return report_of(csci_id, service_of(csci_id), ++sequences[csci_id], said, wall);
  }
  Verdict send(Report report, StreamId stream = 0, bool pulled = false) {
    handle(ReportReceived{std::move(report), peer, stream, pulled});
    return judged.back().verdict;
  }
  Verdict report(const std::string& csci_id, const Said& said = {}) { return send(next_report(csci_id, said)); }
  std::string reason() const { return std::string(judged.back().reason); }
  void reload(const CSmaConfig& c) {
    config = c;
    handle(ConfigChanged{c});
  }
  // The four SCIs of CSMA-65.
  void report_example() {
    report(kArs1, {.gas = 400, .computing_time = 5});
    report(kVrs, {.gas = 100, .computing_time = 15});
    report(kArs2, {.gas = 600, .computing_time = 6});
    report(kLlms, {.gas = 300, .computing_time = 12, .health = kDegradedOne});
  }
  void forget() {
    commits.clear();
    audits.clear();
    pulls.clear();
    judged.clear();
    closed.clear();
    changes.clear();
  }

  // What a C-PS holds.
  const Row* row(const std::string& cs_id, const std::optional<std::string>& csci_id = std::nullopt) const {
    const auto found = table.find({cs_id, csci_id});
    return found == table.end() ? nullptr : &found->second;
  }
  std::optional<uint32_t> gas(const std::string& cs_id,
                              const std::optional<std::string>& csci_id = std::nullopt) const {
    const Row* r = row(cs_id, csci_id);
    return r == nullptr ? std::nullopt : r->metrics.gas;
  }
  size_t audited(AuditKind kind) const {
    return static_cast<size_t>(
        std::count_if(audits.begin(), audits.end(), [&](const Audit& a) { return a.kind == kind; }));
  }
  const CacheEntry* entry(const std::string& csci_id) const { return core.metric_cache().entry(csci_id); }
  SourceState state_of(const std::string& csci_id) const { return entry(csci_id)->state; }

  CSmaConfig config;
  Nanoseconds now;
  int64_t wall;
  int64_t skew_ms = 0;  // of our own wall clock
  CSma core;
  std::shared_ptr<Peer> peer;
  std::map<std::string, uint64_t> sequences;
  std::map<northbound::RowKey, Row> table;
  std::vector<Commit> commits;
  std::vector<Audit> audits;
  std::vector<std::string> pulls;
  std::vector<Judged> judged;
  std::vector<StreamId> closed;
  std::vector<SourceChanged> changes;
  std::vector<uint32_t> rounds;

 private:
  void apply(const Commit& commit) {
    for (const Row& r : commit.change.rows) table[r.key] = r;
    for (const northbound::Withdrawal& w : commit.change.withdrawals) table.erase(w.key);
  }
};

}  // namespace margay::c_sma::test
