// SPDX-License-Identifier: Apache-2.0
#pragma once

// `c_sma` and `reports_to` of the site file: what the C-SMA's core is told, and the peers on both sides of it.

#include <optional>
#include <string>
#include <vector>

#include "common/net.h"
#include "control/c_sma/config.h"

namespace margay::control {

// A C-PS, and what it may be told (CSMA-139).
struct CpsTarget {
  std::string address;  // host:port
  std::string identity;
  std::vector<std::string> cs_ids;
  bool operator==(const CpsTarget&) const = default;
};

struct CSmaSpec {
  c_sma::CSmaConfig core;
  std::string listen = {};  // ADDRESS:PORT where SCIs call; empty: only those of this process
  std::vector<CpsTarget> c_ps = {};
  bool operator==(const CSmaSpec&) const = default;
};

// Where an SCI's reports go that do not stay in the process.
struct ReportsTo {
  std::string address;           // host:port of the C-SMA
  std::string identity = {};     // its C-SMA identity; empty: any that the CA vouches for
  std::string certificate, key;  // the SCI's own; empty: those of `security`
  bool operator==(const ReportsTo&) const = default;
};

}  // namespace margay::control
