// SPDX-License-Identifier: Apache-2.0
#pragma once

// The lines of a recorded site table (docs/replay.md lists them): the state when the recording began, then each change
// that was published. Times are nanoseconds since 1970, by one offset between the clocks for the whole recording.
// Pure; any thread.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/health.h"
#include "common/net.h"
#include "common/result.h"
#include "common/shared_table/snapshot.h"
#include "common/units.h"

namespace margay::dp {

// What an operator has set of an instance over the site; nothing at all: it was cleared.
struct RecordedSetting {
  std::string csci_id, si_id;
  std::optional<Admin> admin;
  std::optional<Nanoseconds> drain_deadline;  // of kDraining
  std::optional<uint32_t> max_sessions;
  std::optional<uint16_t> weight;

  friend bool operator==(const RecordedSetting&, const RecordedSetting&) = default;
};

struct RecordedPort {
  std::string name;
  std::optional<MacAddress> mac;  // what the port had; always there
  std::vector<Prefix> addresses;

  friend bool operator==(const RecordedPort&, const RecordedPort&) = default;
};

struct RecordedState {
  std::optional<std::string> site;
  Nanoseconds monotonic = 0;  // CLOCK_MONOTONIC at the line's time
  std::vector<RecordedPort> ports;
  bool forwarding = true;
  bool waiting = false;          // for a control plane's first snapshot; the table is empty then
  shared_table::Snapshot table;  // complete; generation 1 also where no control plane has sent it
  std::vector<RecordedSetting> set;

  friend bool operator==(const RecordedState&, const RecordedState&) = default;
};

struct RecordedForwarding {
  bool on = true;

  friend bool operator==(const RecordedForwarding&, const RecordedForwarding&) = default;
};

struct TableLine {
  Nanoseconds time = 0;
  std::variant<RecordedState, shared_table::Snapshot, RecordedSetting, RecordedForwarding> what;

  friend bool operator==(const TableLine&, const TableLine&) = default;
};

// Without the line's end.
std::string format_line(const TableLine& line);
// The error names the field and what was expected. Snapshots are as the shared table's codec wants them.
Result<TableLine> parse_line(std::string_view line);

// From one clock to another that is `ahead` of it: what of the snapshot are times, and not 0 for none.
void shift_times(shared_table::Snapshot& snapshot, int64_t ahead);
Nanoseconds shifted(Nanoseconds time, int64_t ahead);

}  // namespace margay::dp
