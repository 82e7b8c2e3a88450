// SPDX-License-Identifier: Apache-2.0
#pragma once

// Of wire.h's functions: single values. Any thread.

#include <google/protobuf/duration.pb.h>
#include <google/protobuf/timestamp.pb.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "common/share.h"
#include "common/token_bucket.h"
#include "common/units.h"
#include "control/sci/metrics.h"

namespace margay::v1 {
class Sample;
class TokenRate;
}  // namespace margay::v1
namespace margay::control {

// An enum value of the core is one less than that of the message, whose 0 is UNSPECIFIED.
template <class Wire, class Core>
constexpr Wire enum_to_wire(Core value) {
  return static_cast<Wire>(static_cast<int>(value) + 1);
}

void put(Nanoseconds value, google::protobuf::Duration& out);
void put_unix_ms(int64_t value, google::protobuf::Timestamp& out);
int64_t unix_ms_of(const google::protobuf::Timestamp& time);
std::string utf8(const std::string& text);

template <class T, class Setter>
void put_if(const std::optional<T>& value, Setter&& set) {
  if (value) set(*value);
}

// The other way round.
template <class T>
void take_if(bool present, T value, std::optional<T>& out) {
  if (present) out = value;
}

void put(const TokenRate& rate, v1::TokenRate& out);

inline constexpr uint32_t kAny = std::numeric_limits<uint32_t>::max();  // a count may be
inline constexpr double kShareMax = 4;                                  // as in the site file

class WireReader;
// What is absent stays as it is.
void take(WireReader& reader, const v1::TokenRate& in, TokenRate& rate);
Sample take_sample(WireReader& reader, const v1::Sample& in);

// Reads fields of messages and keeps what was wrong with the first that was.
class WireReader {
 public:
  // What is longer is no time of ours: sums of a few of these still fit.
  static constexpr Nanoseconds kLongest = 1'000'000'000 * kSecond;

  const std::string& fault() const { return fault_; }
  void fail(std::string_view field, const std::string& expected) {
    if (fault_.empty()) fault_ = std::string(field) + ": expected " + expected;
  }

  Nanoseconds duration(std::string_view field, const google::protobuf::Duration& value, Nanoseconds min = 0);

  template <class Core, class Wire>
  Core enumerated(std::string_view field, Wire value, Core last) {
    const int number = static_cast<int>(value) - 1;
    if (number >= 0 && number <= static_cast<int>(last)) return static_cast<Core>(number);
    fail(field, "one of its words");
    return Core{};
  }

  uint32_t integer(std::string_view field, uint64_t value, uint32_t min, uint32_t max) {
    if (value >= min && value <= max) return static_cast<uint32_t>(value);
    fail(field, std::to_string(min) + " to " + std::to_string(max));
    return min;
  }

  Share share(std::string_view field, double value, double max) {
    if (value >= 0 && value <= max) return Share{value};  // NaN is neither
    fail(field, "0 to " + std::to_string(static_cast<int>(max)));
    return Share{};
  }

 private:
  std::string fault_;
};

}  // namespace margay::control
