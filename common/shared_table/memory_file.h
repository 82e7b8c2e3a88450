// SPDX-License-Identifier: Apache-2.0
#pragma once

// A piece of memory that two processes share by passing its descriptor (memfd_create(2), sealed). Its maker seals it
// against shrinking and growing, so that nobody can take pages from under a reader; the other side checks that before
// it maps. One thread at a time; the mapping is unmapped with the object.

#include <cstddef>
#include <span>
#include <string>

#include "common/fd.h"
#include "common/result.h"

namespace margay::shared_table {

class MemoryFile {
 public:
  // Who may write: only the maker, by the mapping that it has (F_SEAL_FUTURE_WRITE), or both sides.
  enum class Writers { kMaker, kBoth };

  // `bytes` of zeros, mapped for writing and sealed. Pages are taken as they are touched.
  static Result<MemoryFile> create(const std::string& name, size_t bytes, Writers writers);
  // A descriptor that came from another process: refused unless it is a memory file, sealed against shrinking, of
  // exactly `bytes`. Mapped for writing where `writers` is kBoth.
  static Result<MemoryFile> adopt(Fd fd, size_t bytes, Writers writers);
  // The size of a descriptor's file; 0 when it has none.
  static size_t size_of(int fd);

  MemoryFile(MemoryFile&& other) noexcept;
  MemoryFile& operator=(MemoryFile&& other) noexcept;
  ~MemoryFile();

  int fd() const { return fd_.get(); }
  std::span<std::byte> bytes() { return bytes_; }  // REQUIRES: created, or adopted with kBoth
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  MemoryFile(Fd fd, std::span<std::byte> bytes) : fd_(std::move(fd)), bytes_(bytes) {}

  Fd fd_;
  std::span<std::byte> bytes_;
};

}  // namespace margay::shared_table
