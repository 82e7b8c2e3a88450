// SPDX-License-Identifier: Apache-2.0
#pragma once

// The Trust that is used now, and the watch over its files. What cannot be used (half-written, a key of another
// certificate, an unreadable list) changes nothing: the old one goes on serving, and one line tells it.

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "common/result.h"
#include "control/security/trust.h"

namespace margay::security {

class Credentials {
 public:
  static Result<std::shared_ptr<Credentials>> open(Files files);

  // Any thread. What it returns stays good however long it is kept, but is not the newest for ever.
  std::shared_ptr<const Trust> current() const;

  // For a call each second, of one thread: takes the files anew if one of them is another, or has another size or time
  // of change, than it had. True: there is a new Trust. An error that has been told is not told again before the files
  // change; taking them is tried with each call all the same.
  Result<bool> poll();
  // At once, whatever the files look like; the same thread.
  Result<void> reload();
  const Files& files() const { return files_; }

 private:
  struct Mark {  // of a file
    uint64_t device = 0, inode = 0, size = 0;
    int64_t modified = 0, changed = 0;  // nanoseconds
    bool operator==(const Mark&) const = default;
  };
  using Marks = std::array<Mark, 4>;

  explicit Credentials(Files files) : files_(std::move(files)) {}
  Marks look() const;

  const Files files_;
  mutable std::mutex mutex_;
  std::shared_ptr<const Trust> current_;
  Marks taken_ = {}, failed_ = {};
  bool failing_ = false;
  std::string told_;
};

}  // namespace margay::security
