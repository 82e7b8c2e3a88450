// SPDX-License-Identifier: Apache-2.0
#pragma once

// The Internet checksum (RFC 1071) and its incremental update (RFC 1624, equation 3). All 16-bit values are as
// they stand in the packet: the sum does not care about byte order. Any thread.

#include <cstdint>
#include <span>

#include "common/net.h"

namespace margay::dp {

// One's complement sum, not yet folded; add to it with the same functions.
using ChecksumSum = uint64_t;

ChecksumSum sum_bytes(std::span<const uint8_t> bytes, ChecksumSum sum = 0);  // an odd last byte is padded with 0
// Pseudo-header of the addresses' family (RFC 9293 §3.1, RFC 8200 §8.1). length in host order.
ChecksumSum sum_pseudo_header(const IpAddress& source, const IpAddress& destination, uint8_t protocol, uint32_t length);
uint16_t fold(ChecksumSum sum);  // the checksum to be written: complement of the folded sum

// The difference that changing `from` into `to` makes; sum several, then apply them at once.
class ChecksumDelta {
 public:
  void change16(uint16_t from, uint16_t to) { sum_ += static_cast<uint16_t>(~from) + uint32_t{to}; }
  void change32(uint32_t from, uint32_t to) { sum_ += uint64_t{~from} + to; }
  void change(const IpAddress& from, const IpAddress& to);  // REQUIRES: of one family
  uint16_t apply(uint16_t checksum) const;                  // new checksum
  // For UDP: 0 (none sent) stays 0, and a result of 0 becomes 0xffff (RFC 768).
  uint16_t apply_udp(uint16_t checksum) const;

 private:
  uint64_t sum_ = 0;
};

}  // namespace margay::dp
