// SPDX-License-Identifier: Apache-2.0
#include "common/shared_table/counters.h"

#include <cstring>
#include <string>
#include <type_traits>

#include "common/sci_config.h"
#include "common/shared_table/snapshot.h"

namespace margay::shared_table {
namespace {

struct alignas(kCounterAlignment) Header {
  static constexpr uint64_t kMagic = 0x53544e554f43474d;  // "MGCOUNTS"
  // Grows with any change of what the counters mean; their sizes speak for themselves.
  static constexpr uint32_t kVersion = 2;

  uint64_t magic = kMagic;
  uint32_t version = kVersion;
  CountersShape shape;
  std::array<uint32_t, 4> sizes{sizeof(WorkerCounters), sizeof(SciCounters), sizeof(InstanceCounters),
                                sizeof(InstanceTimes)};
};
static_assert(std::is_trivially_copyable_v<Header>);

// Places one array after the other, each on a cache line of its own.
struct Cursor {
  size_t at = 0;

  size_t place(size_t bytes) {
    const size_t here = at;
    at += (bytes + kCounterAlignment - 1) / kCounterAlignment * kCounterAlignment;
    return here;
  }
};

struct Offsets {
  size_t stopped, settings, workers, scis, instances, times, end;
};

Offsets offsets_of(CountersShape shape) {
  const size_t workers = shape.workers;
  Cursor cursor;
  cursor.place(sizeof(Header));
  Offsets o{};
  o.stopped = cursor.place(sizeof(Counter));
  o.settings = cursor.place(shape.instances * sizeof(Counter));
  o.workers = cursor.place(workers * sizeof(WorkerCounters));
  o.scis = cursor.place(workers * shape.scis * sizeof(SciCounters));
  o.instances = cursor.place(workers * shape.instances * sizeof(InstanceCounters));
  o.times = cursor.place(workers * shape.instances * sizeof(InstanceTimes));
  o.end = cursor.at;
  return o;
}

// Bits of an OperatorSetting's word, from the lowest.
constexpr unsigned kAdminAt = 16, kSessionsAt = 19, kWeightAt = 44;

template <class T>
uint64_t optional_bits(const std::optional<T>& value) {
  return value ? static_cast<uint64_t>(*value) << 1 | 1 : 0;
}
template <class T>
std::optional<T> optional_of(uint64_t word, unsigned at, unsigned bits) {
  const uint64_t field = word >> at & ((uint64_t{1} << (bits + 1)) - 1);
  if ((field & 1) == 0) return std::nullopt;
  return static_cast<T>(field >> 1);
}

}  // namespace

uint64_t OperatorSetting::pack() const {
  static_assert(kSessionsMax < 1u << (kWeightAt - kSessionsAt - 1));
  return generation | optional_bits(admin) << kAdminAt | optional_bits(max_sessions) << kSessionsAt |
         optional_bits(weight) << kWeightAt;
}

OperatorSetting OperatorSetting::unpack(uint64_t word) {
  OperatorSetting setting{.generation = static_cast<uint16_t>(word),
                          .admin = optional_of<Admin>(word, kAdminAt, 2),
                          .max_sessions = optional_of<uint32_t>(word, kSessionsAt, 24),
                          .weight = optional_of<uint16_t>(word, kWeightAt, 16)};
  if (setting.admin && *setting.admin > Admin::kDisabled) setting.admin.reset();
  return setting;
}

template <class Byte>
CountersView<Byte>::CountersView(std::span<Byte> bytes, CountersShape shape) : shape_(shape) {
  if (bytes.empty()) return;
  const Offsets o = offsets_of(shape);
  const auto at = [&]<class T>(size_t offset, size_t end, std::type_identity<T>) {
    return std::span<As<T>>(reinterpret_cast<As<T>*>(bytes.data() + offset), (end - offset) / sizeof(T));
  };
  stopped_ = at(o.stopped, o.settings, std::type_identity<Counter>{}).first(1);
  settings_ = at(o.settings, o.workers, std::type_identity<Counter>{}).first(shape.instances);
  workers_ = at(o.workers, o.scis, std::type_identity<WorkerCounters>{});
  scis_ = at(o.scis, o.instances, std::type_identity<SciCounters>{});
  instances_ = at(o.instances, o.times, std::type_identity<InstanceCounters>{});
  times_ = at(o.times, o.end, std::type_identity<InstanceTimes>{});
}

template class CountersView<std::byte>;
template class CountersView<const std::byte>;

size_t counters_bytes(CountersShape shape) { return offsets_of(shape).end; }

CountersView<std::byte> make_counters(std::span<std::byte> bytes, CountersShape shape) {
  Header header;
  header.shape = shape;
  std::memcpy(bytes.data(), &header, sizeof header);
  return {bytes, shape};
}

Result<CountersView<const std::byte>> open_counters(std::span<const std::byte> bytes) {
  Header header;
  if (bytes.size() < sizeof header) return Error{"counters: shorter than their header"};
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.magic != Header::kMagic) return Error{"counters: the header is none"};
  if (header.version != Header::kVersion || header.sizes != Header{}.sizes) {
    return Error{"counters: of another version of margay-dataplane"};
  }
  const CountersShape shape = header.shape;
  if (shape.workers == 0 || shape.workers > kWorkersMax || shape.instances > kInstancesMax || shape.scis > kScisMax) {
    return Error{"counters: " + std::to_string(shape.workers) + " workers, " + std::to_string(shape.instances) +
                 " instances and " + std::to_string(shape.scis) + " SCIs, expected what a site can have"};
  }
  if (bytes.size() != counters_bytes(shape)) {
    return Error{"counters: " + std::to_string(bytes.size()) + " bytes, expected " +
                 std::to_string(counters_bytes(shape))};
  }
  return CountersView<const std::byte>(bytes, shape);
}

}  // namespace margay::shared_table
