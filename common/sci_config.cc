// SPDX-License-Identifier: Apache-2.0
#include "common/sci_config.h"

namespace margay {

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

}  // namespace margay
