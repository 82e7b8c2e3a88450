// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dpdk/memory.h"

#include <fmt/format.h>
#include <rte_malloc.h>

#include "dataplane/core/units.h"

namespace margay::dp {

Result<MemoryBlock> MemoryBlock::reserve(const std::string& purpose, size_t bytes, int socket) {
  void* block = rte_zmalloc_socket(purpose.c_str(), bytes, kCacheLine, socket);
  if (block == nullptr) {
    return Error{fmt::format("no {} MiB of memory on NUMA node {} for {}: fewer `flows:`, or more huge pages",
                             (bytes >> 20) + 1, socket, purpose)};
  }
  return MemoryBlock(static_cast<std::byte*>(block), bytes);
}

void MemoryBlock::Free::operator()(std::byte* block) const { rte_free(block); }

}  // namespace margay::dp
