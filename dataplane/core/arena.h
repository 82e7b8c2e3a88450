// SPDX-License-Identifier: Apache-2.0
#pragma once

// Memory for one worker, or for what workers share: taken once at start from a block that the shell
// provides (huge pages in production, plain memory in tests), never given back piece by piece. An arena
// without a block only counts, so that the need is known before anything is reserved. One thread.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <type_traits>

#include "common/check.h"
#include "dataplane/core/units.h"

namespace margay::dp {

class Arena {
 public:
  Arena() = default;                                             // only counts
  explicit Arena(std::span<std::byte> block) : block_(block) {}  // zeroed, aligned to a cache line

  // n value-initialised objects, each array on its own cache line. Empty when only counting.
  // REQUIRES: room (used() of a counting arena over the same calls tells it).
  template <class T>
  std::span<T> make(size_t n) {
    static_assert(std::is_trivially_destructible_v<T>, "an arena never destroys");
    static_assert(alignof(T) <= kCacheLine);
    const size_t bytes = (n * sizeof(T) + kCacheLine - 1) / kCacheLine * kCacheLine;
    const size_t offset = used_;
    used_ += bytes;
    if (block_.empty()) return {};
    MARGAY_CHECK(used_ <= block_.size());
    T* first = reinterpret_cast<T*>(block_.data() + offset);
    std::uninitialized_value_construct_n(first, n);
    return {first, n};
  }

  size_t used() const { return used_; }  // bytes
  bool counting() const { return block_.empty(); }

 private:
  std::span<std::byte> block_;
  size_t used_ = 0;
};

}  // namespace margay::dp
