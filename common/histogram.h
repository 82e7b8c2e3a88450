// SPDX-License-Identifier: Apache-2.0
#pragma once

// A histogram of durations in 240 log-linear buckets: one bucket a microsecond (1024 ns) below 8 of them, then eight a
// doubling, so a bucket is at most an eighth as wide as what it holds is long. The last one takes everything above
// 2^42 ns (73 minutes). 1,928 bytes of plain 64-bit counts: may lie in shared memory, be copied whole, added and
// subtracted. Whoever writes it there counts by bucket_of() himself. One thread.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>

#include "common/units.h"

namespace margay {

struct Histogram {
  static constexpr unsigned kUnitBits = 10, kStepBits = 3, kTopBits = 42;
  static constexpr size_t kSteps = size_t{1} << kStepBits;
  static constexpr size_t kBuckets = kSteps * (kTopBits - kUnitBits - kStepBits + 1);

  std::array<uint64_t, kBuckets> counts{};
  uint64_t sum = 0;  // of all values, ns; wraps after 584 years of them

  static constexpr size_t bucket_of(Nanoseconds value) {
    const uint64_t v = value >> kUnitBits;
    if (v < kSteps) return v;
    const unsigned shift = static_cast<unsigned>(std::bit_width(v)) - 1 - kStepBits;
    const size_t bucket = kSteps * shift + (v >> shift);
    return bucket < kBuckets ? bucket : kBuckets - 1;
  }
  // The smallest value of a bucket; that of the one after the last is the end of the range.
  static constexpr Nanoseconds floor_of(size_t bucket) {
    if (bucket < kSteps) return Nanoseconds{bucket} << kUnitBits;
    const unsigned shift = static_cast<unsigned>(bucket / kSteps) - 1;
    return Nanoseconds{kSteps + bucket % kSteps} << (shift + kUnitBits);
  }

  void add(Nanoseconds value, uint64_t n = 1) {
    counts[bucket_of(value)] += n;
    sum += value * n;
  }
  // What was added after `earlier` was copied from this one. Counts that went back were begun anew: all of them.
  Histogram since(const Histogram& earlier) const {
    Histogram difference = *this;
    for (size_t b = 0; b < kBuckets; ++b) {
      if (counts[b] < earlier.counts[b]) return *this;
      difference.counts[b] -= earlier.counts[b];
    }
    difference.sum -= earlier.sum;
    return difference;
  }

  uint64_t count() const {
    uint64_t n = 0;
    for (const uint64_t c : counts) n += c;
    return n;
  }
  // REQUIRES: count() > 0
  Nanoseconds mean() const { return sum / count(); }

  bool operator==(const Histogram&) const = default;
};

// Where `share` of the weight lies below, by weights of the buckets; within a bucket it is taken as evenly spread.
template <class Weights>
std::optional<double> quantile_of(const Weights& weights, double share) {
  double total = 0;
  for (size_t b = 0; b < Histogram::kBuckets; ++b) total += static_cast<double>(weights[b]);
  if (total <= 0) return std::nullopt;
  double left = share * total;
  for (size_t b = 0; b < Histogram::kBuckets; ++b) {
    const auto weight = static_cast<double>(weights[b]);
    if (left > weight) {
      left -= weight;
      continue;
    }
    const auto from = static_cast<double>(Histogram::floor_of(b));
    const double width = static_cast<double>(Histogram::floor_of(b + 1)) - from;
    return from + (weight > 0 ? width * left / weight : 0);
  }
  return static_cast<double>(Histogram::floor_of(Histogram::kBuckets));  // the sums' rounding left a rest
}

static_assert(std::is_trivially_copyable_v<Histogram> && sizeof(Histogram) == 241 * sizeof(uint64_t));
static_assert(Histogram::floor_of(Histogram::kBuckets) == Nanoseconds{1} << Histogram::kTopBits);

}  // namespace margay
