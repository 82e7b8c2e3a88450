// SPDX-License-Identifier: Apache-2.0
#pragma once

// The Computing Service Table of a C-PS: the rows of its C-SMAs, by C-SMA, CS-ID and CSCI-ID, and what it takes to keep
// them right: which versions were withdrawn, how far each CS-ID is known. A row's version alone decides whether it is
// taken (CSMA-102), so nothing old ever revives or replaces one, whatever comes twice or late. Pure; one thread.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/time_point.h"
#include "control/northbound/core/messages.h"

namespace margay::cps {

struct HeldRow {
  northbound::Row row;
  Nanoseconds received_at = 0;
  bool operator==(const HeldRow&) const = default;
};

// A snapshot as it comes in; nothing of it is in the table before its end.
struct Staged {
  northbound::SnapshotBegin begin;
  std::map<northbound::RowKey, northbound::Row> rows;
  northbound::Digest digest;
  std::map<std::string, northbound::RowVersion> deltas;  // that came meanwhile: a CS-ID is known up to there
};

struct Refusal {
  northbound::RefusedRow row;
  northbound::NackCode code{};
};

class ServiceTable {
 public:
  using CsciId = std::optional<std::string>;
  struct Limits {
    size_t rows_max = 131'072;     // of one C-SMA: rows of 100,000 SCIs, and of their CS-IDs
    size_t tombstones_max = 1024;  // of one C-SMA and CS-ID
  };
  struct Tombstone {
    northbound::RowVersion version;
    northbound::WithdrawReason reason{};
    bool operator==(const Tombstone&) const = default;
  };
  // Of one C-SMA and CS-ID.
  struct Part {
    std::map<CsciId, HeldRow> rows;
    std::map<CsciId, Tombstone> tombstones;
    std::set<std::pair<northbound::RowVersion, CsciId>> by_version;  // the tombstones
    northbound::RowVersion floor;                    // outside of a snapshot, no row that is not held is new up to here
    std::optional<northbound::RowVersion> position;  // rows are whole up to here
    std::map<CsciId, northbound::RowVersion> refused;  // newer than what is held
    northbound::Digest digest;                         // of the rows
    std::optional<Nanoseconds> renewed_at;             // the C-SMA said that all rows stand
  };
  struct Site {
    uint64_t epoch = 0;
    std::map<std::string, Part, std::less<>> parts;
    size_t rows = 0;
  };

  ServiceTable() = default;
  explicit ServiceTable(Limits limits) : limits_(limits) {}

  // A C-SMA speaks of these CS-IDs in this epoch; its rows of others go (D-39's SCOPE). False: its epoch was higher.
  bool begin_session(const std::string& c_sma, uint64_t epoch, const std::set<std::string>& scope);
  // Where its C-SMA can go on without a snapshot; those CS-IDs of the scope of which that is known.
  std::vector<northbound::Position> resume(std::string_view c_sma) const;

  // Takes in what is newer and acceptable; tells what was refused. `staged`: the snapshot under way, if it has the
  // CS-ID. REQUIRES: a session began, and the delta's CS-ID is in its scope
  std::vector<Refusal> apply(const std::string& c_sma, const northbound::Delta& delta, Staged* staged, Nanoseconds now);
  // The snapshot's end. Removes rows of its CS-IDs and this C-SMA alone.
  std::vector<Refusal> apply(const std::string& c_sma, Staged& staged, Nanoseconds now);
  // Whether a view is ours; if it is, the rows are renewed. Not compared with what we refused unless `compare`.
  bool renew(const std::string& c_sma, const northbound::View& view, bool compare, Nanoseconds now);

  // What its C-SMA makes us remember of a CS-ID is bounded by the room for its rows: more than four times that is no
  // site that we are made for.
  bool too_many(uint64_t rows) const { return rows / 4 > limits_.rows_max; }
  bool too_many(const std::string& c_sma, const std::string& cs_id) const {
    const Part& part = sites_.at(c_sma).parts.find(cs_id)->second;
    return too_many(part.refused.size()) || too_many(part.tombstones.size());
  }

  // Its rows and epochs go: an operator knows that the C-SMA begins anew.
  void forget(std::string_view c_sma);

  // What another process saved: saved_state.h. REQUIRES: nothing of this C-SMA is here
  void adopt(const std::string& c_sma, Site site) { sites_[c_sma] = std::move(site); }

  const std::map<std::string, Site, std::less<>>& sites() const { return sites_; }
  const HeldRow* find(std::string_view c_sma, const northbound::RowKey& key) const;
  // How long ago the C-SMA spoke of the row. Times of a process before lie before the clock's beginning: they wrap.
  static Nanoseconds silence(const Part& part, const HeldRow& row, Nanoseconds now);
  // Longer ago than the row allows (D-41).
  static bool is_aged(const Part& part, const HeldRow& row, Nanoseconds now);
  size_t aged(Nanoseconds now) const;
  uint64_t ignored() const { return ignored_; }  // rows and withdrawals that were older than what was known

 private:
  static bool is_old(const Part& part, const CsciId& id, const northbound::RowVersion& version, bool of_snapshot);
  bool put(Site& site, Part& part, const northbound::Row& row, Nanoseconds now);
  static Refusal refuse(Part& part, const northbound::Row& row, northbound::NackCode code);
  static void erase(Site& site, Part& part, std::map<CsciId, HeldRow>::iterator row);
  void withdraw(Site& site, Part& part, const northbound::Withdrawal& withdrawal);
  void forget_tombstones(Part& part);
  static void sweep(Site& site, Part& part, const std::string& cs_id, const Staged& staged);

  Limits limits_;
  std::map<std::string, Site, std::less<>> sites_;
  uint64_t ignored_ = 0;
};

}  // namespace margay::cps
