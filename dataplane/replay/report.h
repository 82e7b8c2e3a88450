// SPDX-License-Identifier: Apache-2.0
#pragma once

// counters.json: what a replay counted, every counter by its name, in a fixed order (docs/replay.md lists it).
// One thread, after the last step.

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "common/result.h"
#include "dataplane/core/fast_path.h"
#include "dataplane/core/site_config.h"
#include "dataplane/core/site_table.h"
#include "dataplane/replay/capture.h"
#include "dataplane/replay/replay_io.h"

namespace margay::dp {

// Counters lie by index, and a recorded change may give an index to another SCI or instance: what the earlier one has
// counted is kept under its name.
class NamedCounters {
 public:
  using Json = nlohmann::ordered_json;

  // `changing`: instances are told with their index and generation. REQUIRES: shared outlives it.
  NamedCounters(const SharedState& shared, bool changing) : shared_(shared), changing_(changing) {}

  // Before the workers use `next`.
  void change(const SiteTable& now, const SiteTable& next);
  Json refused(const SiteTable& last);    // by SCI
  Json instances(const SiteTable& last);  // those whose index another one got first

 private:
  void take_refusals(const SiteTable& table);
  Json to_json(const SiteTable& table, InstanceIndex i) const;

  const SharedState& shared_;
  bool changing_;
  using Refused = std::array<uint64_t, kRefusals>;
  std::map<SciIndex, Refused> seen_;
  std::vector<std::pair<std::string, Refused>> refused_;  // by CSCI-ID, in the order of their appearance
  std::set<std::pair<InstanceIndex, uint16_t>> told_;     // by generation
  Json earlier_ = Json::array();
};

struct ReportInput {
  const SiteConfig& site;
  const SiteTable& table;
  NamedCounters& named;
  const SharedState& shared;
  std::span<const std::unique_ptr<FastPath>> fast_paths;
  std::span<const CaptureReader> readers;
  const Account& account;
  uint64_t seed;
  Nanoseconds started, ended;
};

Result<void> write_report(const std::string& file, const ReportInput& input);

}  // namespace margay::dp
