// SPDX-License-Identifier: Apache-2.0
#include "common/sci_config.h"

#include <algorithm>

namespace margay {

std::string_view word_of(Mode v) {
  switch (v) {
    case Mode::kNat:
      return "nat";
    case Mode::kL2Dsr:
      return "l2-dsr";
    case Mode::kIpip:
      return "ipip";
    case Mode::kGue:
      return "gue";
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
    case Balance::kWeightedResponseTime:
      return "weighted-response-time";
    case Balance::kResourceAware:
      return "resource-aware";
    case Balance::kConsistentHash:
      return "consistent-hash";
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

std::string_view word_of(OnUnhealthy v) {
  switch (v) {
    case OnUnhealthy::kReset:
      return "reset";
    case OnUnhealthy::kRebind:
      return "rebind";
    case OnUnhealthy::kKeep:
      return "keep";
  }
  return "?";
}

std::string_view word_of(UdpChecksum v) {
  switch (v) {
    case UdpChecksum::kComputed:
      return "computed";
    case UdpChecksum::kZero:
      return "zero";
  }
  return "?";
}

uint16_t bytes_added(const SciPolicy& sci, const IpAddress& instance) {
  constexpr uint16_t kIpv4 = 20, kIpv6 = 40, kUdp = 8, kGue = 4;
  if (!is_tunnel(sci.mode)) return 0;
  const uint16_t ip = instance.is_v4() ? kIpv4 : kIpv6;
  if (sci.mode == Mode::kIpip) return ip;
  return static_cast<uint16_t>(ip + kUdp + (sci.gue.variant == 0 ? kGue : 0));
}

uint16_t mtu_needed(const SciPolicy& sci, const IpAddress& instance) {
  constexpr uint16_t kIpv4 = 68, kIpv6 = 1280;
  const bool v6 =
      std::any_of(sci.endpoints.begin(), sci.endpoints.end(), [](const Endpoint& e) { return !e.address.is_v4(); });
  return static_cast<uint16_t>((v6 ? kIpv6 : kIpv4) + bytes_added(sci, instance));
}

}  // namespace margay
