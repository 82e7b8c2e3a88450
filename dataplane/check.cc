// SPDX-License-Identifier: Apache-2.0
#include "dataplane/check.h"

#include <vector>

#include <fmt/format.h>

#include "dataplane/core/site_table.h"

namespace margay::dp {
namespace {

std::string counted(size_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

}  // namespace

Result<std::string> check_site(const SiteConfig& config) {
  std::vector<MacAddress> macs;
  for (size_t i = 0; i < config.ports.size(); ++i) {
    macs.push_back(config.ports[i].mac.value_or(MacAddress{{2, 0, 0, 0, 0, static_cast<uint8_t>(i)}}));
  }
  auto table = SiteTable::build(config, macs);
  if (!table) return in(config.file, table.error());
  return fmt::format("site {}: {}, {}, {}, {}, {}, {}", config.site, counted(config.ports.size(), "port"),
                     counted(config.forwarders.size(), "forwarder"), counted(config.scis.size(), "SCI"),
                     counted((*table)->instances.size(), "instance"), counted(config.workers, "worker"),
                     counted(config.flows, "flow"));
}

}  // namespace margay::dp
