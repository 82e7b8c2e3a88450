// SPDX-License-Identifier: Apache-2.0
#pragma once

// Times that begin with one packet of a flow and end with another one, kept beside the flow entries so that these stay
// one cache line. Direct-mapped: of two flows that share a place, the one that began later is timed and the other one's
// sample is lost. 64 KiB, one line touched a call. One worker.

#include <cstdint>
#include <optional>
#include <span>

#include "dataplane/core/arena.h"
#include "dataplane/core/units.h"

namespace margay::dp {

class Stopwatches {
 public:
  static constexpr size_t kPlaces = 8192;

  explicit Stopwatches(Arena& arena) : places_(arena.make<Place>(kPlaces)) {}

  // Times in microseconds, as to_microseconds() gives them.
  void start(EntryIndex e, uint32_t now) { places_[e % kPlaces] = {e, now}; }
  // The time since start(), the first time after it.
  std::optional<uint32_t> stop(EntryIndex e, uint32_t now) {
    Place& place = places_[e % kPlaces];
    if (place.entry != e) return std::nullopt;
    place.entry = kNoIndex;
    return now - place.started;
  }
  // The entry begins another flow.
  void forget(EntryIndex e) {
    Place& place = places_[e % kPlaces];
    if (place.entry == e) place.entry = kNoIndex;
  }

 private:
  struct Place {
    EntryIndex entry = kNoIndex;
    uint32_t started = 0;
  };
  std::span<Place> places_;
};

}  // namespace margay::dp
