// SPDX-License-Identifier: Apache-2.0
#pragma once

// Writes what the cores are told and what they want into a file, a Record a line (proto/margay/v1/sci_events.proto),
// for `margay-control replay`. One thread. Only a recording from the start of an Sci can be replayed to the same
// actions.
//
// Each line is in the file before the call returns. A file that cannot be written, or that holds kBytesMax, ends the
// recording, never the process.

#include <cstdint>
#include <string>

#include "common/fd.h"
#include "common/result.h"
#include "control/record/wire.h"

namespace margay::control {

class Recorder {
 public:
  static constexpr uint64_t kBytesMax = uint64_t{1} << 30;

  explicit Recorder(uint64_t bytes_max = kBytesMax) : bytes_max_(bytes_max) {}

  // Goes on behind what the file holds. A recording that runs is ended only if this works.
  Result<void> open(const std::string& path);
  void close() { file_.reset(); }
  bool on() const { return static_cast<bool>(file_); }
  const std::string& path() const { return path_; }
  // Why the recording ended by itself; empty: it did not.
  const std::string& fault() const { return fault_; }

  void begin(const Beginning& beginning, Time at);
  void event(const std::string& csci_id, const Event& event, Time at);
  void action(const std::string& csci_id, const Action& action, Time at);

 private:
  void write(const std::string& csci_id, v1::Record& record);

  uint64_t bytes_max_;
  Fd file_;
  std::string path_, fault_;
  uint64_t bytes_ = 0;
};

}  // namespace margay::control
