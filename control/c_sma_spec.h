// SPDX-License-Identifier: Apache-2.0
#pragma once

// `c_sma`, `reports_to` and `pulled_by` of the site file: what the C-SMA's core is told, and the peers on both sides of
// it.

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

// An SCI that is asked for its reports (CSMA-29..31), by gRPC or HTTPS.
struct PullTarget {
  std::string csci_id;
  std::string grpc = {};             // host:port
  std::string url = {};              // https://
  Nanoseconds every = 60 * kSecond;  // 0: only when its last report is old or in doubt
  Nanoseconds timeout = 5 * kSecond;
  bool operator==(const PullTarget&) const = default;
};

struct CSmaSpec {
  c_sma::CSmaConfig core;
  std::string listen = {};  // ADDRESS:PORT where SCIs call; empty: only those of this process
  std::vector<PullTarget> pull = {};
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

// Where SCIs of this process let themselves be asked.
struct PulledBy {
  std::optional<AddressPort> grpc = {}, http = {};
  std::string identity = {};  // who may ask; empty: any C-SMA that the CA vouches for
};

}  // namespace margay::control
