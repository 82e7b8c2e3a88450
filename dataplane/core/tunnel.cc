// SPDX-License-Identifier: Apache-2.0
#include "dataplane/core/tunnel.h"

#include "dataplane/core/checksum.h"
#include "dataplane/core/wire.h"

namespace margay::dp {
namespace {

constexpr uint8_t kIpv4InIp = 4, kIpv6InIp = 41;  // protocol numbers: RFC 2003, RFC 4213
constexpr uint16_t kGueBytes = 4;
constexpr uint16_t kEphemeral = 0xc000;  // the first of 2^14 source ports (RFC 6335 §6)

// Dynamic range of ports: by the lowest 14 bits.
uint16_t source_port_of(uint64_t flow_hash) { return static_cast<uint16_t>(kEphemeral | (flow_hash & 0x3fff)); }
// By other bits; 0 would say that there is none (RFC 6437 §2).
uint32_t flow_label_of(uint64_t flow_hash) {
  const auto label = static_cast<uint32_t>(flow_hash >> 14 & 0xfffff);
  return label != 0 ? label : 1;
}

// Headers are put together in registers: what is stored by halves and loaded whole right away would stall.
void write_outer_ipv4(uint8_t* at, const IpAddress& source, const IpAddress& destination, uint8_t tos, uint8_t protocol,
                      uint16_t length) {
  const uint32_t words[] = {to_wire32(0x4500'0000u | uint32_t{tos} << 16 | length), to_wire32(0x0000'4000u),
                            to_wire32(uint32_t{kOurTtl} << 24 | uint32_t{protocol} << 16), load32(&source.bytes[12]),
                            load32(&destination.bytes[12])};
  ChecksumSum sum = 0;
  for (const uint32_t word : words) sum += word;
  std::memcpy(at, words, sizeof words);
  store16(at + 10, fold(sum));
}

void write_outer_ipv6(uint8_t* at, const IpAddress& source, const IpAddress& destination, uint8_t tos, uint8_t protocol,
                      uint16_t payload, uint32_t label) {
  store32(at, to_wire32(0x6000'0000u | uint32_t{tos} << 20 | label));
  store32(at + 4, to_wire32(uint32_t{payload} << 16 | uint32_t{protocol} << 8 | kOurTtl));
  store_ip(at + 8, source, false);
  store_ip(at + 24, destination, false);
}

// The sum of a whole IP packet without reading its payload. With a right checksum, pseudo-header and segment sum up to
// 0 (modulo 2^16 - 1), so the segment is worth the complement of the pseudo-header; an IPv4 header sums up to 0 by
// itself, and of an IPv6 header the addresses cancel out against the pseudo-header's.
ChecksumSum sum_of_inner(const uint8_t* ip, const Parsed& p) {
  const auto header = static_cast<uint16_t>(p.l4_offset - p.l3_offset);
  const auto segment = static_cast<uint16_t>(p.ip_length - header);
  const uint8_t* l4 = ip + header;
  const bool udp = p.layer == Layer::kUdp;
  // No checksum, or bytes behind the datagram that it does not cover.
  if (udp && (load16(l4 + 6) == 0 || p.l4_payload + kUdpBytes != segment)) return sum_bytes({ip, p.ip_length});
  if (p.is_v4) return fold(sum_pseudo_header(p.source, p.destination, p.protocol, segment));
  return ChecksumSum{load32(ip)} + load32(ip + 4) + fold(ChecksumSum{to_wire32(p.protocol)} + to_wire32(segment));
}

void write_udp(uint8_t* at, const Tunnel& tunnel, const IpAddress& destination, const Parsed& parsed,
               uint16_t udp_length, uint64_t flow_hash) {
  const uint16_t source_port = to_wire16(source_port_of(flow_hash)), length = to_wire16(udp_length);
  const uint32_t gue = to_wire32(uint32_t{parsed.is_v4 ? kIpv4InIp : kIpv6InIp} << 16);  // variant 0, no options
  const uint8_t* inner = at + kUdpBytes;
  ChecksumSum sum = ChecksumSum{source_port} + tunnel.udp_port + length;
  if (tunnel.gue_header) {
    store32(at + kUdpBytes, gue);
    sum += gue;
    inner += kGueBytes;
  }
  uint16_t checksum = 0;
  if (tunnel.udp_checksum) {
    sum += sum_of_inner(inner, parsed);
    checksum =
        fold(sum_pseudo_header(tunnel.source, destination, static_cast<uint8_t>(Protocol::kUdp), udp_length) + sum);
    if (checksum == 0) checksum = 0xffff;  // RFC 768
  }
  store16(at, source_port);
  store16(at + 2, tunnel.udp_port);
  store16(at + 4, length);
  store16(at + 6, checksum);
}

}  // namespace

Tunnel tunnel_of(const SciPolicy& sci, const IpAddress& instance) {
  Tunnel tunnel;
  tunnel.bytes = static_cast<uint8_t>(bytes_added(sci, instance));
  if (sci.mode != Mode::kGue) return tunnel;
  tunnel.udp_port = to_wire16(sci.gue.port);
  tunnel.gue_header = sci.gue.variant == 0;
  tunnel.udp_checksum = sci.gue.checksum == UdpChecksum::kComputed;
  return tunnel;
}

void encapsulate(Packet& packet, Parsed& parsed, const Tunnel& tunnel, const IpAddress& destination,
                 uint64_t flow_hash) {
  const bool v4 = destination.is_v4();
  const uint8_t* inner = packet.data + parsed.l3_offset;
  const uint8_t tos = parsed.is_v4 ? inner[1] : static_cast<uint8_t>(from_wire16(load16(inner)) >> 4);
  const auto length = static_cast<uint16_t>(tunnel.bytes + parsed.ip_length);
  packet.resize(static_cast<uint16_t>(parsed.l3_offset + parsed.ip_length));
  packet.prepend(tunnel.bytes);
  uint8_t* outer = packet.data + parsed.l3_offset;
  const uint16_t header = v4 ? kIpv4Bytes : kIpv6Bytes;
  const auto payload = static_cast<uint16_t>(length - header);
  uint8_t protocol = parsed.is_v4 ? kIpv4InIp : kIpv6InIp;
  if (tunnel.udp_port != 0) {
    protocol = static_cast<uint8_t>(Protocol::kUdp);
    write_udp(outer + header, tunnel, destination, parsed, payload, flow_hash);
  }
  if (v4) {
    write_outer_ipv4(outer, tunnel.source, destination, tos, protocol, length);
  } else {
    write_outer_ipv6(outer, tunnel.source, destination, tos, protocol, payload, flow_label_of(flow_hash));
  }
  parsed.ethertype = v4 ? kEtherIpv4 : kEtherIpv6;
  store16(outer - 2, to_wire16(parsed.ethertype));
}

}  // namespace margay::dp
