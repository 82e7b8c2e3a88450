// SPDX-License-Identifier: Apache-2.0
#pragma once

// Why a message is refused or a session ends, at either end: each has a name and a counter. Plain values.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace margay::northbound {

// Name; whether it ends the session (else the message alone is dropped, as if it had not come); meaning.
#define MARGAY_NORTHBOUND_FAULTS(X)                                                                         \
  X(kMalformed, "malformed", true, "not a message of this protocol, or a field that must not be so")        \
  X(kTooLong, "too_long", true, "longer than the size that was agreed")                                     \
  X(kUnsigned, "unsigned", false, "without a signature, where one is wanted")                               \
  X(kUnknownKey, "unknown_key", false, "signed by a key that is not the sender's")                          \
  X(kWrongAlgorithm, "wrong_algorithm", false, "names another algorithm than its key has")                  \
  X(kBadSignature, "bad_signature", false, "the signature is not one of these bytes")                       \
  X(kWrongDirection, "wrong_direction", false, "meant for the other end")                                   \
  X(kWrongSender, "wrong_sender", false, "from another than who the session is with")                       \
  X(kWrongReceiver, "wrong_receiver", false, "meant for somebody else")                                     \
  X(kWrongChallenge, "wrong_challenge", false, "of another session")                                        \
  X(kRepeated, "repeated", false, "a stream sequence that was there before")                                \
  X(kGap, "gap", true, "a message before it is missing")                                                    \
  X(kTooOld, "too_old", true, "sent longer ago than the replay window, or the clocks differ")               \
  X(kTooNew, "too_new", true, "sent later than the replay window allows: the clocks differ")                \
  X(kNonceRepeated, "nonce_repeated", false, "a nonce that its key used before")                            \
  X(kNonceTooOld, "nonce_too_old", false, "a nonce below what is remembered of its key")                    \
  X(kUnexpected, "unexpected", true, "a message that has no place here")                                    \
  X(kNoCommonVersion, "no_common_version", true, "the two ends speak no version of the protocol in common") \
  X(kBadHello, "bad_hello", true, "a hello without a challenge of 16 to 64 bytes, or with absurd limits")   \
  X(kNoCommonCsId, "no_common_cs_id", true, "no CS-ID is both asked for and allowed")                       \
  X(kOutOfScope, "out_of_scope", true, "a hello that claims a CS-ID which it may not")                      \
  X(kEpochWentBack, "epoch_went_back", true, "the C-SMA's epoch is lower than one seen before")             \
  X(kTooManyUnacked, "too_many_unacked", true, "more messages without an ack than are allowed")             \
  X(kTooManyRows, "too_many_rows", true, "more than four times the rows that there is room for")            \
  X(kSnapshotBroken, "snapshot_broken", true, "a snapshot's end does not fit what came before it")          \
  X(kHelloTimeout, "hello_timeout", true, "no hello in time")                                               \
  X(kAckTimeout, "ack_timeout", true, "no ack in time")                                                     \
  X(kSilent, "silent", true, "nothing came for two heartbeats and a half")

enum class Fault : uint8_t {
#define X(name, text, ends, meaning) name,
  MARGAY_NORTHBOUND_FAULTS(X)
#undef X
};
inline constexpr size_t kFaults = 0
#define X(name, text, ends, meaning) +1
    MARGAY_NORTHBOUND_FAULTS(X)
#undef X
    ;

struct FaultText {
  std::string_view name, meaning;
  bool ends_session;
};
inline constexpr std::array<FaultText, kFaults> kFaultTexts{{
#define X(name, text, ends, meaning) {text, meaning, ends},
    MARGAY_NORTHBOUND_FAULTS(X)
#undef X
}};
constexpr const FaultText& text_of(Fault f) { return kFaultTexts[static_cast<size_t>(f)]; }
constexpr std::string_view name_of(Fault f) { return text_of(f).name; }
constexpr bool ends_session(Fault f) { return text_of(f).ends_session; }

class FaultCounts {
 public:
  void count(Fault f) { ++counts_[static_cast<size_t>(f)]; }
  uint64_t of(Fault f) const { return counts_[static_cast<size_t>(f)]; }
  bool operator==(const FaultCounts&) const = default;

 private:
  std::array<uint64_t, kFaults> counts_{};
};

}  // namespace margay::northbound
