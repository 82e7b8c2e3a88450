// SPDX-License-Identifier: Apache-2.0
#pragma once

// Puts right checksums into a frame that a fuzzer made: IPv4 header, and ICMP and ICMPv6 where the lengths allow.
// Written apart from the data plane's own parser and checksum, which are under test. Test code only.

#include <cstdint>
#include <span>

namespace margay::test {

inline uint16_t read16(std::span<const uint8_t> bytes, size_t at) {
  return static_cast<uint16_t>(bytes[at] << 8 | bytes[at + 1]);
}

inline uint32_t sum16(std::span<const uint8_t> bytes) {
  uint32_t sum = 0;
  for (size_t i = 0; i < bytes.size(); i += 2) {
    sum += uint32_t{bytes[i]} << 8 | (i + 1 < bytes.size() ? bytes[i + 1] : 0u);
  }
  return sum;
}

inline void put_checksum(std::span<uint8_t> bytes, size_t at, uint32_t start) {
  bytes[at] = bytes[at + 1] = 0;
  uint32_t sum = start + sum16(bytes);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  bytes[at] = static_cast<uint8_t>(~sum >> 8);
  bytes[at + 1] = static_cast<uint8_t>(~sum);
}

inline void mend_checksums(std::span<uint8_t> frame) {
  size_t l3 = 14;
  if (frame.size() >= 18 && read16(frame, 12) == 0x8100) l3 = 18;
  if (frame.size() < l3 + 20) return;
  const std::span<uint8_t> ip = frame.subspan(l3);
  const uint16_t type = read16(frame, l3 - 2);
  if (type == 0x0800) {
    const size_t header = (ip[0] & 15) * 4u, length = read16(ip, 2);
    if (header < 20 || header > ip.size()) return;
    put_checksum(ip.first(header), 10, 0);
    if (ip[9] == 1 && length >= header + 8 && length <= ip.size()) {
      put_checksum(ip.subspan(header, length - header), 2, 0);
    }
  } else if (type == 0x86dd && ip.size() >= 48 && ip[6] == 58) {
    const size_t length = read16(ip, 4);
    if (length < 8 || length > ip.size() - 40) return;
    const uint32_t pseudo = sum16(ip.subspan(8, 32)) + static_cast<uint32_t>(length) + 58;
    put_checksum(ip.subspan(40, length), 2, pseudo);
  }
}

}  // namespace margay::test
