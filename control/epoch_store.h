// SPDX-License-Identifier: Apache-2.0
#pragma once

// Epochs (D-14), kept in a file of the state directory so that they never go back, whatever the wall clock does.
// Where the file cannot be read or written the log says so once, and the clock alone has to do. One thread.

#include <cstdint>
#include <optional>
#include <string>

namespace margay::control {

class EpochStore {
 public:
  explicit EpochStore(const std::string& state_directory, const std::string& name = "epoch");

  // Above every one before.
  uint64_t next(int64_t unix_ms);

 private:
  void write(uint64_t epoch);

  std::string path_;
  std::optional<uint64_t> last_;
  bool told_ = false;
};

}  // namespace margay::control
