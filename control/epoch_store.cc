// SPDX-License-Identifier: Apache-2.0
#include "control/epoch_store.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <string_view>

#include <spdlog/spdlog.h>

#include "common/fd.h"
#include "control/durable_file.h"
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

}  // namespace

EpochStore::EpochStore(const std::string& state_directory, const std::string& name)
    : path_(state_directory + "/" + name) {
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
  const auto written = replace_file(path_, std::to_string(epoch) + "\n");
  if (!written && !told_) spdlog::warn("msg=\"the epoch cannot be kept\" why={:?}", written.error().message);
  told_ = !written;
}

}  // namespace margay::control
