// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the Validator & Sanitizer says of one report (CSMA-34..55). Plain values.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace margay::c_sma {

enum class Verdict : uint8_t {
  kAccepted,
  kFlagged,      // believed, with a warning (CSMA-48)
  kQuarantined,  // a sign of life; what it says better than what is believed waits for a second report or an operator
  kRefused,      // as if it had never come
};
inline constexpr size_t kVerdicts = 4;
std::string_view name_of(Verdict v);  // "ACCEPTED"

enum class Refusal : uint8_t {
  kUnreadable,        // no report
  kNotListed,         // no SCI that this C-SMA accepts
  kWrongCsId,         // not the service that the site file names for it (CSMA-187)
  kNotInCertificate,  // the peer may not report for it (CSMA-33, D-16)
  kMalformed,         // CSMA-55
  kInconsistentCounts,
  kOutOfRange,  // CSMA-43
  kDuplicate,   // CSMA-49, 50
  kOldSequence,
  kOldEpoch,
  kSkew,          // D-15
  kOtherCsciId,   // the stream is another SCI's
  kSecondStream,  // a live stream of another identity has it (D-31)
  kTakeOverTooOften,
  kQuotaIdentity,  // D-19
  kQuotaCsId,
  kCacheFull,
};
inline constexpr size_t kRefusals = 17;
std::string_view name_of(Refusal r);  // "NOT_LISTED"

// Ascending: the last of several names the report.
enum class Anomaly : uint8_t {
  kComputingTimeZero,    // with GAS above 0 (CSMA-53)
  kGasWithoutService,    // GAS above 0 and no instance that serves: counted as 0 (CSMA-51)
  kOwnClock,             // skewed, but our own clock is suspected (D-29)
  kComputingTimeChange,  // CSMA-46
  kFlapping,             // CSMA-47
  kGasChange,            // CSMA-45
  kGasCeiling,           // more than the SCI may claim (D-10)
};
inline constexpr size_t kAnomalies = 7;
std::string_view name_of(Anomaly a);  // "GAS_CHANGE"

class Anomalies {
 public:
  constexpr void add(Anomaly a) { bits_ = static_cast<uint8_t>(bits_ | 1u << static_cast<unsigned>(a)); }
  constexpr void add(Anomalies others) { bits_ = static_cast<uint8_t>(bits_ | others.bits_); }
  constexpr bool has(Anomaly a) const { return (bits_ >> static_cast<unsigned>(a) & 1u) != 0; }
  constexpr bool empty() const { return bits_ == 0; }
  // REQUIRES: !empty()
  Anomaly foremost() const;
  constexpr bool operator==(const Anomalies&) const = default;

 private:
  uint8_t bits_ = 0;
};

struct Judgement {
  Verdict verdict = Verdict::kAccepted;
  std::optional<Refusal> refusal = {};
  Anomalies anomalies = {};
  std::string detail = {};  // one line for a person
  bool confirms = false;    // the second report that what was in quarantine waited for

  // The refusal's name or the foremost anomaly's; empty: nothing to say.
  std::string_view reason() const;
};

inline Judgement refused(Refusal why, std::string detail) {
  return {.verdict = Verdict::kRefused, .refusal = why, .detail = std::move(detail)};
}

}  // namespace margay::c_sma
