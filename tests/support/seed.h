// SPDX-License-Identifier: Apache-2.0
#pragma once

// Randomness of tests: the seed of a run is MARGAY_SEED if that is set, else a new one. A failing test prints it:
//   SCOPED_TRACE(seed_text(seed));
// Random (SplitMix64: Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014) gives the
// same numbers on every machine. One thread.

#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>

namespace margay::test {

inline uint64_t test_seed() {
  const char* given = std::getenv("MARGAY_SEED");
  if (given != nullptr) return std::strtoull(given, nullptr, 0);
  return std::random_device{}();
}
inline std::string seed_text(uint64_t seed) { return "MARGAY_SEED=" + std::to_string(seed); }

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t next() {
    uint64_t v = state_ += 0x9e3779b97f4a7c15;
    v = (v ^ v >> 30) * 0xbf58476d1ce4e5b9;
    v = (v ^ v >> 27) * 0x94d049bb133111eb;
    return v ^ v >> 31;
  }
  // 0 <= result < n. REQUIRES: 0 < n <= 2^32
  uint32_t below(uint64_t n) { return static_cast<uint32_t>((next() >> 32) * n >> 32); }
  bool one_in(uint32_t n) { return below(n) == 0; }

 private:
  uint64_t state_;
};

}  // namespace margay::test
