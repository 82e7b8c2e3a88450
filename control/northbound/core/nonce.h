// SPDX-License-Identifier: Apache-2.0
#pragma once

// Nonces of signing keys (CSMA-144, 146): how a sender makes them so that none comes twice, whatever dies when, and how
// a receiver tells that one did. Pure; one thread.

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace margay::northbound {

// Of one signing key. Nonces are given out of blocks that were written down before: after a restart it goes on above
// the last block, whether that was used up or not.
class NonceSource {
 public:
  static constexpr uint64_t kBlock = 65536;

  // `reserved`: what was written down last; 0: the key is new.
  explicit NonceSource(uint64_t reserved) : next_(reserved + 1), reserved_(reserved) {}

  // Absent: wait until the next block is written down.
  std::optional<uint64_t> take() {
    if (next_ > reserved_) return std::nullopt;
    return next_++;
  }
  // What is to be written down now; absent: nothing. Asks for it before the block in use is spent.
  std::optional<uint64_t> wants() const {
    if (next_ + kBlock / 2 <= reserved_) return std::nullopt;
    return reserved_ + kBlock;
  }
  void written_down(uint64_t reserved) { reserved_ = reserved; }

 private:
  uint64_t next_, reserved_;
};

// The nonces that a key has used: all below the last 1024 count as used.
class NonceWindow {
 public:
  enum class Verdict : uint8_t { kNew, kRepeated, kTooOld };
  static constexpr uint64_t kSize = 1024;

  Verdict judge(uint64_t nonce) const {
    if (nonce > highest_) return Verdict::kNew;
    if (highest_ - nonce >= kSize) return Verdict::kTooOld;
    return bit(nonce) ? Verdict::kRepeated : Verdict::kNew;
  }
  void use(uint64_t nonce);

  uint64_t highest() const { return highest_; }
  // After a restart with no more than this known: everything up to `highest` counts as used.
  static NonceWindow used_up_to(uint64_t highest);
  bool operator==(const NonceWindow&) const = default;

 private:
  static constexpr uint64_t kWord = 64;
  bool bit(uint64_t nonce) const { return (bits_[nonce / kWord % bits_.size()] >> nonce % kWord & 1) != 0; }

  uint64_t highest_ = 0;
  std::array<uint64_t, kSize / kWord> bits_{};
};

// By sender and key id; none is ever pushed out by another. Only keys that verified something get in, so there are no
// more of them than configured keys. Outlives sessions.
using NonceWindows = std::map<std::pair<std::string, std::string>, NonceWindow>;

}  // namespace margay::northbound
