// SPDX-License-Identifier: Apache-2.0

// Multilinear hashing: (m0 + m1*w1 + ... + mk*wk mod 2^64) >> 32 over 32-bit words w and random 64-bit m is
// strongly universal: two different keys give every pair of 32-bit values with the same probability, 2^-64
// (Dietzfelbinger, "Universal hashing and k-wise independent random variables via integer arithmetic without
// primes", STACS 1996; Lemire and Kaser, "Strongly universal string hashing is fast", 2014). Two sums with words
// of their own give 64 bits; what is done to them here keeps that property:
//   hash_key adds, by exclusive or, another such function of direction and service;
//   the lower half goes through a bijection, so that neighbouring clients do not march through the buckets.
// The halves are independent, so a bucket (lower half) says nothing about the owner (upper half).

#include "dataplane/core/flow_table.h"

namespace margay::dp {
namespace {

constexpr size_t kClientWords = 5;  // address, then port and protocol
constexpr size_t kUpper = 0;        // first secret word of each sum
constexpr size_t kLower = kUpper + kClientWords + 1;
constexpr size_t kServiceUpper = kLower + kClientWords + 1;
constexpr size_t kServiceLower = kServiceUpper + 2;
static_assert(kServiceLower + 2 == std::tuple_size_v<decltype(HashSecret::words)>);

constexpr uint64_t join(uint64_t upper_sum, uint64_t lower_sum) {
  return (upper_sum & 0xffff'ffff'0000'0000) | lower_sum >> 32;
}

// Bijective: an odd factor and shifts of at least half the width can be undone.
constexpr uint32_t scatter(uint32_t v) {
  v ^= v >> 16;
  v *= 0x7feb352d;
  return v ^ v >> 16;
}

}  // namespace

uint64_t hash_client(const HashSecret& secret, const IpAddress& client, uint16_t client_port, Protocol protocol) {
  std::array<uint32_t, kClientWords> words;
  std::memcpy(words.data(), client.bytes.data(), client.bytes.size());
  words.back() = client_port | static_cast<uint32_t>(protocol) << 16;
  uint64_t upper = secret.words[kUpper], lower = secret.words[kLower];
  for (size_t i = 0; i < kClientWords; ++i) {
    upper += secret.words[kUpper + 1 + i] * words[i];
    lower += secret.words[kLower + 1 + i] * words[i];
  }
  return join(upper, lower);
}

uint64_t hash_key(const HashSecret& secret, uint64_t client_hash, Direction direction, uint32_t service) {
  const uint32_t word = service << 1 | static_cast<uint32_t>(direction);  // there are far fewer than 2^31 services
  const uint64_t hash = client_hash ^ join(secret.words[kServiceUpper] + secret.words[kServiceUpper + 1] * word,
                                           secret.words[kServiceLower] + secret.words[kServiceLower + 1] * word);
  return (hash & 0xffff'ffff'0000'0000) | scatter(static_cast<uint32_t>(hash));
}

}  // namespace margay::dp
