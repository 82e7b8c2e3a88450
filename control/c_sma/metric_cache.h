// SPDX-License-Identifier: Apache-2.0
#pragma once

// Metric Cache: the newest believed values of each source, its state, and the timers that age it (CSMA-56..82, 163;
// D-19, D-27, D-52). Pure; one thread writes, any thread may read table().
//
// A FAILED source keeps its entry, without worth, until it is needed: it is the first to be evicted.

#include <array>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "control/c_sma/config.h"
#include "control/c_sma/entry_table.h"
#include "control/c_sma/judgement.h"
#include "control/c_sma/self_doubt.h"

namespace margay::c_sma {

class MetricCache {
 public:
  using Id = std::shared_ptr<const SourceId>;

  struct SourceChange {
    Id id;
    std::optional<SourceState> from;  // absent: discovered
    SourceState to{};
  };
  struct Gone {
    Id id;
    SourceState state{};
  };
  struct Admission {
    std::optional<Refusal> refusal = {};
    std::optional<SourceChange> discovered = {};
    std::optional<Gone> evicted = {};
  };
  struct Heard {  // of a report that was not refused
    SourceEvent event{};
    uint64_t epoch = 0, sequence = 0;
    Nanoseconds reporting_interval = 0;
    bool doubted = false;
    // What it is worth now; absent: as before.
    std::optional<northbound::Metrics> metrics = {};
    HealthSummary health = {};
    Admin admin = Admin::kEnabled;
  };
  struct Aged {
    std::vector<SourceChange> changes;
    std::vector<Id> worth_less;  // a class of its metrics expired, or it decays
    std::vector<Id> spared;      // their grace is over, but doubt lets them live
    bool doubt_began = false, doubt_ended = false;
  };

  static constexpr Nanoseconds kTtl = 120 * kSecond;  // where nobody tells an interval

  MetricCache(const CacheConfig& config, const SelfDoubtConfig& self_doubt);
  // Those evicted by a lower limit.
  std::vector<Gone> configure(const CacheConfig& config, const SelfDoubtConfig& self_doubt);

  // Room for a source, before heard().
  Admission admit(const SourceId& id, Nanoseconds now);
  // REQUIRES: it is here
  std::optional<SourceChange> heard(const std::string& csci_id, const Heard& report, Nanoseconds now);
  // Out of a state file: ACTIVE, and as if heard now. Without room it is left out.
  bool restore(CacheEntry entry, Nanoseconds now);
  // REQUIRES: it is here
  void remove(const std::string& csci_id);

  Aged advance(Nanoseconds now);
  Nanoseconds next_due() const { return due_.empty() ? kNever : due_.begin()->first.first; }
  // True: doubt began.
  bool loop_late(Nanoseconds by, Nanoseconds now);

  // nullptr: not here. Until the next change.
  const CacheEntry* entry(const std::string& csci_id) const;
  // GAS as it counts now: that of a STALE entry may decay (D-27); a FAILED one's is 0.
  std::optional<uint32_t> gas_of(const CacheEntry& entry, Nanoseconds now) const;
  const EntryTable& table() const { return table_; }
  size_t size() const { return sources_.size(); }
  size_t count(SourceState state) const { return counts_[static_cast<size_t>(state)]; }
  const SelfDoubt& doubt() const { return doubt_; }

 private:
  struct Source;
  using Order = std::list<Source*>;
  struct Source {
    uint64_t serial = 0;  // never used again
    EntryTable::Slot* slot = nullptr;
    Nanoseconds due = kNever;
    Order* order = nullptr;
    Order::iterator place = {};
    Nanoseconds silent_at = 0;
    bool silent = false;    // in doubt_'s count
    bool deferred = false;  // its grace is over, doubt lets it live
  };

  static const CacheEntry& now_of(const Source& s) { return EntryTable::entry(s.slot); }
  Source& insert(CacheEntry entry);
  void put(Source& source, CacheEntry entry);
  void count_in(const CacheEntry& entry, int sign);
  std::optional<Refusal> over_quota(const SourceId& id) const;
  Gone evict();
  void place(Source& source);
  Ttl ttl_of(Nanoseconds reporting_interval) const;
  Nanoseconds due_of(const CacheEntry& entry, Nanoseconds now) const;
  Nanoseconds expiry_of(const CacheEntry& entry) const;
  void schedule(Source& source, Nanoseconds at);
  void age(Source& source, Nanoseconds now, Aged& aged);
  void go_silent(Source& source, Nanoseconds now, Aged& aged);
  void end_grace(Source& source, Nanoseconds now, Aged& aged);
  void expire_classes(Source& source, Nanoseconds now, Aged& aged);
  void sound(Source& source);

  CacheConfig config_;
  SelfDoubt doubt_;
  EntryTable table_;
  std::unordered_map<std::string, Source> sources_;          // by CSCI-ID
  std::map<std::pair<Nanoseconds, uint64_t>, Source*> due_;  // by time and serial
  uint64_t serials_ = 0;
  Order failed_, stale_, live_;                                          // each from the least recently updated
  std::map<std::string, uint32_t, std::less<>> by_identity_, by_cs_id_;  // not FAILED
  std::map<Nanoseconds, uint32_t> ttls_;                                 // of those not FAILED
  std::array<size_t, 4> counts_ = {};                                    // by SourceState
  size_t deferred_ = 0;
};

}  // namespace margay::c_sma
