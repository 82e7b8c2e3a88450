// SPDX-License-Identifier: Apache-2.0
#pragma once

// Who sent a report, as the transport authenticated it (CSMA-131). Plain values.

#include <compare>
#include <cstdint>
#include <set>
#include <string>

namespace margay::c_sma {

struct SciName {
  std::string csci_id, cs_id;
  auto operator<=>(const SciName&) const = default;
};

struct Peer {
  std::string identity;
  std::set<SciName> names = {};  // SCIs that its certificate lets it report for (D-16)
  bool co_located = false;       // this very process: it may report for each SCI of the site file
};

// A live connection of one SCI; 0: none, as the answer to a unary pull has none.
using StreamId = uint64_t;

}  // namespace margay::c_sma
