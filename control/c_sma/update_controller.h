// SPDX-License-Identifier: Apache-2.0
#pragma once

// Update Controller: which rows are committed when, against those committed last (CSMA-119..126, 148..153; D-1, D-12,
// D-20, D-34, D-36, D-37, D-40, D-48). Rates, intervals and connections are the northbound session's. Pure; one thread.
//
// set(), withdraw() and urge() tell what happened; flush() makes one change of each CS-ID that was touched. Whenever
// something of a CS-ID is committed, its site row goes with it.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "control/c_sma/config.h"
#include "control/c_sma/site_aggregate.h"
#include "control/c_sma/transform.h"
#include "control/northbound/core/row.h"

namespace margay::c_sma {

// Why rows are committed. Ascending: the last of several is told.
enum class Cause : uint8_t {
  kNone,
  kHeartbeat,      // CSMA-124
  kThreshold,      // CSMA-148
  kSecurityLevel,  // CSMA-122, D-20
  kPolicy,         // the configuration changed (CSMA-151)
  kRestored,       // out of the state file
  // From here on critical (D-34).
  kConsistency,  // CSMA-51..53 begin to hold, or not to
  kDiscovery,    // CSMA-150
  kSource,
  kHealth,  // CSMA-149
  kAdmin,
  kSecurity,
  kWithdrawal,
};
inline constexpr size_t kCauses = 13;
std::string_view name_of(Cause c);  // "HEARTBEAT"
constexpr bool critical(Cause c) { return c >= Cause::kConsistency; }

class UpdateController {
 public:
  struct Commit {
    northbound::Change change;  // versions are left blank
    Cause cause = Cause::kNone;
    std::optional<bool> consistent = {};  // news of the site row
  };
  struct Explanation {
    Transformed steps;                              // as of now
    std::optional<northbound::Row> committed = {};  // last
    Cause cause = Cause::kNone;                     // of that
    Nanoseconds at = 0;                             // of that
  };

  UpdateController(const CSmaConfig& config, Nanoseconds now);
  // Every row is judged anew. Services that nobody lists any more are withdrawn.
  void configure(const CSmaConfig& config, Nanoseconds now);

  // What an SCI counts for. Another CS-ID than before: withdraw() it first.
  void set(const std::string& csci_id, const std::string& cs_id, northbound::SourceState source,
           const Contribution& contribution);
  // Nothing, if it is not known here.
  void withdraw(const std::string& csci_id, northbound::WithdrawReason reason);
  // Its rows go out whatever differs.
  void urge(const std::string& csci_id, Cause cause);

  std::vector<Commit> flush(Nanoseconds now);
  // Of the heartbeat.
  Nanoseconds next_due() const { return next_heartbeat_; }

  std::optional<Explanation> explain(const std::string& csci_id, Nanoseconds now) const;
  std::optional<Explanation> explain_site(const std::string& cs_id, Nanoseconds now) const;

 private:
  struct Line {  // of one row
    Smoother smoother;
    uint64_t changes = 0;  // of health and source
    bool consistent = true;
    std::optional<northbound::Row> committed;  // without its key
    Cause cause = Cause::kNone;
    Nanoseconds at = 0;
  };
  struct Sci : Line {
    std::string cs_id;
    northbound::SourceState source{};
    Contribution contribution;
  };
  struct Service : Line {
    SiteAggregate aggregate;
    std::set<std::string> scis;
    bool had_healthy = false;
  };
  struct Touched {
    std::set<std::string> scis;
    std::vector<northbound::Withdrawal> withdrawals;
    Cause cause = Cause::kNone;
    bool all = false;
    bool refresh = false;  // also rows that were only measured anew
  };
  struct Pending {  // a change being made
    Commit commit;
    bool go = false;  // something triggers it
    bool refresh = false;
    bool whole = false;  // the site row goes whether it differs or not (D-36)
    Nanoseconds now = 0;
  };

  Touched& touch(const std::string& cs_id, Cause cause);
  void touch_all(Cause cause);
  void watch_healthy();
  uint64_t healthy_scis(const Service& service) const;
  bool advertises_scis() const { return config_.updates.advertise != Advertise::kPerSite; }
  bool advertises_sites() const { return config_.updates.advertise != Advertise::kPerSci; }
  Transformed transform_sci(const Sci& sci, Smoother* smoother, Nanoseconds now) const;
  Transformed transform_site(const Service& service, Smoother* smoother, Nanoseconds now) const;
  northbound::Row row_of(const Sci& sci, const Transformed& t) const;
  northbound::Row row_of(const Service& service, const Transformed& t, Nanoseconds now) const;
  std::optional<Commit> make(const std::string& cs_id, Touched& touched, Nanoseconds now);
  static void trigger(Pending& pending, Cause cause);
  void judge(Pending& pending, const Line& line, const northbound::Row& row, bool is_sci) const;
  void emit(Pending& pending, Line& line, northbound::Row row, northbound::RowKey key, bool always) const;
  void take_back(Pending& pending, Line& line, northbound::RowKey key) const;

  CSmaConfig config_;
  std::set<std::string> listed_;  // CS-IDs
  std::unordered_map<std::string, Sci> scis_;
  std::map<std::string, Service> services_;
  std::map<std::string, Touched> touched_;
  uint64_t healthy_ = 0;  // SCIs of the whole site
  bool had_healthy_ = false;
  Nanoseconds next_heartbeat_;
};

}  // namespace margay::c_sma
