// SPDX-License-Identifier: Apache-2.0
#pragma once

// The calls of common/rcu.h over std::atomic alone, for ThreadSanitizer, which does not understand the fences that
// liburcu is made of. Same contract; slower. At most kReadersMax readers in the process, and one writer at a time.
//
// Each reader shows the epoch that it has reached, or kOffline. The writer publishes, then begins an epoch; what it
// replaced before may go once every reader shows that epoch or a later one. Going online stores the reader's epoch
// and then reads the pointer, the writer stores the pointer and then reads epochs: both sides are sequentially
// consistent, so at least one sees the other. What may go is freed by the next retire(), or by reclaim() in whatever
// thread calls it, as liburcu has a thread for that.

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "common/check.h"

namespace margay::test {

class RcuStandIn {
 public:
  static void register_reader() {
    mine_ = registered_.fetch_add(1);
    MARGAY_CHECK(mine_ < kReadersMax);
    online();
  }
  static void unregister_reader() { offline(); }
  static void quiescent() { readers_[mine_].store(epoch_.load()); }
  static void online() { readers_[mine_].store(epoch_.load()); }
  static void offline() { readers_[mine_].store(kOffline); }

  template <class T>
  class Pointer {
   public:
    explicit Pointer(T* first) : pointer_(first) {}
    T* read() const { return pointer_.load(); }
    void publish(T* next) { pointer_.store(next); }

   private:
    std::atomic<T*> pointer_;
  };

  template <class T>
  static void retire(std::unique_ptr<T> old) {
    const uint64_t wanted = epoch_.fetch_add(1) + 1;
    {
      const std::lock_guard lock(mutex_);
      retired_.push_back({wanted, [object = std::shared_ptr<T>(std::move(old))] {}});
    }
    reclaim();
  }

  static void reclaim() {
    const std::lock_guard lock(mutex_);
    size_t gone = 0;
    while (gone < retired_.size() && passed(retired_[gone].epoch)) ++gone;
    const auto end = retired_.begin() + static_cast<std::ptrdiff_t>(gone);
    retired_.erase(retired_.begin(), end);
  }

  static void drain() {
    const uint64_t wanted = epoch_.fetch_add(1) + 1;
    while (!passed(wanted)) std::this_thread::yield();
    reclaim();
  }

 private:
  static constexpr size_t kReadersMax = 64;
  static constexpr uint64_t kOffline = UINT64_MAX;
  struct Retired {
    uint64_t epoch;
    std::function<void()> keeps;
  };

  static bool passed(uint64_t wanted) {
    for (size_t r = 0; r < registered_.load(); ++r) {
      if (readers_[r].load() < wanted) return false;
    }
    return true;
  }

  static inline std::atomic<uint64_t> epoch_{1};
  static inline std::array<std::atomic<uint64_t>, kReadersMax> readers_{};
  static inline std::atomic<size_t> registered_{0};
  static inline thread_local size_t mine_ = 0;
  static inline std::mutex mutex_;  // of what follows
  static inline std::vector<Retired> retired_;
};

}  // namespace margay::test
