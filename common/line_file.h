// SPDX-License-Identifier: Apache-2.0
#pragma once

// Recordings of a daemon: files of one record a line, written while it runs and read by a replay. One thread.

#include <cstdint>
#include <functional>
#include <istream>
#include <string>
#include <string_view>

#include "common/fd.h"
#include "common/result.h"

namespace margay {

// Each line is in the file before the call returns. A file that cannot be written, or that would hold more than its
// bound, ends the recording, never the process.
class LineFile {
 public:
  static constexpr uint64_t kBytesMax = uint64_t{1} << 30;

  explicit LineFile(uint64_t bytes_max = kBytesMax) : bytes_max_(bytes_max) {}

  // Goes on behind what the file holds. One that is written already is ended only if this works.
  Result<void> open(const std::string& path);
  void close() { file_.reset(); }
  // `line` without its end. Nothing, once it is closed.
  void write(std::string line);

  bool on() const { return static_cast<bool>(file_); }
  const std::string& path() const { return path_; }
  uint64_t bytes() const { return bytes_; }
  // Why the recording ended by itself; empty: it did not.
  const std::string& fault() const { return fault_; }

 private:
  uint64_t bytes_max_;
  Fd file_;
  std::string path_, fault_;
  uint64_t bytes_ = 0;
};

// Gives each line, without its end, to `take`; the first error, as "PATH:LINE: what".
Result<void> read_lines(std::istream& from, const std::string& path,
                        const std::function<Result<void>(std::string_view)>& take);

}  // namespace margay
