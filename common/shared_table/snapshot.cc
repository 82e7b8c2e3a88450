// SPDX-License-Identifier: Apache-2.0
#include "common/shared_table/snapshot.h"

#include <array>
#include <bit>
#include <cstring>
#include <string_view>
#include <type_traits>
#include <unordered_set>
#include <utility>

#include <xxhash.h>

#include "common/shared_table/snapshot_fields.h"

namespace margay::shared_table {
namespace {

constexpr uint32_t kMagic = 0x5359474d;  // "MGYS"
constexpr uint32_t kVersion = 3;

// Walks over the fields (snapshot_fields.h).
class Encoder {
 public:
  template <class T>
  void number(std::string_view, const T& value, uint64_t, uint64_t) {
    put(static_cast<uint64_t>(value), sizeof(T));
  }
  template <class E>
  void word(std::string_view, const E& value, E) {
    put(static_cast<uint64_t>(value), sizeof(E));
  }
  void flag(std::string_view, const bool& value) { put(value ? 1 : 0, 1); }
  void duration(std::string_view, const Nanoseconds& value) { put(value, sizeof value); }
  void protocol(std::string_view, const Protocol& value) { put(static_cast<uint64_t>(value), sizeof value); }
  void text(std::string_view, const std::string& value, size_t) {
    put(value.size(), 2);
    raw(value.data(), value.size());
  }
  void share(std::string_view, const double& value) { put(std::bit_cast<uint64_t>(value), 8); }
  void address(std::string_view, const IpAddress& value) { raw(value.bytes.data(), value.bytes.size()); }
  // A static MAC travels as its bytes; all zeros: none.
  void mac(std::string_view, const std::optional<MacAddress>& value) {
    raw(value.value_or(MacAddress{}).bytes.data(), sizeof value->bytes);
  }
  template <class T, class Each>
  void list(std::string_view, const std::vector<T>& values, uint32_t, Each each) {
    put(values.size(), 4);
    for (const T& value : values) each(*this, value);
  }
  void put(uint64_t value, size_t size) {
    for (size_t i = 0; i < size; ++i) bytes.push_back(static_cast<std::byte>(value >> 8 * i));
  }

  std::vector<std::byte> bytes;

 private:
  void raw(const void* from, size_t size) {
    const auto* first = static_cast<const std::byte*>(from);
    bytes.insert(bytes.end(), first, first + size);
  }
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : rest_(bytes) {}

  template <class T>
  void number(std::string_view name, T& value, uint64_t min, uint64_t max) {
    const uint64_t read = take(name, sizeof(T));
    if (failed()) return;
    if (read < min || read > max) {
      return fail(name, std::to_string(read) + ", expected " + std::to_string(min) + " to " + std::to_string(max));
    }
    value = static_cast<T>(read);
  }
  template <class E>
  void word(std::string_view name, E& value, E last) {
    number(name, value, 0, static_cast<uint64_t>(last));
  }
  void flag(std::string_view name, bool& value) { number(name, value, 0, 1); }
  void duration(std::string_view name, Nanoseconds& value) { number(name, value, 0, kTimerMax); }
  void protocol(std::string_view name, Protocol& value) { number(name, value, 0, 255); }
  void text(std::string_view name, std::string& value, size_t max) {
    const uint64_t size = take(name, 2);
    if (failed()) return;
    if (size == 0 || size > max) {
      return fail(name, std::to_string(size) + " bytes, expected 1 to " + std::to_string(max));
    }
    if (size > rest_.size()) return fail(name, "ends early");
    value.assign(reinterpret_cast<const char*>(rest_.data()), size);
    rest_ = rest_.subspan(size);
    for (const char c : value) {
      if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return fail(name, "holds a control character");
    }
  }
  void share(std::string_view name, double& value) {
    value = std::bit_cast<double>(take(name, 8));
    if (!failed() && !(value >= 0 && value <= 1)) fail(name, "expected 0 to 1");
  }
  void address(std::string_view name, IpAddress& value) { octets(name, value.bytes); }
  void mac(std::string_view name, std::optional<MacAddress>& value) {
    MacAddress read;
    octets(name, read.bytes);
    if (!read.is_zero()) value = read;
  }
  template <class T, class Each>
  void list(std::string_view name, std::vector<T>& values, uint32_t max, Each each) {
    const uint64_t count = take(name, 4);
    if (failed()) return;
    if (count > max) return fail(name, std::to_string(count) + ", expected at most " + std::to_string(max));
    const size_t outer = path_.size();
    for (uint64_t i = 0; i < count && !failed(); ++i) {
      path_ += std::string(name) + "[" + std::to_string(i) + "].";
      each(*this, values.emplace_back());
      if (!failed()) path_.resize(outer);
    }
  }
  uint64_t take(std::string_view name, size_t size) {
    if (failed()) return 0;
    if (size > rest_.size()) {
      fail(name, "ends early");
      return 0;
    }
    uint64_t value = 0;
    for (size_t i = 0; i < size; ++i) value |= std::to_integer<uint64_t>(rest_[i]) << 8 * i;
    rest_ = rest_.subspan(size);
    return value;
  }
  void fail(std::string_view name, const std::string& message) {
    if (error_.empty()) error_ = path_ + std::string(name) + ": " + message;
  }

