// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a C-SMA's configuration means for a session with one of its C-PSes. Any thread.

#include <string>
#include <utility>
#include <vector>

#include "control/c_sma/config.h"
#include "control/northbound/core/sender_session.h"

namespace margay::control {

// `c_ps` is its identity, `cs_ids` what it may see.
inline northbound::SenderConfig sender_config(const c_sma::CSmaConfig& core, std::string c_ps,
                                              std::vector<std::string> cs_ids) {
  const c_sma::UpdateConfig& u = core.updates;
  northbound::SenderConfig config;
  config.identity = core.identity;
  config.c_ps = std::move(c_ps);
  config.cs_ids = std::move(cs_ids);
  config.heartbeat = u.heartbeat;
  config.minimum_interval = u.minimum_interval;
  config.rate = u.rate;
  config.critical = u.critical;
  config.backoff_initial = u.backoff_initial;
  config.backoff_max = u.backoff_max;
  return config;
}

}  // namespace margay::control
