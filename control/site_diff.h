// SPDX-License-Identifier: Apache-2.0
#pragma once

// What differs between two readings of the site file, for the one who asked for the reload. Pure; any thread.

#include <string>
#include <vector>

#include "control/site_reader.h"

namespace margay::control {

// One line each, as "scis[web].instances[a]: added" or "scis[web].health: changed"; nothing where nothing differs.
std::vector<std::string> differences(const SiteSpec& now, const SiteSpec& next);

}  // namespace margay::control
