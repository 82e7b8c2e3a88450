// SPDX-License-Identifier: Apache-2.0
#include "dataplane/mailbox.h"

#include <chrono>
#include <thread>

namespace margay::dp {
namespace {

constexpr int kLooksBeforeSleep = 200;
constexpr std::chrono::microseconds kSleep{20};

}  // namespace

bool Mailbox::run(WorkerJob& job, Nanoseconds patience) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end = Clock::now() + std::chrono::nanoseconds(patience);
  // Both stores are the worker's to see with the job: the release pairs with the acquire in serve_waiting().
  done_.store(false, std::memory_order_relaxed);
  waiting_.store(&job, std::memory_order_release);
  bool taken = false;
  for (int looks = 0;; ++looks) {
    // Pairs with the release in serve_waiting(): what the job wrote is seen.
    if (done_.load(std::memory_order_acquire)) return true;
    if (!taken && Clock::now() >= end) {
      // Either this takes the job back or the worker's exchange has it: never both. A job that is taken runs in the
      // poster's memory, so its end is waited for however late it is; it is bounded.
      WorkerJob* posted = &job;
      if (waiting_.compare_exchange_strong(posted, nullptr, std::memory_order_relaxed)) return false;
      taken = true;
    }
    if (looks >= kLooksBeforeSleep) std::this_thread::sleep_for(kSleep);
  }
}

void Mailbox::serve_waiting(FastPath& fast_path, const SiteTable& table) {
  // The poster may have withdrawn it since serve() looked.
  WorkerJob* job = waiting_.exchange(nullptr, std::memory_order_acquire);
  if (job == nullptr) return;
  job->run(fast_path, table);
  done_.store(true, std::memory_order_release);
}

}  // namespace margay::dp
