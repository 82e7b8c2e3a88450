// SPDX-License-Identifier: Apache-2.0
#pragma once

// Network values: addresses, prefixes, endpoints, byte order. Plain data, no allocation but in format()
// and parse(). Any thread.

#include <array>
#include <bit>
#include <compare>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "common/result.h"

namespace margay {

// Host value to and from the order of the wire (big endian), RFC 1700.
constexpr uint16_t swap16(uint16_t v) { return static_cast<uint16_t>((v << 8) | (v >> 8)); }
constexpr uint32_t swap32(uint32_t v) { return __builtin_bswap32(v); }
constexpr uint16_t to_wire16(uint16_t v) { return std::endian::native == std::endian::little ? swap16(v) : v; }
constexpr uint32_t to_wire32(uint32_t v) { return std::endian::native == std::endian::little ? swap32(v) : v; }
constexpr uint16_t from_wire16(uint16_t v) { return to_wire16(v); }
constexpr uint32_t from_wire32(uint32_t v) { return to_wire32(v); }

struct MacAddress {
  std::array<uint8_t, 6> bytes{};

  bool is_group() const { return (bytes[0] & 1) != 0; }  // broadcast or multicast
  bool is_zero() const { return *this == MacAddress{}; }
  friend bool operator==(const MacAddress&, const MacAddress&) = default;

  std::string format() const;  // "02:00:00:00:0f:00"
  static Result<MacAddress> parse(std::string_view text);
};
inline constexpr MacAddress kBroadcastMac{{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};

// IPv4 or IPv6, always 16 bytes in wire order; IPv4 as ::ffff:a.b.c.d (RFC 4291 §2.5.5.2), so that both
// families share one key and one comparison. Such an address inside an IPv6 packet is refused by the parser.
struct IpAddress {
  std::array<uint8_t, 16> bytes{};

  static IpAddress v4(uint32_t wire_order) {
    IpAddress a;
    a.bytes[10] = a.bytes[11] = 0xff;
    std::memcpy(&a.bytes[12], &wire_order, 4);
    return a;
  }
  bool is_v4() const {
    uint64_t high;
    uint32_t middle;
    std::memcpy(&high, &bytes[0], 8);
    std::memcpy(&middle, &bytes[8], 4);
    return high == 0 && middle == to_wire32(0x0000ffff);
  }
  uint32_t v4_wire() const {  // REQUIRES: is_v4()
    uint32_t v;
    std::memcpy(&v, &bytes[12], 4);
    return v;
  }
  uint64_t high() const {
    uint64_t v;
    std::memcpy(&v, &bytes[0], 8);
    return v;
  }
  uint64_t low() const {
    uint64_t v;
    std::memcpy(&v, &bytes[8], 8);
    return v;
  }
  bool is_unspecified() const { return *this == IpAddress{} || *this == v4(0); }
  bool is_multicast() const {  // 224.0.0.0/4, ff00::/8; 255.255.255.255 too
    return is_v4() ? bytes[12] >= 224 : bytes[0] == 0xff;
  }
  // The address of one host: not of this network (0.0.0.0/8, ::), loopback, multicast, reserved or broadcast
  // (RFC 1122 §3.2.1.3, RFC 6890, RFC 4291 §2.4).
  bool may_be_host() const {
    if (is_v4()) return bytes[12] > 0 && bytes[12] < 224 && bytes[12] != 127;
    const bool loopback = high() == 0 && low() == IpAddress{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}}.low();
    return !is_unspecified() && !is_multicast() && !loopback;
  }
  bool is_link_local() const {  // 169.254.0.0/16, fe80::/10
    return is_v4() ? bytes[12] == 169 && bytes[13] == 254 : bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80;
  }
  friend bool operator==(const IpAddress& a, const IpAddress& b) { return a.high() == b.high() && a.low() == b.low(); }
  friend std::strong_ordering operator<=>(const IpAddress& a, const IpAddress& b) { return a.bytes <=> b.bytes; }

  std::string format() const;  // "192.0.2.1", "2001:db8::1"
  static Result<IpAddress> parse(std::string_view text);
};

// An address with the length of its network's prefix, in the family's own bits (0..32 or 0..128).
struct Prefix {
  IpAddress address;
  uint8_t length = 0;

  bool contains(const IpAddress& other) const;
  // Whether this is the network's own or the broadcast address: no host's, but in a /31 or /32 (RFC 1122 §3.2.1.3,
  // RFC 3021). IPv6 has neither.
  bool reserves(const IpAddress& other) const;
  friend bool operator==(const Prefix&, const Prefix&) = default;
  std::string format() const;  // "192.0.2.2/24"
  static Result<Prefix> parse(std::string_view text);
};

enum class Protocol : uint8_t { kIcmp = 1, kTcp = 6, kUdp = 17, kIcmpv6 = 58 };

// One transport address: what a client sees of an SCI, or where an instance listens.
struct Endpoint {
  IpAddress address;
  uint16_t port = 0;  // host order, 1..65535
  Protocol protocol = Protocol::kTcp;

  friend bool operator==(const Endpoint&, const Endpoint&) = default;
  friend auto operator<=>(const Endpoint&, const Endpoint&) = default;
  std::string format() const;  // "192.0.2.10:80/tcp", "[2001:db8::10]:80/udp"
};

// "192.0.2.10:80" or "[2001:db8::10]:80".
struct AddressPort {
  IpAddress address;
  uint16_t port = 0;
  std::string format() const;
  static Result<AddressPort> parse(std::string_view text);
};

}  // namespace margay
