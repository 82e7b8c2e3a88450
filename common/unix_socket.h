// SPDX-License-Identifier: Apache-2.0
#pragma once

// Unix sockets of daemons. The listener's file has mode 0600 before anybody can connect; one that a dead daemon left is
// replaced, one that somebody listens on is an error. The file is removed with the listener, if it is still its own.
// One thread at a time.

#include <sys/socket.h>
#include <sys/types.h>

#include <string>

#include "common/fd.h"
#include "common/result.h"

namespace margay {

class UnixListener {
 public:
  // `type`: SOCK_STREAM or SOCK_SEQPACKET. Makes the last folder of the path where it is missing.
  static Result<UnixListener> open(const std::string& path, int type, int backlog);
  UnixListener(UnixListener&&) = default;
  UnixListener& operator=(UnixListener&&) = default;
  ~UnixListener();

  int fd() const { return fd_.get(); }
  const std::string& path() const { return path_; }
  // The next one who waits, non-blocking; empty when nobody does.
  Fd accept() const;

 private:
  UnixListener(std::string path, Fd fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  std::string path_;
  Fd fd_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

// Connected, blocking.
Result<Fd> connect_unix(const std::string& path, int type);

}  // namespace margay
