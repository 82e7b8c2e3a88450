// SPDX-License-Identifier: Apache-2.0
#pragma once

// counters.json: what a replay counted, every counter by its name, in a fixed order (docs/replay.md lists it).
// One thread, after the last step.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/result.h"
#include "dataplane/core/fast_path.h"
#include "dataplane/core/site_config.h"
#include "dataplane/core/site_table.h"
#include "dataplane/replay/capture.h"
#include "dataplane/replay/replay_io.h"

namespace margay::dp {

struct ReportInput {
  const SiteConfig& site;
  const SiteTable& table;
  const SharedState& shared;
  std::span<const std::unique_ptr<FastPath>> fast_paths;
  std::span<const CaptureReader> readers;
  const Account& account;
  uint64_t seed;
  Nanoseconds started, ended;
};

Result<void> write_report(const std::string& file, const ReportInput& input);

}  // namespace margay::dp