  bool failed() const { return !error_.empty(); }
  const std::string& error() const { return error_; }
  size_t left() const { return rest_.size(); }

 private:
  template <size_t N>
  void octets(std::string_view name, std::array<uint8_t, N>& value) {
    if (failed()) return;
    if (N > rest_.size()) return fail(name, "ends early");
    std::memcpy(value.data(), rest_.data(), N);
    rest_ = rest_.subspan(N);
  }

  std::span<const std::byte> rest_;
  std::string path_, error_;
};

// What the numbers must be to each other.
class Consistency {
 public:
  Result<void> check(const Snapshot& s) {
    if (s.base >= s.generation) {
      return Error{"base: " + std::to_string(s.base) + ", expected below the generation " +
                   std::to_string(s.generation)};
    }
    if (s.base == 0 && !s.removed.empty()) return Error{"removed: expected empty in a complete snapshot"};
    for (const SciRecord& sci : s.scis) {
      if (auto done = check(sci); !done) return done;
    }
    for (const uint32_t index : s.removed) {
      if (!scis_.insert(index).second) return Error{"removed: SCI " + std::to_string(index) + " is named twice"};
    }
    return {};
  }

 private:
  Result<void> check(const SciRecord& sci) {
    const std::string where = "scis[" + sci.policy.csci_id + "]";
    if (!scis_.insert(sci.index).second) return Error{where + ": index " + std::to_string(sci.index) + " stands twice"};
    if (!names_.insert(sci.policy.csci_id).second) return Error{where + ": stands twice"};
    if (sci.policy.endpoints.empty()) return Error{where + ": has no endpoint"};
    for (const Endpoint& e : sci.policy.endpoints) {
      if (e.protocol != Protocol::kTcp && e.protocol != Protocol::kUdp) {
        return Error{where + ".endpoints: protocol " + std::to_string(static_cast<int>(e.protocol)) +
                     ", expected TCP (6) or UDP (17)"};
      }
    }
    std::unordered_set<std::string_view> ids;
    for (const InstanceRecord& i : sci.instances) {
      const std::string which = where + ".instances[" + i.config.id + "]";
      if (!ids.insert(i.config.id).second) return Error{which + ": stands twice"};
      if (!instances_.insert(i.index).second) {
        return Error{which + ": index " + std::to_string(i.index) + " stands twice"};
      }
      if (i.limit > i.config.max_sessions) {
        return Error{which + ": limit " + std::to_string(i.limit) + ", expected at most max_sessions " +
                     std::to_string(i.config.max_sessions)};
      }
    }
    return {};
  }

  std::unordered_set<uint32_t> scis_, instances_;
  std::unordered_set<std::string_view> names_;
};

}  // namespace

std::vector<std::byte> encode(const Snapshot& snapshot) {
  Encoder w;
  w.put(kMagic, 4);
  w.put(kVersion, 4);
  pass_snapshot(w, snapshot);
  return std::move(w.bytes);
}

Result<Snapshot> decode(std::span<const std::byte> bytes) {
  Reader r(bytes);
  if (r.take("magic", 4) != kMagic) return Error{"magic: not a snapshot"};
  const uint64_t version = r.take("version", 4);
  if (version != kVersion) {
    return Error{"version: " + std::to_string(version) + ", expected " + std::to_string(kVersion)};
  }
  Snapshot snapshot;
  pass_snapshot(r, snapshot);
  if (r.failed()) return Error{r.error()};
  if (r.left() > 0) return Error{"length: " + std::to_string(r.left()) + " bytes too many"};
  if (auto done = Consistency().check(snapshot); !done) return done.error();
  return snapshot;
}

uint64_t checksum(std::span<const std::byte> bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

}  // namespace margay::shared_table
