// SPDX-License-Identifier: Apache-2.0
#pragma once

// The audit log (CSMA-193) in the state directory: lines of common/audit/chain.h, written and synced by a thread of its
// own, so that nobody waits for the disk. The same (kind, who, what, detail) within a second is one line with its
// count, so that a flood of refusals stays readable. What finds no room in the queue is counted, and the count is a
// line of its own: nothing goes unsaid.

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <tuple>

#include "common/audit/chain.h"
#include "common/fd.h"
#include "common/result.h"

namespace margay::control {

class AuditLog {
 public:
  static constexpr size_t kWaitingMax = 10'000;  // different entries of one second

  // DIRECTORY/audit.jsonl. One whose last line is torn, by a crash, is kept under another name and a new one begins.
  static Result<std::unique_ptr<AuditLog>> open(const std::string& directory);
  ~AuditLog();  // writes what waits
  AuditLog(const AuditLog&) = delete;
  AuditLog& operator=(const AuditLog&) = delete;

  // Any thread; does not wait.
  void add(AuditEntry entry);

  struct Status {
    std::string path, head, fault;  // fault: why it cannot be written; empty: it can
    uint64_t lines = 0, unsaid = 0;
  };
  Status status() const;

 private:
  AuditLog(std::string path, Fd file, AuditChain chain);
  void run();
  void write(const std::deque<AuditEntry>& entries);

  const std::string path_;
  Fd file_;
  AuditChain chain_;  // the thread's; what others see of it is copied under the mutex

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<AuditEntry> waiting_;
  std::map<std::tuple<std::string, std::string, std::string, std::string>, size_t> places_;  // in waiting_
  uint64_t unsaid_ = 0;
  Status status_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace margay::control
