// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which live stream has which CSCI-ID (D-31): one at a time. A newer report of the same identity takes it over, past a
// half-open connection; take-overs that come too often are turned away for a while. Pure; one thread.

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/units.h"
#include "control/c_sma/judgement.h"
#include "control/c_sma/peer.h"

namespace margay::c_sma {

class Streams {
 public:
  // More than so many take-overs within the span: the next waits twice as long each time.
  static constexpr uint32_t kTakeOvers = 3;
  static constexpr Nanoseconds kSpan = 60 * kSecond;
  static constexpr Nanoseconds kBackoff = kSecond, kBackoffMax = 60 * kSecond;

  struct Claim {
    std::optional<Refusal> refusal = {};
    std::optional<StreamId> closed = {};  // the stream that had it
    bool alarm = false;                   // too often, from now on
  };

  // For a report that is newer than the last of its SCI, and else in order. Of a pulled one (stream 0) nothing is kept.
  Claim claim(const std::string& csci_id, const std::string& identity, StreamId stream, Nanoseconds now);
  void closed(StreamId stream);
  // The stream of an SCI; absent: none is live.
  std::optional<StreamId> of(const std::string& csci_id) const;
  std::vector<StreamId> of_identity(const std::string& identity) const;  // ascending

 private:
  struct Live {
    StreamId stream = 0;  // 0: none
    std::string identity;
    uint32_t take_overs = 0;
    Nanoseconds first_at = 0;  // of these take-overs
    Nanoseconds backoff = 0, not_before = 0;
  };
  Claim take_over(Live& live, Nanoseconds now);
  void bind(Live& live, const std::string& csci_id, StreamId stream);

  std::unordered_map<std::string, Live> live_;
  std::unordered_map<StreamId, std::string> csci_ids_;
};

}  // namespace margay::c_sma
