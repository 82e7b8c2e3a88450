// SPDX-License-Identifier: Apache-2.0
#pragma once

// A recorded site table (dataplane/table_record.h) as replay wants it: read whole and judged before the first packet.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "common/result.h"
#include "dataplane/core/site_config.h"
#include "dataplane/core/units.h"
#include "dataplane/table_record.h"

namespace margay::dp {

class Recording {
 public:
  struct Change {
    uint64_t line = 0;  // from 1
    TableLine recorded;
  };

  // The state first, times that never go back, ports as the site file has them; else "FILE:LINE: what".
  static Result<Recording> read(const std::string& file, const SiteConfig& site);

  const RecordedState& state() const { return std::get<RecordedState>(state_.what); }
  const std::vector<Change>& changes() const { return changes_; }
  std::vector<MacAddress> port_macs() const;
  // Room for every index that is named.
  size_t instances_max() const { return instances_max_; }
  size_t scis_max() const { return scis_max_; }
  // Puts where it stands before an error.
  Error at(uint64_t line, const Error& error) const;

  // Of every instance that is named.
  std::vector<IpAddress> instance_addresses() const;

 private:
  explicit Recording(std::string file) : file_(std::move(file)) {}
  Result<void> take(std::string_view text, const SiteConfig& site);
  void make_room(const shared_table::Snapshot& snapshot);

  std::string file_;
  TableLine state_;
  std::vector<Change> changes_;
  uint64_t lines_ = 0;
  size_t instances_max_ = 1, scis_max_ = 1;
};

}  // namespace margay::dp
