// SPDX-License-Identifier: Apache-2.0
#include "dataplane/core/parse.h"

#include "dataplane/core/wire.h"

namespace margay::dp {
namespace {

// In host order.
inline uint16_t host16(const uint8_t* at) { return from_wire16(load16(at)); }
inline uint32_t host32(const uint8_t* at) { return from_wire32(load32(at)); }

// One bit a combination of the six flags: every segment but a first SYN and a RST carries ACK (RFC 9293 §3.10.7.4,
// fifth check), and SYN opens what FIN and RST end.
constexpr bool flags_make_sense(unsigned flags) {
  const bool opens_and_ends = (flags & kSyn) != 0 && (flags & (kFin | kRst)) != 0;
  const bool needs_ack = (flags & (kSyn | kRst)) == 0 || (flags & kFin) != 0;
  return !opens_and_ends && (!needs_ack || (flags & kAck) != 0);
}
constexpr uint64_t sensible_flags() {
  uint64_t bits = 0;
  for (unsigned flags = 0; flags < 64; ++flags) bits |= uint64_t{flags_make_sense(flags)} << flags;
  return bits;
}
constexpr uint64_t kSensibleFlags = sensible_flags();

inline DropReason parse_tcp(const uint8_t* l4, uint32_t bytes, Parsed& p) {
  if (bytes < kTcpBytes) [[unlikely]]
    return DropReason::kBadTcpHeader;
  const uint32_t header = uint32_t{l4[12]} >> 4 << 2;
  if (header < kTcpBytes || header > bytes) [[unlikely]]
    return DropReason::kBadTcpHeader;
  p.source_port = load16(l4);
  p.destination_port = load16(l4 + 2);
  p.sequence = host32(l4 + 4);
  p.acknowledgement = host32(l4 + 8);
  p.tcp_flags = l4[13] & 0x3f;
  p.l4_payload = static_cast<uint16_t>(bytes - header);
  p.layer = Layer::kTcp;
  if ((p.source_port == 0) | (p.destination_port == 0)) [[unlikely]]
    return DropReason::kBadPort;
  if ((kSensibleFlags >> p.tcp_flags & 1) == 0) [[unlikely]]
    return DropReason::kBadTcpFlags;
  return DropReason::kNone;
}

// Bytes of the IP packet behind the UDP length are no part of the datagram (RFC 768), and are allowed.
inline DropReason parse_udp(const uint8_t* l4, uint32_t bytes, Parsed& p) {
  if (bytes < kUdpBytes) [[unlikely]]
    return DropReason::kBadUdpLength;
  const uint32_t length = host16(l4 + 4);
  if (length < kUdpBytes || length > bytes) [[unlikely]]
    return DropReason::kBadUdpLength;
  p.source_port = load16(l4);
  p.destination_port = load16(l4 + 2);
  p.l4_payload = static_cast<uint16_t>(length - kUdpBytes);
  p.layer = Layer::kUdp;
  if ((p.source_port == 0) | (p.destination_port == 0)) [[unlikely]]
    return DropReason::kBadPort;
  return DropReason::kNone;
}

inline DropReason parse_transport(const uint8_t* l4, uint32_t bytes, Protocol icmp, Parsed& p) {
  if (p.protocol == static_cast<uint8_t>(Protocol::kTcp)) return parse_tcp(l4, bytes, p);
  if (p.protocol == static_cast<uint8_t>(Protocol::kUdp)) return parse_udp(l4, bytes, p);
  if (p.protocol != static_cast<uint8_t>(icmp)) return DropReason::kNone;
  if (bytes < kIcmpBytes) return DropReason::kBadIcmp;
  p.layer = Layer::kIcmp;
  return DropReason::kNone;
}

// REQUIRES: header bytes are there, a multiple of 4 from 20 to 60.
inline bool header_checksum_right(const uint8_t* header, uint32_t bytes) {
  uint64_t sum =
      uint64_t{load32(header)} + load32(header + 4) + load32(header + 8) + load32(header + 12) + load32(header + 16);
  for (uint32_t at = kIpv4Bytes; at < bytes; at += 4) sum += load32(header + at);
  sum = (sum & 0xffffffff) + (sum >> 32);  // at most 2^32 + 13
  sum = (sum & 0xffff) + (sum >> 16);
  sum = (sum & 0xffff) + (sum >> 16);
  return sum == 0xffff;
}

// Host order. As a source: not this host (0), multicast, class E, broadcast or loopback; as a destination not this
// host or loopback (RFC 1122 §3.2.1.3). Equal ones are the "land" attack.
inline bool bad_ipv4_addresses(uint32_t source, uint32_t destination) {
  const bool bad_source = (source - 1 >= 0xdfffffff) | (source >> 24 == 127);
  const bool bad_destination = (destination == 0) | (destination >> 24 == 127);
  return bad_source | bad_destination | (source == destination);
}

inline DropReason parse_ipv4(const uint8_t* l3, uint32_t bytes, Parsed& p) {
  if (bytes < kIpv4Bytes) [[unlikely]]
    return DropReason::kTooShort;
  const uint32_t header = (uint32_t{l3[0]} & 15) << 2;
  const uint32_t length = host16(l3 + 2);
  if (l3[0] >> 4 != 4) [[unlikely]]
    return DropReason::kBadVersion;
  if (header < kIpv4Bytes || length < header || length > bytes) [[unlikely]]
    return DropReason::kBadLength;
  p.is_v4 = true;
  p.ip_length = static_cast<uint16_t>(length);
  p.l4_offset = static_cast<uint16_t>(p.l3_offset + header);
  p.ttl = l3[8];
  p.protocol = l3[9];
  p.source = load_ip(l3 + 12, true);
  p.destination = load_ip(l3 + 16, true);
  if (!header_checksum_right(l3, header)) [[unlikely]]
    return DropReason::kBadHeaderChecksum;
  if (bad_ipv4_addresses(host32(l3 + 12), host32(l3 + 16))) [[unlikely]]
    return DropReason::kBadAddress;
  constexpr uint16_t kMoreAndOffset = 0x3fff;
  if ((host16(l3 + 6) & kMoreAndOffset) != 0) [[unlikely]] {
    p.layer = Layer::kFragment;
    return DropReason::kNone;
  }
  p.layer = Layer::kIp;
  return parse_transport(l3 + header, length - header, Protocol::kIcmp, p);
}

// ::1 never leaves a host, :: is a source only while an address is being tried (RFC 4862 §5.4.2: ICMPv6), and
// IPv4-mapped addresses stand for IPv4 inside this program (RFC 4291 §2.5). All of them begin with eight zero bytes.
inline bool bad_ipv6_addresses(const Parsed& p) {
  if (p.source.bytes[0] == 0xff || p.source == p.destination) [[unlikely]]
    return true;
  if (p.source.high() != 0 && p.destination.high() != 0) [[likely]]
    return false;
  IpAddress loopback;
  loopback.bytes[15] = 1;
  if (p.source.is_v4() || p.destination.is_v4() || p.source == loopback || p.destination == loopback) return true;
  if (p.destination == IpAddress{}) return true;
  return p.source == IpAddress{} && p.protocol != static_cast<uint8_t>(Protocol::kIcmpv6);
}

// The extension headers that IANA lists (RFC 7045), but for Fragment.
inline bool is_extension(uint8_t next_header) {
  switch (next_header) {
    case 0:
    case 43:
    case 50:
    case 51:
    case 60:
    case 135:
    case 139:
    case 140:
    case 253:
    case 254:
      return true;
    default:
      return false;
  }
}

inline DropReason parse_ipv6(const uint8_t* l3, uint32_t bytes, Parsed& p) {
  constexpr uint8_t kHopByHop = 0, kFragmentHeader = 44;
  if (bytes < kIpv6Bytes) [[unlikely]]
    return DropReason::kTooShort;
  if (l3[0] >> 4 != 6) [[unlikely]]
    return DropReason::kBadVersion;
  const uint32_t payload = host16(l3 + 4);
  p.protocol = l3[6];
  p.ttl = l3[7];
  // A length of 0 before a hop-by-hop header announces a jumbogram (RFC 2675 §3).
  if (payload > bytes - kIpv6Bytes || payload + kIpv6Bytes > 0xffff || (payload == 0 && p.protocol == kHopByHop))
      [[unlikely]] {
    return DropReason::kBadLength;
  }
  p.ip_length = static_cast<uint16_t>(kIpv6Bytes + payload);
  p.l4_offset = static_cast<uint16_t>(p.l3_offset + kIpv6Bytes);
  p.source = load_ip(l3 + 8, false);
  p.destination = load_ip(l3 + 24, false);
  if (bad_ipv6_addresses(p)) [[unlikely]]
    return DropReason::kBadAddress;
  p.layer = p.protocol == kFragmentHeader ? Layer::kFragment
            : is_extension(p.protocol)    ? Layer::kExtension
                                          : Layer::kIp;
  if (p.layer != Layer::kIp) [[unlikely]]
    return DropReason::kNone;
  return parse_transport(l3 + kIpv6Bytes, payload, Protocol::kIcmpv6, p);
}

inline DropReason parse_arp(const uint8_t* l3, uint32_t bytes, Parsed& p) {
  if (bytes < kArpBytes) return DropReason::kTooShort;
  p.layer = Layer::kArp;
  constexpr uint32_t kEthernetIpv4 = 0x00010800;  // hardware type 1, protocol type 0x0800
  constexpr uint16_t kLengths = 0x0604;           // of a MAC and an IPv4 address
  return host32(l3) == kEthernetIpv4 && host16(l3 + 4) == kLengths ? DropReason::kNone : DropReason::kBadArp;
}

inline DropReason parse_frame(const uint8_t* frame, uint32_t bytes, Parsed& p) {
  if (bytes < kEthernetBytes) [[unlikely]]
    return DropReason::kTooShort;
  uint32_t l3 = kEthernetBytes;
  p.ethertype = host16(frame + 12);
  if (p.ethertype == kEtherVlan) {
    if (bytes < kEthernetBytes + kVlanBytes) [[unlikely]]
      return DropReason::kTooShort;
    p.tagged = true;
    p.vlan = host16(frame + 14) & 0x0fff;
    p.ethertype = host16(frame + 16);
    l3 += kVlanBytes;
  }
  p.l3_offset = static_cast<uint16_t>(l3);
  if (p.ethertype == kEtherIpv4) return parse_ipv4(frame + l3, bytes - l3, p);
  if (p.ethertype == kEtherIpv6) return parse_ipv6(frame + l3, bytes - l3, p);
  if (p.ethertype == kEtherArp) return parse_arp(frame + l3, bytes - l3, p);
  return DropReason::kNone;
}

}  // namespace

Parsed parse(const Packet& packet) {
  Parsed p;
  p.error = parse_frame(packet.data, packet.length, p);
  return p;
}

}  // namespace margay::dp
