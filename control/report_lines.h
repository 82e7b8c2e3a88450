// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where reports go as JSON lines (`control.reports`). Never waits: what a pipe's reader has not taken is kept up to
// kPendingMax bytes. A line that cannot be written is lost, counted, and told once until one can be again. One thread.

#include <cstdint>
#include <string>

#include "common/fd.h"
#include "common/result.h"
#include "control/site_reader.h"

namespace margay::control {

class ReportLines {
 public:
  static constexpr size_t kPendingMax = size_t{1} << 20;

  Result<void> open(const ReportCopies& where);
  // From here on to where `next` goes; the counts go on.
  void take_place(ReportLines next);
  void write(const std::string& line);  // without its end
  // What a slow reader may take by now.
  void flush();

  uint64_t written() const { return written_; }  // or waiting
  uint64_t lost() const { return lost_; }

 private:
  void fail(const std::string& why);

  Fd fd_;
  std::string name_;
  std::string pending_;
  uint64_t waiting_ = 0;  // lines in it
  bool in_line_ = false;  // the last thing written was no line's end
  bool told_ = false;
  uint64_t written_ = 0, lost_ = 0;
};

}  // namespace margay::control
