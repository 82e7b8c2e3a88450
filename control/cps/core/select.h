// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which SCI, or site, a C-PS would send a request to: by the workflow of draft-zhangb-cats-cmas. Enough slots,
// Computing Time and network delay together within what is asked, then the cost nearest to what is asked. Pure; any
// thread that may read the table.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/units.h"
#include "control/cps/core/service_table.h"

namespace margay::cps {

struct SelectRequest {
  std::string cs_id;
  uint32_t gas = 1;                       // slots
  std::optional<uint32_t> delay_ms = {};  // at most: Computing Time and network delay together
  std::optional<uint32_t> cost = {};      // wanted; absent: delay comes first, then the lowest price
};

// Why a row was not chosen; of several reasons the first of these.
enum class PassedOver : uint8_t {
  kNot,
  kCovered,          // a site row, and the site's SCIs have rows of their own
  kAged,             // not heard of for longer than it allows (D-41)
  kFailed,           // source state FAILED
  kUnhealthy,        // neither HEALTHY nor DEGRADED
  kAdmin,            // draining or disabled
  kNoGas,            // no slot, or not known
  kTooFewSlots,      // fewer than asked for
  kNoComputingTime,  // not known
  kNoDelay,          // the network's is not known
  kTooSlow           // slower than asked for
};
std::string_view name_of(PassedOver p);  // "too_slow"

struct Choice {
  std::string c_sma;
  northbound::Row row;
  std::optional<uint64_t> delay_ms;  // Computing Time and network delay, where both are known
  PassedOver passed_over = PassedOver::kNot;
};

// Of the network towards a row's SCI or site, in ms; absent: not known.
using NetworkDelay = std::function<std::optional<uint32_t>(const std::string& c_sma, const northbound::RowKey& key)>;

// All rows of the CS-ID: first those that serve, the best first; then the others, each with its reason. A delay that is
// not known passes a row over only where the request asks for one.
std::vector<Choice> select(const ServiceTable& table, const SelectRequest& request, const NetworkDelay& network,
                           Nanoseconds now);

}  // namespace margay::cps
