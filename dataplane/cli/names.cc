// SPDX-License-Identifier: Apache-2.0
#include "dataplane/cli/names.h"

#include <fmt/format.h>

namespace margay::dp {

std::string seconds_of(Nanoseconds v) {
  if (v % kSecond == 0) return fmt::format("{}s", v / kSecond);
  return fmt::format("{:g}s", static_cast<double>(v) / static_cast<double>(kSecond));
}

double seconds_between(Tick from, Tick to) {
  return static_cast<int32_t>(to - from) * static_cast<double>(kTickLength) / static_cast<double>(kSecond);
}

std::vector<std::string> endpoints_of(const SiteTable& table, const Sci& sci) {
  std::vector<std::string> endpoints;
  for (const FrontendIndex f : sci.frontends) endpoints.push_back(table.frontends[f].endpoint.format());
  return endpoints;
}

std::string address_of(const Instance& instance) {
  return AddressPort{instance.address, from_wire16(instance.port)}.format();
}

}  // namespace margay::dp
