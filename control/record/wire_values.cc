// SPDX-License-Identifier: Apache-2.0
#include "control/record/wire_values.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "margay/v1/sci_config.pb.h"

namespace margay::control {
namespace {

// google.protobuf.Timestamp: 0001-01-01T00:00:00Z to 9999-12-31T23:59:59Z.
constexpr int64_t kFirstSecond = -62'135'596'800, kLastSecond = 253'402'300'799;
constexpr int64_t kPerSecond = 1000;

}  // namespace

void put(Nanoseconds value, google::protobuf::Duration& out) {
  out.set_seconds(static_cast<int64_t>(value / kSecond));
  out.set_nanos(static_cast<int32_t>(value % kSecond));
}

void put_unix_ms(int64_t value, google::protobuf::Timestamp& out) {
  const int64_t ms = std::clamp(value, kFirstSecond * kPerSecond, kLastSecond * kPerSecond);
  const int64_t within = (ms % kPerSecond + kPerSecond) % kPerSecond;  // nanos count forward, before 1970 too
  out.set_seconds((ms - within) / kPerSecond);
  out.set_nanos(static_cast<int32_t>(within) * static_cast<int32_t>(kMillisecond));
}

int64_t unix_ms_of(const google::protobuf::Timestamp& time) {
  const int64_t seconds = std::clamp(time.seconds(), kFirstSecond, kLastSecond);
  return seconds * kPerSecond + time.nanos() / static_cast<int32_t>(kMillisecond);
}

std::string utf8(const std::string& text) {
  using Json = nlohmann::json;
  const bool ascii = std::all_of(text.begin(), text.end(), [](char c) { return (c & 0x80) == 0; });
  if (ascii) return text;
  return Json::parse(Json(text).dump(-1, ' ', false, Json::error_handler_t::replace)).get<std::string>();
}

void put(const TokenRate& rate, v1::TokenRate& out) {
  control::put(rate.spacing, *out.mutable_spacing());
  out.set_burst(rate.burst);
}

void take(WireReader& reader, const v1::TokenRate& in, TokenRate& rate) {
  constexpr uint32_t kBurstMax = 1'000'000;
  constexpr Nanoseconds kSpacingMax = 10'000 * kSecond;  // so that a whole bucket fits into 64 bits
  if (in.has_spacing()) rate.spacing = reader.duration("spacing", in.spacing(), 1);
  if (rate.spacing > kSpacingMax) reader.fail("spacing", "at most 10000s");
  if (in.has_burst()) rate.burst = reader.integer("burst", in.burst(), 1, kBurstMax);
}

Nanoseconds WireReader::duration(std::string_view field, const google::protobuf::Duration& value, Nanoseconds min) {
  const bool whole = value.seconds() >= 0 && value.nanos() >= 0 && value.nanos() < static_cast<int32_t>(kSecond);
  const bool fits = whole && static_cast<uint64_t>(value.seconds()) <= kLongest / kSecond;
  const Nanoseconds time =
      fits ? static_cast<uint64_t>(value.seconds()) * kSecond + static_cast<uint64_t>(value.nanos()) : 0;
  if (fits && time >= min && time <= kLongest) return time;
  fail(field, "a time of " + std::string(min == 0 ? "0s" : "more than 0s") + " to " +
                  std::to_string(kLongest / kSecond) + "s");
  return min;
}

}  // namespace margay::control
