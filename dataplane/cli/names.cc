// SPDX-License-Identifier: Apache-2.0
#include "dataplane/cli/names.h"

#include <fmt/format.h>

namespace margay::dp {

std::string_view word_of(Mode v) {
  switch (v) {
    case Mode::kNat:
      return "nat";
    case Mode::kL2Dsr:
      return "l2-dsr";
  }
  return "?";
}

std::string_view word_of(Balance v) {
  switch (v) {
    case Balance::kRoundRobin:
      return "round-robin";
    case Balance::kLeastConnections:
      return "least-connections";
    case Balance::kSlotBased:
      return "slot-based";
  }
  return "?";
}

std::string_view word_of(UnknownFlow v) {
  switch (v) {
    case UnknownFlow::kReset:
      return "reset";
    case UnknownFlow::kDrop:
      return "drop";
    case UnknownFlow::kAdopt:
      return "adopt";
  }
  return "?";
}

std::string_view word_of(WhenNoneHealthy v) {
  switch (v) {
    case WhenNoneHealthy::kDegraded:
      return "degraded";
    case WhenNoneHealthy::kReject:
      return "reject";
  }
  return "?";
}

std::string_view word_of(WhenFull v) {
  switch (v) {
    case WhenFull::kReject:
      return "reject";
  }
  return "?";
}

std::string_view word_of(Idle v) {
  switch (v) {
    case Idle::kSpin:
      return "spin";
    case Idle::kSleep:
      return "sleep";
  }
  return "?";
}

std::string_view word_of(HealthState v) {
  switch (v) {
    case HealthState::kHealthy:
      return "HEALTHY";
    case HealthState::kDegraded:
      return "DEGRADED";
    case HealthState::kUnhealthy:
      return "UNHEALTHY";
    case HealthState::kUnknown:
      return "UNKNOWN";
  }
  return "?";
}

std::string_view word_of(Admin v) {
  switch (v) {
    case Admin::kEnabled:
      return "enabled";
    case Admin::kDraining:
      return "draining";
    case Admin::kDisabled:
      return "disabled";
  }
  return "?";
}

std::string seconds_of(Nanoseconds v) {
  if (v % kSecond == 0) return fmt::format("{}s", v / kSecond);
  return fmt::format("{:g}s", static_cast<double>(v) / static_cast<double>(kSecond));
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
