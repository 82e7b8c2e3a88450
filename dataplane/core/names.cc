// SPDX-License-Identifier: Apache-2.0
// Names of the core's enumerations, as show and traces print them.
#include "dataplane/core/flow_entry.h"
#include "dataplane/core/neighbours.h"

namespace margay::dp {

std::string_view name_of(FlowState s) {
  switch (s) {
    case FlowState::kFree:
      return "free";
    case FlowState::kUdpUnreplied:
      return "udp-unreplied";
    case FlowState::kUdpReplied:
      return "udp-replied";
    case FlowState::kSynSent:
      return "syn-sent";
    case FlowState::kSynReceived:
      return "syn-received";
    case FlowState::kEstablished:
      return "established";
    case FlowState::kHalfClosed:
      return "half-closed";
    case FlowState::kClosing:
      return "closing";
    case FlowState::kTimeWait:
      return "time-wait";
    case FlowState::kResetGrace:
      return "reset-grace";
  }
  return "unknown";
}

std::string_view name_of(NeighbourState s) {
  switch (s) {
    case NeighbourState::kUnused:
      return "unused";
    case NeighbourState::kIdle:
      return "idle";
    case NeighbourState::kAsking:
      return "asking";
    case NeighbourState::kKnown:
      return "known";
    case NeighbourState::kStatic:
      return "static";
  }
  return "unknown";
}

}  // namespace margay::dp
