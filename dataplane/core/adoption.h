// SPDX-License-Identifier: Apache-2.0
#pragma once

// Bindings of an earlier process become bindings of this one: each is found by what its indices meant (SCI-83), goes to
// the worker that owns its client now, and keeps its state, its numbers and its slot, also above the limit. What is
// torn, damaged or of nobody is left out and counted; established bindings come before transient ones when there is
// less room. Afterwards counters and slot ledgers say what the bindings say.
//
// Before the workers start, one thread.

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "dataplane/core/bindings_image.h"
#include "dataplane/core/fast_path.h"

namespace margay::dp {

enum class LeftOut : uint8_t {
  kTorn,          // its maker ended while it made or ended it
  kDamaged,       // a value that no binding has
  kSciGone,       // its frontend is nobody's now
  kInstanceGone,  // its instance is not there, or is another SCI's
  kMoved,         // its instance has another address or port
  kModeChanged,   // another number of directions
  kDuplicate,     // two of one flow
  kTableFull,
};
inline constexpr size_t kLeftOuts = 8;
std::string_view name_of(LeftOut reason);

struct Adopted {
  uint64_t bindings = 0, sessions = 0;  // sessions: those that hold a slot
  std::array<uint64_t, kLeftOuts> left_out{};
};

// A binding is as old as it was when the earlier process ended: while there was none, no packet could have come.
// REQUIRES: nothing is bound yet; the workers hash with the image's secret.
Adopted adopt_bindings(const OpenedImage& image, const SiteTable& table, SharedState& shared,
                       std::span<FastPath* const> workers, Tick now);

}  // namespace margay::dp
