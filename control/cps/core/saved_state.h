// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a C-PS may write down so that its next process goes on: plain values, whose times are ages. A state that is
// older than what was acked is as good: it says how far it goes, and the C-SMA sends what came after. Pure functions;
// any thread.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/result.h"
#include "control/cps/core/service_table.h"
#include "control/northbound/core/verifier.h"

namespace margay::cps {

struct SavedRow {
  northbound::Row row;           // `measured_at` is its age
  Nanoseconds received_ago = 0;  // or renewed
  bool operator==(const SavedRow&) const = default;
};
struct SavedPart {
  std::string cs_id;
  northbound::RowVersion floor;
  std::optional<northbound::RowVersion> position;
  std::vector<SavedRow> rows;
  std::vector<northbound::Withdrawal> tombstones;
  bool operator==(const SavedPart&) const = default;
};
struct SavedSite {
  std::string c_sma;
  uint64_t epoch = 0;
  std::vector<SavedPart> parts;
  std::vector<std::pair<std::string, uint64_t>> nonces;  // key id, highest nonce that was used
  bool operator==(const SavedSite&) const = default;
};
struct SavedState {
  int64_t unix_ms = 0;  // when
  std::vector<SavedSite> sites;
  bool operator==(const SavedState&) const = default;
};

// By C-SMA.
using Peers = std::map<std::string, northbound::Peer>;

SavedState save(const ServiceTable& table, const Peers& peers, Time now);
// Fills an empty table. Time has gone by between the two processes by the wall clock; not less than none.
// An error: the state contradicts itself; nothing is changed.
Result<void> restore(const SavedState& saved, Time now, ServiceTable& table, Peers& peers);

}  // namespace margay::cps
