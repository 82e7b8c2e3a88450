// SPDX-License-Identifier: Apache-2.0
#include "common/line_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace margay {

Result<void> LineFile::open(const std::string& path) {
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

void LineFile::write(std::string line) {
  if (!on()) return;
  line += '\n';
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

Result<void> read_lines(std::istream& from, const std::string& path,
                        const std::function<Result<void>(std::string_view)>& take) {
  std::string line;
  for (uint64_t number = 1; std::getline(from, line); ++number) {
    if (const auto done = take(line); !done) return in(path + ":" + std::to_string(number), done.error());
  }
  if (from.bad()) return Error{path + ": " + std::strerror(errno)};
  return {};
}

}  // namespace margay
