// SPDX-License-Identifier: Apache-2.0
#include "control/durable_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>
#include <xxhash.h>

#include "common/fd.h"

namespace margay::control {
namespace {

constexpr size_t kBytesMax = size_t{1} << 30;

Error failed(const std::string& path, const char* what) {
  return Error{path + ": cannot be " + what + ": " + std::strerror(errno)};
}

bool write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t size = ::write(file, text.data(), text.size());
    if (size < 0 && errno != EINTR) return false;
    if (size > 0) text.remove_prefix(static_cast<size_t>(size));
  }
  return true;
}

std::string header_of(std::string_view what, std::string_view content) {
  const XXH128_hash_t hash = XXH3_128bits(content.data(), content.size());
  return fmt::format("margay {} 1 {} {:016x}{:016x}\n", what, content.size(), hash.high64, hash.low64);
}

}  // namespace

Result<void> replace_file(const std::string& path, std::string_view content) {
  const std::string directory = std::filesystem::path(path).parent_path().string();
  const std::string temporary = path + ".new";
  ::mkdir(directory.c_str(), 0755);
  const Fd file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!file || !write_all(file.get(), content) || ::fsync(file.get()) != 0) return failed(temporary, "written");
  if (::rename(temporary.c_str(), path.c_str()) != 0) return failed(path, "replaced");
  const Fd folder(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder || ::fsync(folder.get()) != 0) return failed(directory, "synced");
  return {};
}

Result<void> write_checked(const std::string& path, std::string_view what, std::string_view content) {
  return replace_file(path, header_of(what, content).append(content));
}

Result<std::optional<std::string>> read_checked(const std::string& path, std::string_view what) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!file && errno == ENOENT) return std::optional<std::string>{};
  std::string text;
  char piece[65536];
  ssize_t size = file ? 0 : -1;
  while (file && (size = ::read(file.get(), piece, sizeof piece)) > 0) {
    text.append(piece, static_cast<size_t>(size));
    if (text.size() > kBytesMax) return Error{path + ": is too long"};
  }
  if (size < 0) return failed(path, "read");
  const size_t end = text.find('\n');
  const std::string_view content = end == std::string::npos ? "" : std::string_view(text).substr(end + 1);
  if (end == std::string::npos || text.substr(0, end + 1) != header_of(what, content)) {
    return Error{fmt::format("{}: is damaged, or no {} of this version", path, what)};
  }
  return std::optional(std::string(content));
}

}  // namespace margay::control
