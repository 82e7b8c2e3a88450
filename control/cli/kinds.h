// SPDX-License-Identifier: Apache-2.0
#pragma once

// The arguments of margay-control's commands, and what several commands share. In whoever's turn it is.

#include <optional>
#include <string>
#include <vector>

#include "common/cli/command_table.h"
#include "control/service.h"

namespace margay::control {

void add_kinds(CommandTable& table, Service& service);

// Of an option [sci CSCI-ID]: that one; all of them without it.
std::vector<std::string> chosen_scis(Service& service, const Arguments& arguments);

uint64_t seconds_of(Nanoseconds time);
double milliseconds_of(Nanoseconds time);
template <class T>
Cell cell_of(const std::optional<T>& value) {
  return value ? Cell(*value) : Cell();
}

}  // namespace margay::control
