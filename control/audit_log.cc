// SPDX-License-Identifier: Apache-2.0
#include "control/audit_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include <spdlog/spdlog.h>

namespace margay::control {
namespace {

constexpr std::chrono::seconds kGather{1};

Result<AuditChain> chain_of(const std::string& path) {
  auto chain = resume_audit(path);
  if (chain) return chain;
  const std::string aside = path + ".torn";
  spdlog::warn("msg=\"the audit log begins anew, the old one is kept\" why={:?} kept={}", chain.error().message, aside);
  if (::rename(path.c_str(), aside.c_str()) != 0) return Error{path + ": cannot be renamed: " + std::strerror(errno)};
  return AuditChain{};
}

// All of it, or why not.
std::string append(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t size = ::write(file, text.data(), text.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return std::strerror(errno);
    text.remove_prefix(static_cast<size_t>(size));
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<AuditLog>> AuditLog::open(const std::string& directory) {
  ::mkdir(directory.c_str(), 0755);
  const std::string path = directory + "/audit.jsonl";
  auto chain = chain_of(path);
  if (!chain) return chain.error();
  Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!file) return Error{path + ": cannot be opened: " + std::strerror(errno)};
  return std::unique_ptr<AuditLog>(new AuditLog(path, std::move(file), *chain));
}

AuditLog::AuditLog(std::string path, Fd file, AuditChain chain)
    : path_(std::move(path)), file_(std::move(file)), chain_(std::move(chain)) {
  status_ = {.path = path_, .head = chain_.head(), .fault = {}, .lines = chain_.lines(), .unsaid = 0};
  thread_ = std::thread([this] { run(); });
}

AuditLog::~AuditLog() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void AuditLog::add(AuditEntry entry) {
  const std::lock_guard lock(mutex_);
  const auto [place, is_new] = places_.try_emplace({entry.kind, entry.who, entry.what, entry.detail}, waiting_.size());
  if (!is_new) {
    ++waiting_[place->second].times;
    return;
  }
  if (waiting_.size() < kWaitingMax) {
    waiting_.push_back(std::move(entry));
    if (waiting_.size() == 1) wake_.notify_one();
    return;
  }
  places_.erase(place);
  ++unsaid_;
}

AuditLog::Status AuditLog::status() const {
  const std::lock_guard lock(mutex_);
  return status_;
}

void AuditLog::run() {
  std::unique_lock lock(mutex_);
  while (!stop_ || !waiting_.empty()) {
    wake_.wait(lock, [this] { return stop_ || !waiting_.empty(); });
    wake_.wait_for(lock, kGather, [this] { return stop_; });
    std::deque<AuditEntry> entries = std::exchange(waiting_, {});
    places_.clear();
    if (const uint64_t unsaid = std::exchange(unsaid_, 0); unsaid > 0) {
      entries.push_back(
          {"UNSAID", "margay-control", "audit", "entries that found no room", entries.back().unix_ms, unsaid});
      status_.unsaid += unsaid;
    }
    lock.unlock();
    write(entries);
    lock.lock();
  }
}

// What cannot be written is not in the chain either: the next line goes on behind the last that stands.
void AuditLog::write(const std::deque<AuditEntry>& entries) {
  AuditChain next = chain_;
  std::string text;
  for (const AuditEntry& entry : entries) text += next.add(entry) + "\n";
  const off_t size = ::lseek(file_.get(), 0, SEEK_END);
  std::string fault = append(file_.get(), text);
  if (fault.empty() && ::fdatasync(file_.get()) != 0) fault = std::strerror(errno);
  if (!fault.empty() && size >= 0 && ::ftruncate(file_.get(), size) != 0) fault += ", and the file cannot be cut back";
  const std::lock_guard lock(mutex_);
  if (fault.empty()) {
    chain_ = std::move(next);
  } else {
    if (status_.fault.empty()) spdlog::error("msg=\"the audit log cannot be written\" file={} why={:?}", path_, fault);
    for (const AuditEntry& entry : entries) status_.unsaid += entry.times;
    unsaid_ += entries.size();
  }
  status_.fault = std::move(fault);
  status_.head = chain_.head();
  status_.lines = chain_.lines();
}

}  // namespace margay::control
