// SPDX-License-Identifier: Apache-2.0
#include "control/report_lines.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <spdlog/spdlog.h>

namespace margay::control {
namespace {

// Standard output by an open file of our own, so that only our writes do not block.
Fd standard_output() {
  Fd own(::open("/proc/self/fd/1", O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  return own ? std::move(own) : Fd(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0));
}

// Reports tell the site's inside, which is not everybody's to read (SCI-139).
Fd open_file(const std::string& file) {
  return Fd(::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600));
}

// Whether a writer before was cut off in the middle of a line.
bool ends_in_line(const std::string& file) {
  const Fd fd(::open(file.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  struct stat found {};
  char last = '\n';
  const bool regular = fd && ::fstat(fd.get(), &found) == 0 && S_ISREG(found.st_mode) && found.st_size > 0;
  return regular && ::pread(fd.get(), &last, 1, found.st_size - 1) == 1 && last != '\n';
}

}  // namespace

Result<void> ReportLines::open(const ReportCopies& where) {
  Fd fd;
  std::string name;
  if (where.to == ReportCopies::To::kStdout) {
    fd = standard_output();
    name = "standard output";
  } else if (where.to == ReportCopies::To::kFile) {
    fd = open_file(where.file);
    name = where.file;
    in_line_ = fd && ends_in_line(where.file);
  }
  if (!fd && where.to != ReportCopies::To::kNobody) {
    return Error{"control.reports: " + name + ": " + std::strerror(errno)};
  }
  fd_ = std::move(fd);
  name_ = name;
  if (in_line_) pending_ = "\n";  // the next line begins on its own
  return {};
}

// What the reader before has not taken is lost with it.
void ReportLines::take_place(ReportLines next) {
  next.written_ = written_ - waiting_;
  next.lost_ = lost_ + waiting_;
  *this = std::move(next);
}

void ReportLines::write(const std::string& line) {
  if (!fd_) return;
  if (pending_.size() + line.size() > kPendingMax) {
    ++lost_;
    return fail("its reader takes too little");
  }
  pending_ += line + "\n";
  ++waiting_;
  ++written_;
  flush();
}

void ReportLines::flush() {
  if (!fd_ || pending_.empty()) return;
  const ssize_t size = ::write(fd_.get(), pending_.data(), pending_.size());
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (size < 0) {
    const std::string why = std::strerror(errno);
    written_ -= waiting_;
    lost_ += waiting_;
    waiting_ = 0;
    pending_ = in_line_ ? "\n" : "";  // the next line begins on its own
    return fail(why);
  }
  if (size == 0) return;
  const auto taken = static_cast<size_t>(size);
  for (size_t i = 0; i < taken; ++i) waiting_ -= pending_[i] == '\n' && waiting_ > 0 ? 1 : 0;
  in_line_ = pending_[taken - 1] != '\n';
  pending_.erase(0, taken);
  if (told_ && pending_.empty()) spdlog::info("msg=\"reports are written again\" to={:?} lost={}", name_, lost_);
  if (pending_.empty()) told_ = false;
}

void ReportLines::fail(const std::string& why) {
  if (!told_) spdlog::error("msg=\"a report could not be written\" to={:?} why={:?}", name_, why);
  told_ = true;
}

}  // namespace margay::control
