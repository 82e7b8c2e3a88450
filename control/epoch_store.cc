// SPDX-License-Identifier: Apache-2.0
#include "control/epoch_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <string_view>

#include <spdlog/spdlog.h>

#include "common/fd.h"
#include "control/sci/reporting.h"

namespace margay::control {
namespace {

// There is always one above it. No clock of milliseconds comes near.
constexpr uint64_t kEpochMax = uint64_t{1} << 62;

std::optional<uint64_t> parse(std::string_view text) {
  if (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  uint64_t epoch = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), epoch);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && epoch <= kEpochMax ? std::optional(epoch) : std::nullopt;
}

bool replace(const std::string& directory, const std::string& path, const std::string& text) {
  const std::string temporary = path + ".new";
  const Fd file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!file || ::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) return false;
  if (::fsync(file.get()) != 0 || ::rename(temporary.c_str(), path.c_str()) != 0) return false;
  const Fd folder(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return folder && ::fsync(folder.get()) == 0;
}

}  // namespace

EpochStore::EpochStore(const std::string& state_directory)
    : directory_(state_directory), path_(state_directory + "/epoch") {
  ::mkdir(directory_.c_str(), 0755);
  const Fd file(::open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!file && errno == ENOENT) return;
  char text[32];
  const ssize_t size = file ? ::read(file.get(), text, sizeof text) : -1;
  const std::string why = size < 0 ? std::strerror(errno) : "is no epoch";
  if (size >= 0) last_ = parse({text, static_cast<size_t>(size)});
  if (!last_) spdlog::warn("msg=\"the last epoch is not known, the clock has to do\" file={} why={:?}", path_, why);
}

uint64_t EpochStore::next(int64_t unix_ms) {
  last_ = next_epoch(last_, unix_ms);
  write(*last_);
  return *last_;
}

void EpochStore::write(uint64_t epoch) {
  if (replace(directory_, path_, std::to_string(epoch) + "\n")) {
    told_ = false;
    return;
  }
  const char* why = std::strerror(errno);
  if (!told_) spdlog::warn("msg=\"the epoch cannot be kept\" file={} why={:?}", path_, why);
  told_ = true;
}

}  // namespace margay::control
