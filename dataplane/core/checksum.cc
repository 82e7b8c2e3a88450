// SPDX-License-Identifier: Apache-2.0
#include "dataplane/core/checksum.h"

#include <cstring>

namespace margay::dp {
namespace {

uint32_t word(const IpAddress& address, size_t i) {
  uint32_t v;
  std::memcpy(&v, &address.bytes[4 * i], 4);
  return v;
}

}  // namespace

// Sums 32-bit words: 2^16 and 2^32 are both 1 modulo 2^16 - 1, so the folded sum is that of the 16-bit words.
ChecksumSum sum_bytes(std::span<const uint8_t> bytes, ChecksumSum sum) {
  const uint8_t* at = bytes.data();
  size_t left = bytes.size();
  for (; left >= 4; at += 4, left -= 4) {
    uint32_t v;
    std::memcpy(&v, at, 4);
    sum += v;
  }
  uint32_t rest = 0;
  if (left > 0) std::memcpy(&rest, at, left);
  return sum + rest;
}

// IPv4 in its 16 bytes begins with zeros and ffff, which is zero too: no branch on the family.
ChecksumSum sum_pseudo_header(const IpAddress& source, const IpAddress& destination, uint8_t protocol,
                              uint32_t length) {
  ChecksumSum sum = ChecksumSum{to_wire32(protocol)} + to_wire32(length);
  for (size_t i = 0; i < 4; ++i) sum += ChecksumSum{word(source, i)} + word(destination, i);
  return sum;
}

uint16_t fold(ChecksumSum sum) {
  sum = (sum & 0xffffffff) + (sum >> 32);  // at most 0x1fffffffe
  sum = (sum & 0xffff) + (sum >> 16);      // at most 0x2fffd
  sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<uint16_t>(~sum);
}

// The first three words of IPv4 addresses are equal, and an equal word changes nothing: no branch.
void ChecksumDelta::change(const IpAddress& from, const IpAddress& to) {
  for (size_t i = 0; i < 4; ++i) change32(word(from, i), word(to, i));
}

uint16_t ChecksumDelta::apply(uint16_t checksum) const { return fold(sum_ + static_cast<uint16_t>(~checksum)); }

uint16_t ChecksumDelta::apply_udp(uint16_t checksum) const {
  if (checksum == 0) return 0;
  const uint16_t changed = apply(checksum);
  return changed == 0 ? uint16_t{0xffff} : changed;
}

}  // namespace margay::dp
