// SPDX-License-Identifier: Apache-2.0
#pragma once

// Writes what the cores are told and what they want into a file, a Record a line (proto/margay/v1/sci_events.proto),
// for `margay-control replay`. One thread. Only a recording from the start of a core can be replayed to the same
// actions.

#include <cstdint>
#include <string>

#include "common/line_file.h"
#include "common/result.h"
#include "control/record/c_sma_wire.h"
#include "control/record/wire.h"

namespace margay::control {

class Recorder {
 public:
  explicit Recorder(uint64_t bytes_max = LineFile::kBytesMax) : file_(bytes_max) {}

  // Goes on behind what the file holds. A recording that runs is ended only if this works.
  Result<void> open(const std::string& path) { return file_.open(path); }
  void close() { file_.close(); }
  bool on() const { return file_.on(); }
  // Why the recording ended by itself; empty: it did not.
  const std::string& fault() const { return file_.fault(); }

  void begin(const Beginning& beginning, Time at);
  void event(const std::string& csci_id, const Event& event, Time at);
  void action(const std::string& csci_id, const Action& action, Time at);
  // Of a C-SMA, by its identity.
  void begin_c_sma(const CSmaBeginning& beginning, Time at);
  void event(const std::string& c_sma, const c_sma::Event& event, Time at);
  void action(const std::string& c_sma, const c_sma::Action& action, Time at);

 private:
  template <class Value>
  void write(const Value& value, Time at, const std::string& csci_id, const std::string& c_sma);

  LineFile file_;
};

}  // namespace margay::control
