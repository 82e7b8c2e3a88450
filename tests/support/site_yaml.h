// SPDX-License-Identifier: Apache-2.0
#pragma once

// A SiteConfig as the text of a site file that says everything and leaves nothing to defaults. Reading it back
// must give the same configuration; two configurations are equal when their texts are.

#include <string>

#include "dataplane/core/site_config.h"

namespace margay::test {

std::string site_yaml(const dp::SiteConfig& config);

}  // namespace margay::test
