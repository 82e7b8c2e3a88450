// SPDX-License-Identifier: Apache-2.0
#include "control/c_sma/judgement.h"

#include <array>
#include <bit>
#include <cstddef>

namespace margay::c_sma {

std::string_view name_of(Verdict v) {
  static constexpr std::array<std::string_view, kVerdicts> kNames = {"ACCEPTED", "FLAGGED", "QUARANTINED", "REFUSED"};
  return kNames[static_cast<size_t>(v)];
}

std::string_view name_of(Refusal r) {
  static constexpr std::array<std::string_view, kRefusals> kNames = {
      "UNREADABLE",    "NOT_LISTED",          "WRONG_CS_ID",    "NOT_IN_CERTIFICATE",
      "MALFORMED",     "INCONSISTENT_COUNTS", "OUT_OF_RANGE",   "DUPLICATE",
      "OLD_SEQUENCE",  "OLD_EPOCH",           "SKEW",           "OTHER_CSCI_ID",
      "SECOND_STREAM", "TAKE_OVER_TOO_OFTEN", "QUOTA_IDENTITY", "QUOTA_CS_ID",
      "CACHE_FULL"};
  return kNames[static_cast<size_t>(r)];
}

std::string_view name_of(Anomaly a) {
  static constexpr std::array<std::string_view, kAnomalies> kNames = {
      "COMPUTING_TIME_ZERO", "GAS_WITHOUT_SERVICE", "OWN_CLOCK", "COMPUTING_TIME_CHANGE", "FLAPPING",
      "GAS_CHANGE",          "GAS_CEILING"};
  return kNames[static_cast<size_t>(a)];
}

Anomaly Anomalies::foremost() const { return static_cast<Anomaly>(std::bit_width(bits_) - 1); }

std::string_view Judgement::reason() const {
  if (refusal) return name_of(*refusal);
  return anomalies.empty() ? std::string_view() : name_of(anomalies.foremost());
}

}  // namespace margay::c_sma
