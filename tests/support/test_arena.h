// SPDX-License-Identifier: Apache-2.0
#pragma once

// An arena over zeroed memory of its own, for tests and benches: TestArena arena(bytes); FlowTable t(arena, ...).
// Big blocks ask for huge pages, as the data plane's memory has them. One thread.

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "common/check.h"
#include "dataplane/core/arena.h"

namespace margay::dp {

struct FreeDeleter {
  void operator()(std::byte* p) const { std::free(p); }
};

class TestArenaMemory {
 protected:
  explicit TestArenaMemory(size_t bytes) {
    constexpr size_t kHugePage = size_t{2} << 20;
    const size_t alignment = bytes < kHugePage ? kCacheLine : kHugePage;
    size_ = (bytes + alignment - 1) / alignment * alignment;
    memory_.reset(static_cast<std::byte*>(std::aligned_alloc(alignment, size_)));
    MARGAY_CHECK(memory_ != nullptr);
    if (alignment == kHugePage) madvise(memory_.get(), size_, MADV_HUGEPAGE);
    std::memset(memory_.get(), 0, size_);
  }
  std::span<std::byte> block() const { return {memory_.get(), size_}; }

 private:
  std::unique_ptr<std::byte, FreeDeleter> memory_;
  size_t size_ = 0;
};

class TestArena : private TestArenaMemory, public Arena {
 public:
  explicit TestArena(size_t bytes) : TestArenaMemory(bytes), Arena(block()) {}
};

}  // namespace margay::dp
