// SPDX-License-Identifier: Apache-2.0
#pragma once

// A factor or percentage out of a configuration, kept as an integer number of billionths: 0.29 of 100 is 29 and not
// 28.999..., and 110 is not more than 10 % above 100. Every operation is exact and cannot overflow.

#include <cstdint>
#include <optional>

namespace margay {

class Share {
 public:
  static constexpr uint64_t kOne = 1'000'000'000;

  constexpr Share() = default;
  // REQUIRES: 0 <= value <= 4, so that a product with 32 bits fits into 64
  explicit constexpr Share(double value) : billionths_(static_cast<uint64_t>(value * kOne * 2 + 1) / 2) {}

  constexpr double value() const { return static_cast<double>(billionths_) / kOne; }
  constexpr uint32_t floor_of(uint32_t n) const { return static_cast<uint32_t>(billionths_ * n / kOne); }
  // |difference| is more than this share of the base
  constexpr bool exceeded_by(uint32_t difference, uint32_t base) const {
    return difference * kOne > billionths_ * base;
  }

  // |part| is at least this share of the whole
  constexpr bool reached_by(uint32_t part, uint32_t whole) const { return part * kOne >= billionths_ * whole; }

  constexpr bool operator==(const Share&) const = default;

 private:
  uint64_t billionths_ = 0;
};

// D-37 and D-48: more than a share of the base or, if given, more than an absolute number, and never below 1. On
// base 0 every change is more than its share.
constexpr bool crosses(uint32_t base, uint32_t value, Share share, std::optional<uint32_t> absolute) {
  const uint32_t difference = base > value ? base - value : value - base;
  if (difference == 0) return false;
  return share.exceeded_by(difference, base) || (absolute && difference > *absolute);
}

}  // namespace margay
