// SPDX-License-Identifier: Apache-2.0
#pragma once

// The epoch of reports (D-14), kept in the state directory so that it never goes back, whatever the wall clock does.
// Where the file cannot be read or written the log says so once, and the clock alone has to do. One thread.

#include <cstdint>
#include <optional>
#include <string>

namespace margay::control {

class EpochStore {
 public:
  explicit EpochStore(const std::string& state_directory);

  // Above every one before; for SCIs that begin now.
  uint64_t next(int64_t unix_ms);

 private:
  void write(uint64_t epoch);

  std::string directory_, path_;
  std::optional<uint64_t> last_;
  bool told_ = false;
};

}  // namespace margay::control
