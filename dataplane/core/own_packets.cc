// SPDX-License-Identifier: Apache-2.0
#include "dataplane/core/own_packets.h"

#include <algorithm>
#include <cstring>

#include "dataplane/core/checksum.h"
#include "dataplane/core/wire.h"

namespace margay::dp {
namespace {

constexpr uint16_t kQuotedPacketV4 = 576, kQuotedPacketV6 = 1280;  // longest ICMP error, RFC 1812, RFC 4443

// Link layer of an answer: back to whoever sent it, from the port, tag unchanged.
void answer_link_layer(Packet& packet, const TablePort& port) {
  std::memcpy(packet.data, packet.data + 6, 6);
  store_mac(packet.data + 6, port.mac);
}

uint16_t l4_checksum(const IpAddress& source, const IpAddress& destination, uint8_t protocol, const uint8_t* l4,
                     uint16_t length) {
  return fold(sum_bytes({l4, length}, sum_pseudo_header(source, destination, protocol, length)));
}

void write_ipv4(uint8_t* ip, const IpAddress& source, const IpAddress& destination, uint8_t protocol, uint16_t length) {
  std::memset(ip, 0, kIpv4Bytes);
  ip[0] = 0x45;
  store16(ip + 2, to_wire16(length));
  store16(ip + 6, to_wire16(0x4000));  // do not fragment
  ip[8] = kOurTtl;
  ip[9] = protocol;
  store_ip(ip + 12, source, true);
  store_ip(ip + 16, destination, true);
  store16(ip + 10, fold(sum_bytes({ip, kIpv4Bytes})));
}

void write_ipv6(uint8_t* ip, const IpAddress& source, const IpAddress& destination, uint8_t protocol, uint16_t length,
                uint8_t hop_limit) {
  std::memset(ip, 0, kIpv6Bytes);
  ip[0] = 0x60;
  store16(ip + 4, to_wire16(static_cast<uint16_t>(length - kIpv6Bytes)));
  ip[6] = protocol;
  ip[7] = hop_limit;
  store_ip(ip + 8, source, false);
  store_ip(ip + 24, destination, false);
}

// IP and TCP headers of a RST at `ip`; returns the IP packet's length.
uint16_t write_reset(uint8_t* ip, const ResetFields& r, uint32_t acknowledgement, uint8_t flags) {
  const bool v4 = r.source.is_v4();
  const uint16_t header = v4 ? kIpv4Bytes : kIpv6Bytes;
  const auto length = static_cast<uint16_t>(header + kTcpBytes);
  const auto tcp_protocol = static_cast<uint8_t>(Protocol::kTcp);
  if (v4) {
    write_ipv4(ip, r.source, r.destination, tcp_protocol, length);
  } else {
    write_ipv6(ip, r.source, r.destination, tcp_protocol, length, kOurTtl);
  }
  uint8_t* tcp = ip + header;
  std::memset(tcp, 0, kTcpBytes);
  store16(tcp, r.source_port);
  store16(tcp + 2, r.destination_port);
  store32(tcp + 4, to_wire32(r.sequence));
  store32(tcp + 8, to_wire32(acknowledgement));
  tcp[12] = (kTcpBytes / 4) << 4;
  tcp[13] = flags;
  store16(tcp + 16, l4_checksum(r.source, r.destination, tcp_protocol, tcp, kTcpBytes));
  return length;
}

// Ethernet header with the port's tag; returns where the payload begins.
uint8_t* begin_frame(Frame& frame, const MacAddress& destination, const TablePort& port, uint16_t ethertype) {
  uint8_t* p = frame.bytes.data();
  store_mac(p, destination);
  store_mac(p + 6, port.mac);
  p += 12;
  if (port.vlan != 0) {
    store16(p, to_wire16(kEtherVlan));
    store16(p + 2, to_wire16(port.vlan));
    p += kVlanBytes;
  }
  store16(p, to_wire16(ethertype));
  return p + 2;
}

void end_frame(Frame& frame, const uint8_t* payload, uint16_t length) {
  frame.length = static_cast<uint16_t>(payload - frame.bytes.data() + length);
}

// ICMPv6 of Neighbour Discovery: 24 bytes and one link-layer option (RFC 4861 §4.6.1).
constexpr uint16_t kNdBytes = 32;
void finish_nd(Frame& frame, uint8_t* ip, const IpAddress& source, const IpAddress& destination,
               const IpAddress& target, uint8_t type, uint8_t flags, const TablePort& port) {
  const auto protocol = static_cast<uint8_t>(Protocol::kIcmpv6);
  write_ipv6(ip, source, destination, protocol, kIpv6Bytes + kNdBytes, 255);
  uint8_t* nd = ip + kIpv6Bytes;
  std::memset(nd, 0, kNdBytes);
  nd[0] = type;
  nd[4] = flags;
  store_ip(nd + 8, target, false);
  nd[24] = type == 135 ? 1 : 2;  // source or target link-layer address
  nd[25] = 1;                    // in units of 8 bytes
  store_mac(nd + 26, port.mac);
  store16(nd + 2, l4_checksum(source, destination, protocol, nd, kNdBytes));
  end_frame(frame, ip, kIpv6Bytes + kNdBytes);
}

}  // namespace

void turn_into_echo_reply(Packet& packet, const Parsed& parsed, const TablePort& port) {
  answer_link_layer(packet, port);
  uint8_t* ip = packet.data + parsed.l3_offset;
  uint8_t* icmp = packet.data + parsed.l4_offset;
  const auto length = static_cast<uint16_t>(parsed.ip_length - (parsed.l4_offset - parsed.l3_offset));
  if (parsed.is_v4) {
    store_ip(ip + 12, parsed.destination, true);
    store_ip(ip + 16, parsed.source, true);
    ip[8] = kOurTtl;
    store16(ip + 10, 0);
    store16(ip + 10, fold(sum_bytes({ip, static_cast<size_t>(parsed.l4_offset - parsed.l3_offset)})));
    icmp[0] = 0;
    store16(icmp + 2, 0);
    store16(icmp + 2, fold(sum_bytes({icmp, length})));
    return;
  }
  store_ip(ip + 8, parsed.destination, false);
  store_ip(ip + 24, parsed.source, false);
  ip[7] = kOurTtl;
  icmp[0] = 129;
  store16(icmp + 2, 0);
  store16(icmp + 2, l4_checksum(parsed.destination, parsed.source, parsed.protocol, icmp, length));
}

void turn_into_reset(Packet& packet, const Parsed& parsed, const TablePort& port) {
  answer_link_layer(packet, port);
  const bool acked = (parsed.tcp_flags & kAck) != 0;
  ResetFields r{parsed.destination, parsed.source, parsed.destination_port, parsed.source_port,
                acked ? parsed.acknowledgement : 0};
  const uint32_t acknowledgement = acked ? 0 : parsed.sequence + parsed.sequence_length();
  const uint16_t length = write_reset(packet.data + parsed.l3_offset, r, acknowledgement, acked ? kRst : kRst | kAck);
  packet.resize(static_cast<uint16_t>(parsed.l3_offset + length));
}

bool turn_into_icmp_error(Packet& packet, const Parsed& parsed, const TablePort& port, IcmpError error) {
  const uint16_t header = parsed.is_v4 ? kIpv4Bytes : kIpv6Bytes;
  const auto added = static_cast<uint16_t>(header + kIcmpBytes);
  if (packet.headroom < added) return false;
  const uint16_t quoted = std::min<uint16_t>(
      parsed.ip_length, static_cast<uint16_t>((parsed.is_v4 ? kQuotedPacketV4 : kQuotedPacketV6) - added));
  packet.prepend(added);
  std::memmove(packet.data, packet.data + added, parsed.l3_offset);
  answer_link_layer(packet, port);
  uint8_t* ip = packet.data + parsed.l3_offset;
  uint8_t* icmp = ip + header;
  std::memset(icmp, 0, kIcmpBytes);
  store32(icmp + 4, to_wire32(error.rest));
  const auto length = static_cast<uint16_t>(added + quoted);
  const auto icmp_length = static_cast<uint16_t>(kIcmpBytes + quoted);
  if (parsed.is_v4) {
    write_ipv4(ip, parsed.destination, parsed.source, static_cast<uint8_t>(Protocol::kIcmp), length);
    icmp[0] = error.type_v4;
    icmp[1] = error.code_v4;
    store16(icmp + 2, fold(sum_bytes({icmp, icmp_length})));
  } else {
    const auto protocol = static_cast<uint8_t>(Protocol::kIcmpv6);
    write_ipv6(ip, parsed.destination, parsed.source, protocol, length, kOurTtl);
    icmp[0] = error.type_v6;
    icmp[1] = error.code_v6;
    store16(icmp + 2, l4_checksum(parsed.destination, parsed.source, protocol, icmp, icmp_length));
  }
  packet.resize(static_cast<uint16_t>(parsed.l3_offset + length));
  return true;
}

void make_arp(Frame& frame, const ArpFields& arp, const MacAddress& destination, const TablePort& port) {
  uint8_t* p = begin_frame(frame, destination, port, kEtherArp);
  store16(p, to_wire16(1));
  store16(p + 2, to_wire16(kEtherIpv4));
  p[4] = 6;
  p[5] = 4;
  store16(p + 6, to_wire16(arp.reply ? 2 : 1));
  store_mac(p + 8, arp.sender_mac);
  store_ip(p + 14, arp.sender, true);
  store_mac(p + 18, arp.target_mac);
  store_ip(p + 24, arp.target, true);
  end_frame(frame, p, kArpBytes);
}

void make_solicitation(Frame& frame, const IpAddress& source, const IpAddress& target, const TablePort& port) {
  const auto& t = target.bytes;
  IpAddress group = kAllNodes;  // ff02::1:ffXX:XXXX, RFC 4291 §2.7.1
  group.bytes[11] = 1;
  group.bytes[12] = 0xff;
  std::memcpy(&group.bytes[13], &t[13], 3);
  const MacAddress mac{{0x33, 0x33, 0xff, t[13], t[14], t[15]}};
  uint8_t* ip = begin_frame(frame, mac, port, kEtherIpv6);
  finish_nd(frame, ip, source, group, target, 135, 0, port);
}

void make_advertisement(Frame& frame, const IpAddress& target, const IpAddress& to, const MacAddress& to_mac,
                        const TablePort& port) {
  constexpr uint8_t kSolicited = 0x40, kOverride = 0x20;
  uint8_t* ip = begin_frame(frame, to_mac, port, kEtherIpv6);
  const uint8_t flags = to == kAllNodes ? kOverride : kSolicited | kOverride;
  finish_nd(frame, ip, target, to, target, 136, flags, port);
}

void make_reset(Frame& frame, const ResetFields& reset, const MacAddress& destination, const TablePort& port) {
  uint8_t* ip = begin_frame(frame, destination, port, reset.source.is_v4() ? kEtherIpv4 : kEtherIpv6);
  const uint8_t flags = reset.acknowledgement != 0 ? kRst | kAck : kRst;
  end_frame(frame, ip, write_reset(ip, reset, reset.acknowledgement, flags));
}

}  // namespace margay::dp
