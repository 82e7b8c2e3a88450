// SPDX-License-Identifier: Apache-2.0
#include "control/security/credentials.h"

#include <sys/stat.h>

#include <utility>

namespace margay::security {

Result<std::shared_ptr<Credentials>> Credentials::open(Files files) {
  std::shared_ptr<Credentials> credentials(new Credentials(std::move(files)));
  if (const auto loaded = credentials->reload(); !loaded) return loaded.error();
  return credentials;
}

std::shared_ptr<const Trust> Credentials::current() const {
  const std::lock_guard lock(mutex_);
  return current_;
}

Credentials::Marks Credentials::look() const {
  Marks marks;
  const std::array<const std::string*, 4> paths{&files_.ca, &files_.certificate, &files_.key, &files_.crl};
  for (size_t i = 0; i < paths.size(); ++i) {
    struct stat status {};
    if (paths[i]->empty() || stat(paths[i]->c_str(), &status) != 0) continue;
    const auto nanoseconds = [](const timespec& t) {
      return static_cast<int64_t>(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
    };
    marks[i] = {.device = status.st_dev,
                .inode = status.st_ino,
                .size = static_cast<uint64_t>(status.st_size),
                .modified = nanoseconds(status.st_mtim),
                .changed = nanoseconds(status.st_ctim)};
  }
  return marks;
}

Result<bool> Credentials::poll() {
  const Marks marks = look();
  if (!failing_ && marks == taken_) return false;
  const bool same = failing_ && marks == failed_;
  const auto loaded = reload();
  if (loaded) return true;
  if (same && loaded.error().message == told_) return false;
  told_ = loaded.error().message;
  return loaded.error();
}

Result<void> Credentials::reload() {
  // Looked at first: a file that changes while it is read is read again.
  const Marks marks = look();
  auto trust = Trust::load(files_);
  failing_ = !trust;
  if (!trust) {
    failed_ = marks;
    return trust.error();
  }
  taken_ = marks;
  const std::lock_guard lock(mutex_);
  current_ = std::move(*trust);
  return {};
}

}  // namespace margay::security
