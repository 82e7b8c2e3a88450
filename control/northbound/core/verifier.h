// SPDX-License-Identifier: Apache-2.0
#pragma once

// Whether a message whose signature was good belongs here and now (CSMA-145..147). One for each end of a session; it
// knows who is at the other end, which challenge was given, and what came before. Pure; one thread.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "control/northbound/core/fault.h"
#include "control/northbound/core/messages.h"
#include "control/northbound/core/nonce.h"

namespace margay::northbound {

// What outlives the sessions with somebody.
struct Peer {
  NonceWindows nonces;
  FaultCounts faults;
};

class Verifier {
 public:
  struct Expected {
    Direction direction{};
    std::string sender, receiver;
    std::string challenge;          // that we gave to the sender
    bool first_is_unbound = false;  // the first message was written before the challenge could be known
    int64_t window_ms = 30'000;     // tolerated between its time of sending and ours, both ways
  };
  explicit Verifier(Expected expected) : expected_(std::move(expected)) {}

  // Absent: it is good and counts as come. Else nothing here has changed.
  // `key_id` is empty for messages without a signature, where those are accepted.
  std::optional<Fault> judge(const Header& header, std::string_view key_id, int64_t unix_ms, NonceWindows& nonces);

  uint64_t last_sequence() const { return last_sequence_; }

 private:
  std::optional<Fault> judge_place(const Header& header) const;

  Expected expected_;
  uint64_t last_sequence_ = 0;
};

}  // namespace margay::northbound
