// SPDX-License-Identifier: Apache-2.0
#pragma once

// The worker's shell (dataplane/worker.h) in memory: RX queues, hand-over rings and a clock that runs faster than
// the wall's. Each frame is a buffer of its own on the heap, freed when it leaves, so that AddressSanitizer sees a
// use after that. What the far side does is the test's: next_frame() of a Peer gives what arrives at a port, and
// transmitted() sees what leaves. One MemoryIo a worker; a MemoryNet is shared.

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "dataplane/core/fast_path.h"

namespace margay::test {

struct Buffer {
  static constexpr uint16_t kHeadroom = 128;
  std::array<uint8_t, 640> bytes;
  dp::Packet packet;

  static Buffer* make(std::span<const uint8_t> frame, dp::PortIndex port) {
    auto* b = new Buffer;
    std::memcpy(b->bytes.data() + kHeadroom, frame.data(), frame.size());
    b->packet.data = b->bytes.data() + kHeadroom;
    b->packet.handle = b;
    b->packet.length = static_cast<uint16_t>(frame.size());
    b->packet.headroom = kHeadroom;
    b->packet.tailroom = static_cast<uint16_t>(b->bytes.size() - kHeadroom - frame.size());
    b->packet.port = port;
    return b;
  }
};

// Bounded queue of buffers, any number of writers and readers (D. Vyukov's: each cell's turn says whose it is).
class BufferQueue {
 public:
  BufferQueue() {
    for (size_t k = 0; k < kCells; ++k) cells_[k].turn.store(k);
  }
  ~BufferQueue() {
    while (Buffer* b = pop()) delete b;
  }

  [[nodiscard]] bool push(Buffer* b) {
    size_t at = tail_.load();
    for (;;) {
      Cell& cell = cells_[at % kCells];
      const size_t turn = cell.turn.load(std::memory_order_acquire);
      if (turn < at) return false;
      if (turn > at) {
        at = tail_.load();
      } else if (tail_.compare_exchange_weak(at, at + 1)) {
        cell.buffer = b;
        cell.turn.store(at + 1, std::memory_order_release);
        return true;
      }
    }
  }

  Buffer* pop() {
    size_t at = head_.load();
    for (;;) {
      Cell& cell = cells_[at % kCells];
      const size_t turn = cell.turn.load(std::memory_order_acquire);
      if (turn < at + 1) return nullptr;
      if (turn > at + 1) {
        at = head_.load();
      } else if (head_.compare_exchange_weak(at, at + 1)) {
        Buffer* b = cell.buffer;
        cell.turn.store(at + kCells, std::memory_order_release);
        return b;
      }
    }
  }

 private:
  static constexpr size_t kCells = 4096;
  struct Cell {
    std::atomic<size_t> turn;
    Buffer* buffer = nullptr;
  };
  std::array<Cell, kCells> cells_;
  alignas(dp::kCacheLine) std::atomic<size_t> head_{0};
  alignas(dp::kCacheLine) std::atomic<size_t> tail_{0};
};

class MemoryNet {
 public:
  MemoryNet(size_t workers, dp::PortIndex ports) : handed_over_(workers), ports_(ports) {
    for (auto& q : handed_over_) q = std::make_unique<BufferQueue>();
  }
  BufferQueue& handed_over(dp::WorkerIndex w) { return *handed_over_[w]; }
  dp::PortIndex ports() const { return ports_; }

  // A hundred times the wall's pace.
  dp::Nanoseconds now() const {
    const auto passed = std::chrono::steady_clock::now() - start_;
    return dp::kSecond + 100 * static_cast<dp::Nanoseconds>(std::chrono::nanoseconds(passed).count());
  }

 private:
  std::vector<std::unique_ptr<BufferQueue>> handed_over_;
  dp::PortIndex ports_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// Peer: Buffer* next_frame(PortIndex), nullptr when nothing arrives now; void transmitted(PortIndex, const Packet&).
template <class Peer>
class MemoryIo {
 public:
  MemoryIo(MemoryNet& net, dp::WorkerIndex self, Peer& peer) : net_(net), self_(self), peer_(peer) {}

  dp::PortIndex ports() const { return net_.ports(); }

  void receive(dp::PortIndex port, dp::Burst& burst, WorkerCounters&) {
    fill(burst, [&] { return peer_.next_frame(port); });
    received += burst.count;
  }

  void receive_handed_over(dp::Burst& burst, WorkerCounters& counters) {
    std::this_thread::yield();  // with fewer processors than workers the rings would fill up in a time slice
    fill(burst, [&] { return net_.handed_over(self_).pop(); });
    counters.taken_over.add(burst.count);
  }

  void receive_from_kernel(dp::PortIndex, dp::Burst& burst, WorkerCounters&) { burst.count = 0; }

  void carry_out(dp::Burst& burst, WorkerCounters& counters) {
    for (uint32_t i = 0; i < burst.count; ++i) {
      const dp::Outcome& outcome = burst.outcomes[i];
      const dp::Packet& packet = burst.packets[i];
      auto* buffer = static_cast<Buffer*>(packet.handle);
      if (outcome.verdict == dp::Verdict::kHeld) continue;
      if (outcome.verdict == dp::Verdict::kHandOver) {
        buffer->packet = packet;
        if (net_.handed_over(outcome.target).push(buffer)) {
          counters.handed_over.add();
          continue;
        }
        counters.drop(DropReason::kHandOverFull);
      }
      if (outcome.verdict == dp::Verdict::kTransmit) {
        counters.transmitted.add();
        peer_.transmitted(outcome.target, packet);
      }
      if (outcome.verdict == dp::Verdict::kKernel) counters.to_kernel.add();
      delete buffer;
    }
  }

  void send(const dp::Outbox& outbox, const dp::SiteTable&, WorkerCounters& counters) {
    for (const dp::Frame& frame : outbox) counters.own_frames.add(frame.length > 0);
  }

  dp::Nanoseconds now() const { return net_.now(); }
  void sleep(bool) { std::this_thread::sleep_for(std::chrono::microseconds(100)); }

  uint64_t received = 0;  // from ports; read it when the worker has ended

 private:
  template <class Next>
  void fill(dp::Burst& burst, Next next) {
    burst.count = 0;
    while (burst.count < dp::kBurstMax) {
      Buffer* buffer = next();
      if (buffer == nullptr) return;
      burst.packets[burst.count++] = buffer->packet;
    }
  }

  MemoryNet& net_;
  dp::WorkerIndex self_;
  Peer& peer_;
};

}  // namespace margay::test
