// SPDX-License-Identifier: Apache-2.0
#pragma once

// A file descriptor that is closed with its owner. Movable; one thread at a time.

#include <unistd.h>

#include <utility>

namespace margay {

class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd() {
    if (fd_ >= 0) ::close(fd_);
  }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  void reset() { *this = Fd(); }
  int release() { return std::exchange(fd_, -1); }  // closed by whoever takes it

 private:
  int fd_ = -1;
};

}  // namespace margay
