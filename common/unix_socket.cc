// SPDX-License-Identifier: Apache-2.0
#include "common/unix_socket.h"

#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>

namespace margay {
namespace {

Error system_error(const std::string& path, const std::string& what) {
  return Error{path + ": " + what + ": " + std::strerror(errno)};
}

Result<sockaddr_un> address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path)) {
    return Error{path + ": expected a socket path of 1 to " + std::to_string(sizeof(address.sun_path) - 1) + " bytes"};
  }
  path.copy(address.sun_path, path.size());
  return address;
}

// Takes away what a dead daemon left at `path`.
Result<void> clear_stale(const std::string& path, int type) {
  struct stat found {};
  if (::lstat(path.c_str(), &found) != 0) return {};
  if (!S_ISSOCK(found.st_mode)) return Error{path + ": is in the way and no socket"};
  const auto address = address_of(path);
  if (!address) return address.error();
  const Fd probe(::socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!probe) return system_error(path, "cannot make a socket");
  const bool connected = ::connect(probe.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof(*address)) == 0;
  if (connected || (errno != ECONNREFUSED && errno != ENOENT)) return Error{path + ": another process listens there"};
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return system_error(path, "cannot remove a stale socket");
  return {};
}

void make_parent(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash != std::string::npos && slash > 0) ::mkdir(path.substr(0, slash).c_str(), 0755);
}

}  // namespace

Result<UnixListener> UnixListener::open(const std::string& path, int type, int backlog) {
  const auto address = address_of(path);
  if (!address) return address.error();
  make_parent(path);
  if (auto done = clear_stale(path, type); !done) return done.error();
  Fd fd(::socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return system_error(path, "cannot make a socket");
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof(*address)) != 0) {
    return system_error(path, "cannot bind");
  }
  UnixListener listener(path, std::move(fd));
  struct stat made {};
  if (::stat(path.c_str(), &made) == 0) {
    listener.device_ = made.st_dev;
    listener.inode_ = made.st_ino;
  }
  // Nobody can connect before listen(): the mode holds for the first client too.
  if (::chmod(path.c_str(), 0600) != 0) return system_error(path, "cannot set its mode");
  if (::listen(listener.fd(), backlog) != 0) return system_error(path, "cannot listen");
  return listener;
}

UnixListener::~UnixListener() {
  if (!fd_ || inode_ == 0) return;
  struct stat now {};
  const bool ours = ::lstat(path_.c_str(), &now) == 0 && now.st_ino == inode_ && now.st_dev == device_;
  if (ours) ::unlink(path_.c_str());
}

Fd UnixListener::accept() const { return Fd(::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)); }

Result<Fd> connect_unix(const std::string& path, int type) {
  const auto address = address_of(path);
  if (!address) return address.error();
  Fd fd(::socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
  if (!fd) return system_error(path, "cannot make a socket");
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof(*address)) != 0) {
    return system_error(path, "no daemon answers there");
  }
  return fd;
}

}  // namespace margay
