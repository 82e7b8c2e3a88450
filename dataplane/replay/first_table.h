// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a replay begins with. One thread.

#include <memory>

#include "common/result.h"
#include "dataplane/core/site_config.h"
#include "dataplane/core/site_table.h"
#include "dataplane/replay/recording.h"

namespace margay::dp {

// A MAC by rule (assumed_mac()) for each next hop that has none in the site file. The recording may be none.
void assume_neighbours(SiteConfig& site, const Recording* recording);

// As the recording began, else as the site file says. `now` is the replay's clock.
Result<std::unique_ptr<SiteTable>> first_table(const SiteConfig& site, const Recording* recording, Nanoseconds now);

}  // namespace margay::dp
