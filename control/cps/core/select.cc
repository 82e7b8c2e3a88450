// SPDX-License-Identifier: Apache-2.0
#include "control/cps/core/select.h"

#include <algorithm>
#include <limits>
#include <tuple>

namespace margay::cps {
namespace {

using northbound::Row;

constexpr uint64_t kUnknown = std::numeric_limits<uint64_t>::max();

PassedOver judge(const ServiceTable::Part& part, const HeldRow& held, const SelectRequest& request,
                 std::optional<uint32_t> network, Nanoseconds now) {
  const Row& row = held.row;
  const bool sci_rows = part.rows.size() > part.rows.count(std::nullopt);
  if (!row.key.csci_id && sci_rows) return PassedOver::kCovered;
  if (ServiceTable::is_aged(part, held, now)) return PassedOver::kAged;
  if (row.source == northbound::SourceState::kFailed) return PassedOver::kFailed;
  if (!serves(row.sci_health)) return PassedOver::kUnhealthy;
  if (row.admin != Admin::kEnabled) return PassedOver::kAdmin;
  if (row.metrics.gas.value_or(0) == 0) return PassedOver::kNoGas;
  if (*row.metrics.gas < request.gas) return PassedOver::kTooFewSlots;
  if (!request.delay_ms) return PassedOver::kNot;
  if (!row.metrics.computing_time_ms) return PassedOver::kNoComputingTime;
  if (!network) return PassedOver::kNoDelay;
  const uint64_t delay = uint64_t{*row.metrics.computing_time_ms} + *network;
  return delay > *request.delay_ms ? PassedOver::kTooSlow : PassedOver::kNot;
}

// Ascending: the best first.
auto rank(const Choice& choice, const SelectRequest& request) {
  const uint64_t delay = choice.delay_ms.value_or(kUnknown);
  const auto& [key, version, metrics, health, sci_health, admin, source, scis, restored, at, valid] = choice.row;
  const uint64_t price = metrics.price ? *metrics.price : kUnknown;
  uint64_t distance = 0;
  if (request.cost) {
    distance =
        metrics.price ? std::max(*metrics.price, *request.cost) - std::min(*metrics.price, *request.cost) : kUnknown;
  }
  const uint64_t gas = metrics.gas.value_or(0);
  return std::tuple(choice.passed_over, distance, delay, price, std::numeric_limits<uint64_t>::max() - gas,
                    choice.c_sma, key);
}

}  // namespace

std::string_view name_of(PassedOver p) {
  switch (p) {
    case PassedOver::kNot:
      return "";
    case PassedOver::kCovered:
      return "covered_by_its_scis";
    case PassedOver::kAged:
      return "aged";
    case PassedOver::kFailed:
      return "failed";
    case PassedOver::kUnhealthy:
      return "unhealthy";
    case PassedOver::kAdmin:
      return "draining_or_disabled";
    case PassedOver::kNoGas:
      return "no_gas";
    case PassedOver::kTooFewSlots:
      return "too_few_slots";
    case PassedOver::kNoComputingTime:
      return "no_computing_time";
    case PassedOver::kNoDelay:
      return "no_network_delay";
    case PassedOver::kTooSlow:
      return "too_slow";
  }
  return "?";
}

std::vector<Choice> select(const ServiceTable& table, const SelectRequest& request, const NetworkDelay& network,
                           Nanoseconds now) {
  std::vector<Choice> choices;
  for (const auto& [c_sma, site] : table.sites()) {
    const auto part = site.parts.find(request.cs_id);
    if (part == site.parts.end()) continue;
    for (const auto& [id, held] : part->second.rows) {
      const auto delay = network ? network(c_sma, held.row.key) : std::nullopt;
      Choice choice{c_sma, held.row, std::nullopt, judge(part->second, held, request, delay, now)};
      if (delay && held.row.metrics.computing_time_ms) {
        choice.delay_ms = uint64_t{*held.row.metrics.computing_time_ms} + *delay;
      }
      choices.push_back(std::move(choice));
    }
  }
  std::sort(choices.begin(), choices.end(),
            [&](const Choice& a, const Choice& b) { return rank(a, request) < rank(b, request); });
  return choices;
}

}  // namespace margay::cps
