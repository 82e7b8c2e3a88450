// SPDX-License-Identifier: Apache-2.0
#pragma once

// Words of the site file for its enumerations, and names of endpoints, as commands show them. Any thread.

#include <string>
#include <string_view>

#include "dataplane/core/site_table.h"

namespace margay::dp {

std::string_view word_of(Mode v);
std::string_view word_of(Balance v);
std::string_view word_of(UnknownFlow v);
std::string_view word_of(WhenNoneHealthy v);
std::string_view word_of(WhenFull v);
std::string_view word_of(Idle v);
std::string_view word_of(HealthState v);
std::string_view word_of(Admin v);

std::string seconds_of(Nanoseconds v);  // "0.25s", "300s"
std::vector<std::string> endpoints_of(const SiteTable& table, const Sci& sci);
std::string address_of(const Instance& instance);  // "10.1.0.11:8080"

}  // namespace margay::dp
