// SPDX-License-Identifier: Apache-2.0
#pragma once

// Header layouts as offsets, and unaligned access to fields in wire order. The caller has checked the length.

#include <cstdint>
#include <cstring>

#include "common/net.h"

namespace margay::dp {

inline constexpr uint16_t kEtherIpv4 = 0x0800, kEtherArp = 0x0806, kEtherVlan = 0x8100, kEtherIpv6 = 0x86dd;
inline constexpr uint16_t kEthernetBytes = 14, kVlanBytes = 4;
inline constexpr uint16_t kIpv4Bytes = 20, kIpv6Bytes = 40, kTcpBytes = 20, kUdpBytes = 8, kIcmpBytes = 8,
                          kArpBytes = 28;
inline constexpr uint8_t kOurTtl = 64;  // of packets that we make, RFC 1700

inline uint16_t load16(const uint8_t* p) {
  uint16_t v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
inline uint32_t load32(const uint8_t* p) {
  uint32_t v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
inline void store16(uint8_t* p, uint16_t v) { std::memcpy(p, &v, sizeof v); }
inline void store32(uint8_t* p, uint32_t v) { std::memcpy(p, &v, sizeof v); }

inline MacAddress load_mac(const uint8_t* p) {
  MacAddress m;
  std::memcpy(m.bytes.data(), p, m.bytes.size());
  return m;
}
inline void store_mac(uint8_t* p, const MacAddress& m) { std::memcpy(p, m.bytes.data(), m.bytes.size()); }

inline IpAddress load_ip(const uint8_t* p, bool v4) {
  if (v4) return IpAddress::v4(load32(p));
  IpAddress a;
  std::memcpy(a.bytes.data(), p, a.bytes.size());
  return a;
}
inline void store_ip(uint8_t* p, const IpAddress& a, bool v4) {
  if (v4) {
    std::memcpy(p, &a.bytes[12], 4);
  } else {
    std::memcpy(p, a.bytes.data(), a.bytes.size());
  }
}

}  // namespace margay::dp
