// SPDX-License-Identifier: Apache-2.0
#pragma once

// The core of a C-SMA: wires Validator & Sanitizer, Metric Cache and Update Controller (CSMA-13), from a decoded report
// to what is to be advertised. Pure: events and the time go in, actions come out; the same stream gives the same
// actions. One thread; cache() may be read by any. Time must not go back.

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "control/c_sma/events.h"
#include "control/c_sma/metric_cache.h"
#include "control/c_sma/quarantine.h"
#include "control/c_sma/saved_state.h"
#include "control/c_sma/streams.h"
#include "control/c_sma/update_controller.h"
#include "control/c_sma/validator.h"

namespace margay::c_sma {

class CSma {
 public:
  static constexpr Nanoseconds kPullGap = kSecond;        // between two pulls of one SCI
  static constexpr Nanoseconds kPullAgain = 3 * kSecond;  // after one that failed, while the SCI is STALE

  CSma(const CSmaConfig& config, const SavedState& saved, Time now);

  std::vector<Action> handle(const Event& event, Time now);
  // When a Tick is wanted, unless another event comes first. The first one is, at once.
  Nanoseconds next_due() const;

  SavedState save(Time now) const;

  // ---- look-ups, as of the last event

  const EntryTable& cache() const { return cache_.table(); }
  const MetricCache& metric_cache() const { return cache_; }
  const Quarantine& quarantine() const { return quarantine_; }
  const ClockWatch& clocks() const { return validator_.clocks(); }
  std::optional<StreamId> stream_of(const std::string& csci_id) const { return streams_.of(csci_id); }
  bool first_round_over() const { return round_over_; }

  struct LastReport {  // whatever became of it
    control::Trigger trigger{};
    bool full = false, pulled = false;
    std::string identity;
    std::optional<uint32_t> gas, computing_time_ms;
    HealthSummary health;
    ReportOrder order;
    int64_t timestamp_ms = 0;
    Nanoseconds at = 0;
    Judgement judgement;
  };
  struct Explanation {
    std::optional<LastReport> last_report;
    std::optional<CacheEntry> entry;
    const Quarantine::Item* waiting = nullptr;
    std::optional<UpdateController::Explanation> row, site;
  };
  // From report to what was committed. Absent: the site file does not list it.
  std::optional<Explanation> explain(const std::string& csci_id) const;

 private:
  void on(const ReportReceived& e);
  void on(const ReportUnreadable& e);
  void on(const StreamClosed& e);
  void on(const PullFailed& e);
  void on(const Revoked& e);
  void on(const ConfigChanged& e);
  void on(const QuarantineRelease& e);
  void on(const QuarantineDrop& e);
  void on(const EpochReset& e);
  void on(const LoopLate& e);
  void on(const Tick& e);

  Judgement judge(const ReportReceived& e);
  std::optional<Judgement> claim_stream(const ReportReceived& e);
  std::optional<Judgement> admit(const ReportReceived& e);
  void answer(const ReportReceived& e, Judgement judgement);
  void note(const ReportReceived& e, const Judgement& judgement);
  void take(const ReportReceived& e, const Judgement& judgement);
  void deregister(const ReportReceived& e);
  void heard(const std::string& csci_id, const MetricCache::Heard& heard, std::string why);
  void publish(const std::string& csci_id);
  void remove(const std::string& csci_id, northbound::WithdrawReason reason, std::string why);
  void gone(const MetricCache::Gone& source, northbound::WithdrawReason reason, std::string why);
  void evicted(const MetricCache::Gone& source);
  void close(StreamId stream, std::string why);
  void pull(const std::string& csci_id, std::string why);
  void watch_clock();
  std::vector<std::string> entries_where(const std::function<bool(const CacheEntry&)>& wanted) const;
  void audit(AuditKind kind, std::string who, std::string what, std::string detail);
  void changed(const MetricCache::SourceChange& change, std::string why);
  void restore(const SavedState& saved);
  void age();
  void end_round();
  void flush();

  CSmaConfig config_;
  Validator validator_;
  MetricCache cache_;
  UpdateController updates_;
  Streams streams_;
  Quarantine quarantine_;
  std::unordered_map<std::string, LastReport> last_reports_;  // of those listed
  std::unordered_map<std::string, Nanoseconds> pulled_at_;    // of those in the cache
  std::set<std::pair<Nanoseconds, std::string>> pull_again_;  // when
  std::set<std::string> awaited_;                             // in the first round
  Nanoseconds round_until_ = 0;
  bool round_over_ = false, started_ = false, own_clock_ = false;

  // Of the event being handled.
  Time now_;
  std::vector<Action> actions_;
};

}  // namespace margay::c_sma
