// SPDX-License-Identifier: Apache-2.0
#pragma once

// Times and endpoints as commands show them. Any thread.

#include <string>
#include <vector>

#include "dataplane/core/site_table.h"

namespace margay::dp {

std::string seconds_of(Nanoseconds v);       // "0.25s", "300s"
double seconds_between(Tick from, Tick to);  // below 0 when `to` comes first
std::vector<std::string> endpoints_of(const SiteTable& table, const Sci& sci);
std::string address_of(const Instance& instance);  // "10.1.0.11:8080"

}  // namespace margay::dp
