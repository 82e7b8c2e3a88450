// SPDX-License-Identifier: Apache-2.0
#pragma once

// Time stamp counter and medians. A tick is a tick of the TSC, which runs at one rate whatever the core's clock does:
// ticks are time, not cycles.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace margay::bench {

// After all that stands before it. rdtscp would do the same; valgrind does not know it on every processor.
inline uint64_t ticks() {
#if defined(__x86_64__)
  _mm_lfence();
  return __rdtsc();
#else
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
#endif
}

inline double ticks_per_second() {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  const uint64_t first = ticks();
  while (Clock::now() - begin < std::chrono::milliseconds(50)) {
  }
  const uint64_t last = ticks();
  return static_cast<double>(last - first) / std::chrono::duration<double>(Clock::now() - begin).count();
}

inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

// Median of the distances from the median.
inline double deviation(std::vector<double> values) {
  const double centre = median(values);
  for (double& v : values) v = v > centre ? v - centre : centre - v;
  return median(std::move(values));
}

// Time of many like pieces of work. The median piece stands for all of them, so that a pause of the process, which
// falls on a few pieces, does not count.
class Meter {
 public:
  template <class Work>
  void time(size_t units, Work work) {
    const uint64_t begin = ticks();
    work();
    per_unit_.push_back(static_cast<double>(ticks() - begin) / static_cast<double>(units));
    units_ += units;
  }
  double per_unit() const { return median(per_unit_); }
  double total() const { return per_unit() * static_cast<double>(units_); }

 private:
  std::vector<double> per_unit_;
  size_t units_ = 0;
};

}  // namespace margay::bench
