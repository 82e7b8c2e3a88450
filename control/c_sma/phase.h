// SPDX-License-Identifier: Apache-2.0
#pragma once

// D-30: where in a period an identity acts, so that many do not act together. FNV-1a, the same on every machine.

#include <cstdint>
#include <string_view>

#include "common/units.h"

namespace margay::c_sma {

// 0 <= result < period. REQUIRES: period > 0
constexpr Nanoseconds phase_of(std::string_view identity, Nanoseconds period) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : identity) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return hash % period;
}

}  // namespace margay::c_sma
