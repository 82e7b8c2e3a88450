// SPDX-License-Identifier: Apache-2.0
#pragma once

// The data plane's counters in shared memory: what lies where, computed by both sides from the same three numbers. The
// data plane writes; the control plane maps it read-only and believes nothing: open_counters() checks the header and
// the size first, and every number in there is only ever a number.
//
// Pages are taken as they are touched: an instance costs 4 KiB a worker from its first flow on, whatever the capacity.

#include <cstdint>
#include <optional>
#include <span>

#include "common/counters.h"
#include "common/health.h"
#include "common/result.h"
#include "common/units.h"

namespace margay::shared_table {

struct CountersShape {
  uint32_t workers = 0;
  uint32_t instances = 0, scis = 0;  // capacity, by index

  bool operator==(const CountersShape&) const = default;
};

// What the operator of the data plane has set over what the control plane says of an instance, until it is cleared. In
// one word, so that it is read whole.
struct OperatorSetting {
  uint16_t generation = 0;  // of the instance that has, or last had, the index; also where nothing is set
  std::optional<Admin> admin;
  std::optional<uint32_t> max_sessions;  // at most kSessionsMax
  std::optional<uint16_t> weight;

  uint64_t pack() const;
  static OperatorSetting unpack(uint64_t word);
  bool operator==(const OperatorSetting&) const = default;
};

// Byte: std::byte for the one who writes, const std::byte for readers.
template <class Byte>
class CountersView {
  template <class T>
  using As = std::conditional_t<std::is_const_v<Byte>, const T, T>;

 public:
  CountersView() = default;
  // REQUIRES: bytes.size() == counters_bytes(shape), on a cache line, zeroed at first; or none, for the shape alone
  CountersView(std::span<Byte> bytes, CountersShape shape);

  const CountersShape& shape() const { return shape_; }
  std::span<As<Counter>> stopped() const { return stopped_; }    // one: 1 while all packets of SCIs are dropped
  std::span<As<Counter>> settings() const { return settings_; }  // OperatorSetting by instance
  std::span<As<WorkerCounters>> workers() const { return workers_; }
  std::span<As<SciCounters>> scis() const { return scis_; }                 // by worker, then SCI
  std::span<As<InstanceCounters>> instances() const { return instances_; }  // by worker, then instance
  std::span<As<InstanceTimes>> times() const { return times_; }             // by worker, then instance

 private:
  CountersShape shape_;
  std::span<As<Counter>> stopped_;
  std::span<As<Counter>> settings_;
  std::span<As<WorkerCounters>> workers_;
  std::span<As<SciCounters>> scis_;
  std::span<As<InstanceCounters>> instances_;
  std::span<As<InstanceTimes>> times_;
};

size_t counters_bytes(CountersShape shape);
// Writes the header. REQUIRES: as the view's.
CountersView<std::byte> make_counters(std::span<std::byte> bytes, CountersShape shape);
// The error says what is wrong with the header, or with the size.
Result<CountersView<const std::byte>> open_counters(std::span<const std::byte> bytes);

}  // namespace margay::shared_table
