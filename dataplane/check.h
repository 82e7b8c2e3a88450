// SPDX-License-Identifier: Apache-2.0
#pragma once

// `--check`: whether a site file that reads well also makes a site, without any device. Pure; any thread.

#include <string>

#include "common/result.h"
#include "dataplane/core/site_config.h"

namespace margay::dp {

// One line that sums the site up. Ports without a `mac:` count as 02:00:00:00:00:NN.
Result<std::string> check_site(const SiteConfig& config);

}  // namespace margay::dp
