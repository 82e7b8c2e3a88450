// SPDX-License-Identifier: Apache-2.0
#pragma once

// The rows that a C-SMA advertises, as they are now, and the order in which they came to be so. This is the buffer of
// everything that a C-PS has not been sent yet (D-13, CSMA-171, 172): of each key it holds the newest row or withdrawal
// alone, so it is bounded by the C-SMA's cache and a bounded number of tombstones a CS-ID. Senders read it, each from
// where its C-PS stands. Pure; one thread.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "control/northbound/core/digest.h"
#include "control/northbound/core/row.h"

namespace margay::northbound {

class RowStore {
 public:
  using CsciId = std::optional<std::string>;  // absent: the site row
  using RowPtr = std::shared_ptr<const Row>;
  static constexpr size_t kTombstonesMax = 1024;

  struct Entry {
    RowPtr row;               // nullptr: withdrawn
    WithdrawReason reason{};  // of a withdrawal
    uint64_t commit = 0;
  };

  // Of one CS-ID. Commits are of this epoch.
  struct Part {
    std::map<CsciId, Entry> entries;
    std::set<std::pair<uint64_t, CsciId>> log;         // each key once, at its newest commit
    std::set<std::pair<uint64_t, CsciId>> tombstones;  // those of the log that are withdrawn
    uint64_t newest = 0, newest_critical = 0;
    uint64_t low_water = 0;  // a withdrawal up to here may be forgotten: who stands below needs a snapshot
    size_t rows = 0;
    Digest digest;  // of the rows
  };

  // REQUIRES: epoch > 0, tombstones_max > 0 (a CS-ID)
  explicit RowStore(uint64_t epoch, size_t tombstones_max = kTombstonesMax);

  // Gives one version to all of the change, and takes it in. Critical: D-34.
  // REQUIRES: each key's CS-ID is the change's; ids are UTF-8 and at most 255 bytes (D-25)
  RowVersion commit(Change change, bool critical);

  // Every SCI that was known reported once, or the time for it is over: now a row that is not here is gone (D-55).
  void end_first_round() { first_round_over_ = true; }
  bool first_round_over() const { return first_round_over_; }

  uint64_t epoch() const { return newest_.epoch; }
  RowVersion newest() const { return newest_; }
  const std::map<std::string, Part, std::less<>>& parts() const { return parts_; }
  const Part& part(std::string_view cs_id) const;  // an empty one where there is none

 private:
  void put(Part& part, const CsciId& id, Entry entry);
  void forget_tombstones(Part& part);

  RowVersion newest_;
  size_t tombstones_max_;
  bool first_round_over_ = false;
  std::map<std::string, Part, std::less<>> parts_;
};

}  // namespace margay::northbound
