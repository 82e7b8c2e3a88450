// SPDX-License-Identifier: Apache-2.0
#include "common/shared_table/memory_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace margay::shared_table {
namespace {

Error system_error(const std::string& what) { return Error{what + ": " + std::strerror(errno)}; }

Result<std::span<std::byte>> map(int fd, size_t bytes, int protection) {
  void* at = ::mmap(nullptr, bytes, protection, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) return system_error("cannot map " + std::to_string(bytes) + " bytes of shared memory");
  return std::span(static_cast<std::byte*>(at), bytes);
}

}  // namespace

Result<MemoryFile> MemoryFile::create(const std::string& name, size_t bytes, Writers writers) {
  Fd fd(::memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) return system_error("cannot make the shared memory " + name);
  if (::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0)
    return system_error("cannot size the shared memory " + name);
  auto mapped = map(fd.get(), bytes, PROT_READ | PROT_WRITE);
  if (!mapped) return mapped.error();
  MemoryFile file(std::move(fd), *mapped);
  const int future = writers == Writers::kMaker ? F_SEAL_FUTURE_WRITE : 0;
  if (::fcntl(file.fd(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | future | F_SEAL_SEAL) != 0) {
    return system_error("cannot seal the shared memory " + name);
  }
  return file;
}

size_t MemoryFile::size_of(int fd) {
  struct stat found {};
  return ::fstat(fd, &found) == 0 && found.st_size > 0 ? static_cast<size_t>(found.st_size) : 0;
}

Result<MemoryFile> MemoryFile::adopt(Fd fd, size_t bytes, Writers writers) {
  const int seals = ::fcntl(fd.get(), F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) {
    return Error{"the other side's shared memory is not sealed against shrinking"};
  }
  if (size_of(fd.get()) != bytes) {
    return Error{"the other side's shared memory has " + std::to_string(size_of(fd.get())) + " bytes, expected " +
                 std::to_string(bytes)};
  }
  auto mapped = map(fd.get(), bytes, writers == Writers::kBoth ? PROT_READ | PROT_WRITE : PROT_READ);
  if (!mapped) return mapped.error();
  return MemoryFile(std::move(fd), *mapped);
}

MemoryFile::MemoryFile(MemoryFile&& other) noexcept
    : fd_(std::move(other.fd_)), bytes_(std::exchange(other.bytes_, {})) {}

MemoryFile& MemoryFile::operator=(MemoryFile&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

MemoryFile::~MemoryFile() {
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
}

}  // namespace margay::shared_table
