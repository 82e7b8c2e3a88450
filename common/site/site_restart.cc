// SPDX-License-Identifier: Apache-2.0
#include "common/site/site_restart.h"

namespace margay {

std::vector<std::string> needs_restart(const SiteConfig& now, const SiteConfig& next) {
  std::vector<std::string> keys;
  const auto compare = [&keys](const char* key, bool same) {
    if (!same) keys.emplace_back(key);
  };
  compare("site", now.site == next.site);
  compare("dataplane.cli", now.cli_socket == next.cli_socket);
  compare("dataplane.control", now.control_socket == next.control_socket);
  compare("dataplane.bindings", now.bindings == next.bindings);
  compare("dataplane.workers", now.workers == next.workers);
  compare("dataplane.idle", now.idle == next.idle);
  compare("dataplane.flows", now.flows == next.flows);
  compare("dataplane.ports", now.ports == next.ports);
  compare("forwarders", now.forwarders == next.forwarders);
  return keys;
}

}  // namespace margay
