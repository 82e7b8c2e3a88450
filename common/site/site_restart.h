// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reload: what of a site file cannot change while a data plane runs. Its sockets, ports, workers and memory, and who
// may inject, are taken once; SCIs and instances come and go by snapshots. Any thread.

#include <string>
#include <vector>

#include "common/site/site_config.h"

namespace margay {

// The keys that differ and want a restart, as the site file names them ("dataplane.workers"); empty: none does.
std::vector<std::string> needs_restart(const SiteConfig& now, const SiteConfig& next);

}  // namespace margay
