// SPDX-License-Identifier: Apache-2.0
#pragma once

// One block of EAL's memory on a NUMA node, zeroed, aligned to a cache line: what an Arena is made over. Given
// back at the end of its life, which must come before EAL's. Control thread only.

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "common/result.h"

namespace margay::dp {

class MemoryBlock {
 public:
  // The error tells what it was for, how much and where.
  static Result<MemoryBlock> reserve(const std::string& purpose, size_t bytes, int socket);
  std::span<std::byte> bytes() const { return {data_.get(), size_}; }

 private:
  struct Free {
    void operator()(std::byte* block) const;
  };
  MemoryBlock(std::byte* data, size_t size) : data_(data), size_(size) {}
  std::unique_ptr<std::byte, Free> data_;
  size_t size_;
};

}  // namespace margay::dp
