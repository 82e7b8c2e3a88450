// SPDX-License-Identifier: Apache-2.0
#pragma once

// Weighted rendezvous hashing, for balance: consistent-hash. Flow and instance together draw a number u between 0 and
// 1; the instance with the least -ln(u) / weight takes the flow. That is the least of independent exponential times
// with the weights as rates, so each instance wins weight / (sum of weights) of all flows; and as no draw depends on
// the others, one that comes takes only what it wins, and one that goes gives up only what it had (Thaler and
// Ravishankar, "Using name-based mappings to increase hit rates", 1998; Schindelhauer and Schomaker, "Weighted
// distributed hash tables", 2005).
//
// No secret and no index goes into it: every worker, and every data plane with the same site file, draws the same.
// A client can aim at an instance therefore, up to its slots. Any thread.

#include <cstdint>
#include <string_view>

#include "dataplane/core/flow_table.h"

namespace margay::dp {

// Of an instance, by the names that the site file gives it.
uint64_t rendezvous_name(std::string_view csci_id, std::string_view si_id);
// Of a flow, by the client's address, port and protocol.
uint64_t rendezvous_flow(const FlowKey& flow);

// Between 0 and 1, neither of them.
inline double rendezvous_draw(uint64_t flow, uint64_t name) {
  uint64_t v = (flow ^ name) * 0xbf58476d1ce4e5b9;
  v = (v ^ v >> 32) * 0x94d049bb133111eb;
  v ^= v >> 29;
  return (static_cast<double>(v >> 12) + 0.5) * 0x1p-52;
}

}  // namespace margay::dp
