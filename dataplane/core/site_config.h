// SPDX-License-Identifier: Apache-2.0
#pragma once

// The site file's values (common/site/site_config.h) as the data plane calls them, and what it derives from them. The
// core builds its SiteTable from a SiteConfig.

#include <cstddef>
#include <cstdint>

#include "common/health.h"
#include "common/site/site_config.h"
#include "dataplane/core/units.h"

namespace margay::dp {

using margay::Admin;
using margay::Balance;
using margay::ForwarderConfig;
using margay::HealthState;
using margay::Idle;
using margay::InstanceConfig;
using margay::Mode;
using margay::PortConfig;
using margay::SciConfig;
using margay::SiteConfig;
using margay::TimersConfig;
using margay::UnknownFlow;
using margay::WhenFull;
using margay::WhenNoneHealthy;

// Bytes of a packet buffer for frames on a port of this MTU, a power of two; and on any port of the site.
size_t buffer_bytes(uint16_t mtu);
size_t buffer_bytes(const SiteConfig& site);

}  // namespace margay::dp
