// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the cache is to hold after a report (D-10, D-42). Pure functions.

#include "control/c_sma/cache_entry.h"
#include "control/c_sma/metric_cache.h"
#include "control/sci/report.h"

namespace margay::c_sma {

// Of a believed report. A delta leaves out optional metrics that are as they were.
MetricCache::Heard believed(const control::Report& report, const CacheEntry& before);

// Of one in quarantine: what is worse than before is believed, the rest stays.
MetricCache::Heard doubted(const control::Report& report, const CacheEntry& before);

}  // namespace margay::c_sma
