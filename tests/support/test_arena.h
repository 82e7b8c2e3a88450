// SPDX-License-Identifier: Apache-2.0
#pragma once

// An arena over zeroed memory of its own, for tests and benches: TestArena arena(bytes); FlowTable t(arena, ...).
// Big blocks ask for huge pages, as the data plane's memory has them. One thread.

#include <sys/mman.h>

#include <cstddef>
#include <memory>
#include <span>

#include "common/check.h"
#include "dataplane/core/arena.h"

namespace margay::dp {

struct Unmap {
  size_t size;
  void operator()(void* p) const { munmap(p, size); }
};

// Pages that nobody touches cost nothing. Begins on a huge page, so that benches can have them.
class TestArenaMemory {
 protected:
  explicit TestArenaMemory(size_t bytes) : size_(bytes) {
    size_t room = size_ + kHugePage;
    begin_ = mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MARGAY_CHECK(begin_ != MAP_FAILED);
    mapped_ = std::unique_ptr<void, Unmap>(begin_, Unmap{room});
    MARGAY_CHECK(std::align(kHugePage, size_, begin_, room) != nullptr);
    if (size_ >= kHugePage) madvise(begin_, size_, MADV_HUGEPAGE);
  }
  std::span<std::byte> block() const { return {static_cast<std::byte*>(begin_), size_}; }

 private:
  static constexpr size_t kHugePage = size_t{2} << 20;
  size_t size_;
  std::unique_ptr<void, Unmap> mapped_{nullptr, Unmap{}};
  void* begin_ = nullptr;
};

class TestArena : private TestArenaMemory, public Arena {
 public:
  explicit TestArena(size_t bytes) : TestArenaMemory(bytes), Arena(block()) {}
};

}  // namespace margay::dp
