// SPDX-License-Identifier: Apache-2.0
#pragma once

// Counters: one writer each (the worker), any reader. A plain aligned store a count, no locked instruction;
// a reader sees each value whole and lately true. They only grow. They may lie in memory that is shared with the
// control plane (common/shared_table/counters.h): zeroed memory holds valid counters.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "common/histogram.h"
#include "common/reasons.h"

namespace margay {

inline constexpr size_t kCounterAlignment = 64;  // no two writers on one cache line

class Counter {
 public:
  void add(uint64_t n = 1) { value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed); }
  void subtract(uint64_t n = 1) { value_.store(value_.load(std::memory_order_relaxed) - n, std::memory_order_relaxed); }
  void set(uint64_t n) { value_.store(n, std::memory_order_relaxed); }
  uint64_t get() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

struct alignas(kCounterAlignment) InstanceCounters {  // per worker and instance
  Counter generation;                                 // of the instance that they count for
  Counter packets_in, bytes_in;                       // from clients
  Counter packets_out, bytes_out;                     // from the instance, modes with two directions
  Counter active;                                     // sessions that hold a slot now
  Counter bindings;                                   // entries that name the instance now, slot or not
  Counter opened;                                     // slots taken
  Counter provisional;                                // of the active ones: what no proven flow holds (D-45)
  Counter syn_unanswered;                             // TCP: ended with no answer to the client's SYN
  Counter resets;                                     // TCP: connections that the instance reset
  std::array<Counter, kEndReasons> ended;             // slots released, by reason
  // New flows that it was offered and did not take, by cause; another instance took them, or they were refused.
  std::array<Counter, kRefusals> passed_over;

  void pass_over(Refusal why) { passed_over[static_cast<size_t>(why)].add(); }
  // Worker: an index that serves another instance begins at 0. REQUIRES: no binding names the earlier one.
  void serve(uint16_t now) {
    for (Counter* c : {&packets_in, &bytes_in, &packets_out, &bytes_out, &opened, &syn_unanswered, &resets}) {
      c->set(0);
    }
    for (Counter& c : ended) c.set(0);
    for (Counter& c : passed_over) c.set(0);
    generation.set(now);
  }
};

struct alignas(kCounterAlignment) SciCounters {  // per worker and SCI
  std::array<Counter, kRefusals> refused;        // client packets answered with a reset or an ICMP error, by cause
};

struct alignas(kCounterAlignment) WorkerCounters {
  Counter packets;                  // taken from ports, rings and kernel interfaces
  Counter hits, misses;             // of SCI traffic, in the flow table
  Counter handed_over, taken_over;  // to and from other workers
  Counter held, released;           // waiting for a next hop
  Counter consumed, transmitted, to_kernel, from_kernel;
  Counter own_frames;  // made by us: ARP, ND, resets to the other side
  Counter evicted;     // transient bindings that gave way
  Counter flow_insert_failed;
  Counter replies_handed_over;        // of those handed over: from instances
  Counter timers_fired, timers_late;  // late: more than a second behind
  Counter audit_passes, audit_differences;
  Counter polls, idle_polls;               // polls is the heartbeat: it moves at each one
  std::array<Counter, kRefusals> refused;  // answered with a reset or an ICMP error, by cause; these are no drops
  std::array<Counter, kDropReasons> drops;

  void drop(DropReason r, uint64_t n = 1) { drops[static_cast<size_t>(r)].add(n); }
};

// Durations, as a Histogram's buckets.
struct DurationCounters {
  std::array<Counter, Histogram::kBuckets> counts;
  Counter sum;  // ns

  void add(Nanoseconds value) {
    counts[Histogram::bucket_of(value)].add();
    sum.add(value);
  }
  void clear() {
    for (Counter& c : counts) c.set(0);
    sum.set(0);
  }
  // Any thread: not one moment's, but nothing that was added before the call is missing.
  void add_to(Histogram& all) const {
    for (size_t b = 0; b < Histogram::kBuckets; ++b) all.counts[b] += counts[b].get();
    all.sum += sum.get();
  }
};

struct alignas(kCounterAlignment) InstanceTimes {  // per worker and instance
  DurationCounters handshakes;                     // from a client's SYN to the instance's answer
  DurationCounters responses;                      // from the last data of a request to the first of its response
  Counter recent;                                  // of these, of late: the data plane's own (core/response_time.h)

  void clear() {
    handshakes.clear();
    responses.clear();
    recent.set(0);
  }
};

}  // namespace margay
