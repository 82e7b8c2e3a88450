// SPDX-License-Identifier: Apache-2.0
#include "control/record/recorder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "control/record/wire_values.h"
#include "margay/v1/sci_events.pb.h"

namespace margay::control {

Result<void> Recorder::open(const std::string& path) {
  // Not to wait for the other end of a pipe, and not to be held up by one.
  Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0600));
  struct stat status {};
  if (!file || fstat(file.get(), &status) != 0) return Error{path + ": " + std::strerror(errno)};
  if (!S_ISREG(status.st_mode)) return Error{path + ": expected a file, or a name for a new one"};
  bytes_ = static_cast<uint64_t>(status.st_size);
  file_ = std::move(file);
  path_ = path;
  fault_.clear();
  return {};
}

void Recorder::begin(const Beginning& beginning, Time at) {
  if (!on()) return;
  v1::Record record;
  put_time(at, record);
  to_wire(beginning, *record.mutable_start());
  record.mutable_start()->set_ticks_recorded(true);
  write(beginning.config.csci_id, record);
}

void Recorder::event(const std::string& csci_id, const Event& event, Time at) {
  if (!on()) return;
  v1::Record record;
  to_wire(event, at, record);
  write(csci_id, record);
}

void Recorder::action(const std::string& csci_id, const Action& action, Time at) {
  if (!on()) return;
  v1::Record record;
  to_wire(action, at, record);
  write(csci_id, record);
}

void Recorder::write(const std::string& csci_id, v1::Record& record) {
  record.set_csci_id(utf8(csci_id));
  const std::string line = json_line(record) + '\n';
  if (line.size() > bytes_max_ - std::min(bytes_, bytes_max_)) {
    fault_ = path_ + " holds " + std::to_string(bytes_) + " bytes, and may hold " + std::to_string(bytes_max_);
  } else if (const ssize_t written = ::write(file_.get(), line.data(), line.size()); written < 0) {
    fault_ = path_ + ": " + std::strerror(errno);
  } else if (static_cast<size_t>(written) < line.size()) {
    const bool whole = ftruncate(file_.get(), static_cast<off_t>(bytes_)) == 0;
    fault_ = path_ + ": no space" + (whole ? "" : ", and its last line is cut off");
  }
  bytes_ += line.size();
  if (!fault_.empty()) close();
}

}  // namespace margay::control
