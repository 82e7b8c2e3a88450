// SPDX-License-Identifier: Apache-2.0
#include "dataplane/core/site_config.h"

#include <algorithm>
#include <bit>

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

size_t buffer_bytes(uint16_t mtu) {
  constexpr size_t kFrameOverhead = 96;  // Ethernet header, two tags, and af_packet's own header
  return std::max<size_t>(2048, std::bit_ceil(mtu + kFrameOverhead));
}

size_t buffer_bytes(const SiteConfig& site) {
  size_t bytes = buffer_bytes(0);
  for (const PortConfig& port : site.ports) bytes = std::max(bytes, buffer_bytes(port.mtu));
  return bytes;
}

}  // namespace margay::dp
