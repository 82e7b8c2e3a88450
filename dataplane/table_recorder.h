// SPDX-License-Identifier: Apache-2.0
#pragma once

// Records the site table of a running data plane into a file, for `margay-dataplane replay --table`. Whoever publishes
// a change only puts it into a bounded queue; the control thread writes, so that a slow disk holds up nobody else. A
// file that cannot be written, holds LineFile::kBytesMax, or takes less than what changes, ends the recording.
//
// Threads: note() under the data plane's mutex, all else by the control thread.

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "common/line_file.h"
#include "dataplane/core/live_site.h"
#include "dataplane/table_record.h"

namespace margay::dp {

class TableRecorder {
 public:
  // What waits to be written, at most: changes and the instances in them.
  static constexpr size_t kWaitingMax = 4 * size_t{shared_table::kInstancesMax};

  struct Status {
    std::string path;
    uint64_t lines = 0;  // written
    std::string fault;   // why the recording ended by itself; empty: it did not
  };

  // REQUIRES: nothing is there yet, or an empty file.
  static Result<std::unique_ptr<TableRecorder>> open(const std::string& path, uint64_t bytes_max = LineFile::kBytesMax);

  // From now on; times in it are of CLOCK_MONOTONIC.
  void note(decltype(TableLine::what) what);
  // What waits; true: the recording has ended with this.
  bool write();
  Status status() const { return {file_.path(), lines_, fault_}; }

 private:
  explicit TableRecorder(uint64_t bytes_max) : file_(bytes_max) {}

  LineFile file_;
  int64_t wall_ahead_ = 0;  // of CLOCK_MONOTONIC, when the recording began
  uint64_t lines_ = 0;
  std::string fault_;

  std::mutex mutex_;  // of what follows
  std::deque<TableLine> waiting_;
  size_t weight_ = 0;
  bool overflowed_ = false;
};

// What is recorded at first; `worker_now` on the clock of drain deadlines.
RecordedState state_of(const LiveSite& live, const SiteConfig& config, Nanoseconds worker_now);
// What the operator has set of an instance.
RecordedSetting setting_of(const SiteTable& table, InstanceIndex i, const std::optional<Override>& set,
                           Nanoseconds worker_now);

}  // namespace margay::dp
