// SPDX-License-Identifier: Apache-2.0
#include "common/net.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace margay {
namespace {

std::string quoted(std::string_view text) { return '"' + std::string(text) + '"'; }

// A decimal number of digits alone, at most `max`.
std::optional<uint32_t> parse_number(std::string_view text, uint32_t max) {
  uint32_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end || value > max) return std::nullopt;
  return value;
}

std::optional<uint8_t> parse_hex_pair(std::string_view text) {
  uint8_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + 2, value, 16);
  if (error != std::errc{} || stop != text.data() + 2) return std::nullopt;
  return value;
}

std::string_view name_of(Protocol protocol) {
  switch (protocol) {
    case Protocol::kIcmp:
      return "icmp";
    case Protocol::kTcp:
      return "tcp";
    case Protocol::kUdp:
      return "udp";
    case Protocol::kIcmpv6:
      return "icmpv6";
  }
  return "unknown";
}

unsigned family_bits(const IpAddress& address) { return address.is_v4() ? 32 : 128; }

}  // namespace

std::string MacAddress::format() const {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const uint8_t byte : bytes) {
    if (!text.empty()) text += ':';
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

Result<MacAddress> MacAddress::parse(std::string_view text) {
  const Error error{quoted(text) + " is no MAC address, expected six pairs of hex digits like 02:00:00:00:0f:00"};
  MacAddress mac;
  if (text.size() != 17) return error;
  for (size_t i = 0; i < 6; ++i) {
    const auto byte = parse_hex_pair(text.substr(3 * i, 2));
    if (!byte || (i < 5 && text[3 * i + 2] != ':')) return error;
    mac.bytes[i] = *byte;
  }
  return mac;
}

std::string IpAddress::format() const {
  char text[INET6_ADDRSTRLEN];
  if (is_v4()) return inet_ntop(AF_INET, &bytes[12], text, sizeof text);
  return inet_ntop(AF_INET6, bytes.data(), text, sizeof text);
}

Result<IpAddress> IpAddress::parse(std::string_view text) {
  const std::string copy(text);
  // inet_pton stops at a zero byte: what stands behind it must not pass unseen.
  const bool whole = text.find('\0') == std::string_view::npos;
  uint32_t v4_address = 0;
  if (whole && inet_pton(AF_INET, copy.c_str(), &v4_address) == 1) return v4(v4_address);
  IpAddress address;
  if (!whole || inet_pton(AF_INET6, copy.c_str(), address.bytes.data()) != 1) {
    return Error{quoted(text) + " is no IP address, expected one like 192.0.2.1 or 2001:db8::1"};
  }
  if (address.is_v4()) {
    return Error{quoted(text) + " is an IPv4-mapped IPv6 address, expected it written as " + address.format()};
  }
  return address;
}

bool Prefix::contains(const IpAddress& other) const {
  if (address.is_v4() != other.is_v4()) return false;
  const unsigned bits = length + 128 - family_bits(address);
  const unsigned bytes = bits / 8;
  if (!std::equal(other.bytes.begin(), other.bytes.begin() + bytes, address.bytes.begin())) return false;
  if (bits % 8 == 0) return true;
  return ((address.bytes[bytes] ^ other.bytes[bytes]) >> (8 - bits % 8)) == 0;
}

bool Prefix::reserves(const IpAddress& other) const {
  if (!other.is_v4() || !contains(other) || length > 30) return false;
  const uint32_t mask = 0xffffffffu >> length;
  const uint32_t host = from_wire32(other.v4_wire()) & mask;
  return host == 0 || host == mask;
}

std::string Prefix::format() const { return address.format() + '/' + std::to_string(length); }

Result<Prefix> Prefix::parse(std::string_view text) {
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos) {
    return Error{quoted(text) + " has no prefix length, expected one like 192.0.2.2/24 or 2001:db8::2/64"};
  }
  const auto address = IpAddress::parse(text.substr(0, slash));
  if (!address) return address.error();
  const unsigned bits = family_bits(*address);
  const auto length = parse_number(text.substr(slash + 1), bits);
  if (!length) return Error{quoted(text) + " has a bad prefix length, expected 0 to " + std::to_string(bits)};
  return Prefix{*address, static_cast<uint8_t>(*length)};
}

std::string Endpoint::format() const {
  return AddressPort{address, port}.format() + '/' + std::string(name_of(protocol));
}

std::string AddressPort::format() const {
  const std::string host = address.is_v4() ? address.format() : '[' + address.format() + ']';
  return host + ':' + std::to_string(port);
}

Result<AddressPort> AddressPort::parse(std::string_view text) {
  const Error error{quoted(text) + " is no address with port, expected one like 192.0.2.10:80 or [2001:db8::10]:80"};
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return error;
  std::string_view host = text.substr(0, colon);
  const bool bracketed = host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  const auto address = IpAddress::parse(host);
  if (!address || address->is_v4() == bracketed) return error;
  const auto port = parse_number(text.substr(colon + 1), 65535);
  if (!port || *port == 0) return Error{quoted(text) + " has a bad port, expected 1 to 65535"};
  return AddressPort{*address, static_cast<uint16_t>(*port)};
}

}  // namespace margay
