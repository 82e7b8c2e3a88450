// SPDX-License-Identifier: Apache-2.0
#pragma once

// The poll loop of one worker, and nothing else: receive, process, carry out, timers, quiescent state. The shell
// around it is a parameter: DPDK ports in production (dataplane/dpdk/port_io.h), captures in replay, memory in
// tests. An Io gives, for one worker:
//
//   PortIndex ports() const;
//   void receive(PortIndex, Burst&, WorkerCounters&);             this worker's RX queue of the port; count may be 0
//   void receive_handed_over(Burst&, WorkerCounters&);            the ring from the other workers
//   void receive_from_kernel(PortIndex, Burst&, WorkerCounters&); the port's kernel interface
//   void carry_out(Burst&, WorkerCounters&);                      does what the outcomes say, frees what is dropped
//   void send(const Outbox&, const SiteTable&, WorkerCounters&);  copies own frames out
//   Nanoseconds now();
//   void sleep(bool shortly);                                     blocks for at most a millisecond (idle: sleep);
//                                                                 shortly: for a fifth of that

#include <algorithm>
#include <atomic>

#include "dataplane/core/fast_path.h"
#include "dataplane/mailbox.h"

namespace margay::dp {

template <class Io, class Rcu>
class Worker {
 public:
  using TablePointer = typename Rcu::template Pointer<const SiteTable>;

  Worker(Io& io, FastPath& fast_path, const TablePointer& table, Mailbox& mailbox, Idle idle)
      : io_(io), fast_path_(fast_path), table_(table), mailbox_(mailbox), idle_(idle) {}

  // One poll of everything. Returns how many packets it moved. The calling thread is a registered, online reader.
  uint32_t poll();

  // Polls until `stop`; registers as an RCU reader and leaves again.
  void run(const std::atomic<bool>& stop);

 private:
  uint32_t receive_and_process(const SiteTable& table);
  void flush_outbox(const SiteTable& table);
  void rest_if_idle(uint32_t moved);

  static constexpr uint32_t kIdlePollsBeforeSleep = 256;
  static constexpr uint32_t kIdlePollsBeforeLongSleep = 768;  // after a tenth of a second of short ones

  Io& io_;
  FastPath& fast_path_;
  const TablePointer& table_;
  Mailbox& mailbox_;
  Idle idle_;
  Burst burst_;
  uint32_t idle_polls_ = 0;
  bool announced_ = false;
};

template <class Io, class Rcu>
uint32_t Worker<Io, Rcu>::receive_and_process(const SiteTable& table) {
  WorkerCounters& counters = fast_path_.counters();
  uint32_t moved = 0;
  burst_.handed_over = true;
  io_.receive_handed_over(burst_, counters);
  if (burst_.count > 0) {
    fast_path_.process(burst_, table, io_.now());
    io_.carry_out(burst_, counters);
    moved += burst_.count;
  }
  burst_.handed_over = false;
  for (PortIndex port = 0; port < io_.ports(); ++port) {
    io_.receive(port, burst_, counters);
    if (burst_.count > 0) {
      fast_path_.process(burst_, table, io_.now());
      io_.carry_out(burst_, counters);
      moved += burst_.count;
    }
    if (!table.ports[port].has_kernel) continue;
    io_.receive_from_kernel(port, burst_, counters);
    if (burst_.count > 0) {
      fast_path_.process_from_kernel(burst_, port, table);
      io_.carry_out(burst_, counters);
      moved += burst_.count;
    }
  }
  return moved;
}

template <class Io, class Rcu>
void Worker<Io, Rcu>::flush_outbox(const SiteTable& table) {
  Outbox& outbox = fast_path_.outbox();
  if (outbox.empty()) return;
  io_.send(outbox, table, fast_path_.counters());
  outbox.clear();
}

template <class Io, class Rcu>
uint32_t Worker<Io, Rcu>::poll() {
  const SiteTable& table = *table_.read();
  if (!announced_) [[unlikely]] {
    if (fast_path_.self() == 0) fast_path_.announce();
    announced_ = true;
  }
  uint32_t moved = receive_and_process(table);
  const Nanoseconds now = io_.now();
  if (fast_path_.release_held(burst_, table, now)) {
    io_.carry_out(burst_, fast_path_.counters());
    moved += burst_.count;
  }
  if (fast_path_.tick(table, now)) ++moved;
  flush_outbox(table);
  mailbox_.serve(fast_path_, table);
  WorkerCounters& counters = fast_path_.counters();
  counters.polls.add();
  if (moved == 0) counters.idle_polls.add();
  return moved;
}

template <class Io, class Rcu>
void Worker<Io, Rcu>::rest_if_idle(uint32_t moved) {
  if (idle_ == Idle::kSpin) return;
  idle_polls_ = moved > 0 ? 0 : std::min(idle_polls_ + 1, kIdlePollsBeforeLongSleep);
  if (idle_polls_ < kIdlePollsBeforeSleep) return;
  Rcu::offline();
  io_.sleep(idle_polls_ < kIdlePollsBeforeLongSleep);
  Rcu::online();
}

template <class Io, class Rcu>
void Worker<Io, Rcu>::run(const std::atomic<bool>& stop) {
  Rcu::register_reader();
  while (!stop.load(std::memory_order_relaxed)) {
    const uint32_t moved = poll();
    Rcu::quiescent();
    rest_if_idle(moved);
  }
  Rcu::unregister_reader();
}

}  // namespace margay::dp
