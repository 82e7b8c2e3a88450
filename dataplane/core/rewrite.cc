// SPDX-License-Identifier: Apache-2.0
#include "dataplane/core/rewrite.h"

#include "dataplane/core/checksum.h"
#include "dataplane/core/wire.h"

namespace margay::dp {
namespace {

constexpr size_t kIpv4Ttl = 8, kIpv4Checksum = 10, kIpv4Source = 12, kIpv4Destination = 16;
constexpr size_t kIpv6HopLimit = 7, kIpv6Source = 8, kIpv6Destination = 24;
constexpr size_t kTcpChecksum = 16, kUdpChecksum = 6;

// TTL and protocol share a 16-bit word of the header's sum.
void take_off_ttl(uint8_t* ip, ChecksumDelta& delta) {
  const uint16_t before = load16(ip + kIpv4Ttl);
  --ip[kIpv4Ttl];
  delta.change16(before, load16(ip + kIpv4Ttl));
}

}  // namespace

bool set_link_layer(Packet& packet, Parsed& parsed, const MacAddress& destination, const TablePort& port) {
  const bool tag = port.vlan != 0;
  if (tag && !parsed.tagged) {
    if (packet.headroom < kVlanBytes) return false;
    packet.prepend(kVlanBytes);
    parsed.l3_offset = static_cast<uint16_t>(parsed.l3_offset + kVlanBytes);
    parsed.l4_offset = static_cast<uint16_t>(parsed.l4_offset + kVlanBytes);
  } else if (!tag && parsed.tagged) {
    packet.trim_front(kVlanBytes);
    parsed.l3_offset = static_cast<uint16_t>(parsed.l3_offset - kVlanBytes);
    parsed.l4_offset = static_cast<uint16_t>(parsed.l4_offset - kVlanBytes);
  }
  store_mac(packet.data, destination);
  store_mac(packet.data + 6, port.mac);
  if (tag) {
    store16(packet.data + 12, to_wire16(kEtherVlan));
    store16(packet.data + 14, to_wire16(port.vlan));
    store16(packet.data + 16, to_wire16(parsed.ethertype));
  } else if (parsed.tagged) {
    store16(packet.data + 12, to_wire16(parsed.ethertype));
  }
  parsed.tagged = tag;
  return true;
}

void translate(Packet& packet, const Parsed& parsed, End end, const IpAddress& address, uint16_t port_wire) {
  uint8_t* ip = packet.data + parsed.l3_offset;
  uint8_t* l4 = packet.data + parsed.l4_offset;
  const bool source = end == End::kSource;
  ChecksumDelta delta;
  delta.change(source ? parsed.source : parsed.destination, address);
  if (parsed.is_v4) {
    ChecksumDelta header = delta;
    take_off_ttl(ip, header);
    store_ip(ip + (source ? kIpv4Source : kIpv4Destination), address, true);
    store16(ip + kIpv4Checksum, header.apply(load16(ip + kIpv4Checksum)));
  } else {
    --ip[kIpv6HopLimit];
    store_ip(ip + (source ? kIpv6Source : kIpv6Destination), address, false);
  }
  uint8_t* port = l4 + (source ? 0 : 2);
  delta.change16(load16(port), port_wire);
  store16(port, port_wire);
  if (parsed.layer == Layer::kTcp) {
    store16(l4 + kTcpChecksum, delta.apply(load16(l4 + kTcpChecksum)));
  } else {
    store16(l4 + kUdpChecksum, delta.apply_udp(load16(l4 + kUdpChecksum)));
  }
}

void limit_mss(Packet& packet, const Parsed& parsed, uint16_t limit) {
  constexpr uint8_t kEnd = 0, kNothing = 1, kMss = 2, kMssBytes = 4;
  uint8_t* tcp = packet.data + parsed.l4_offset;
  const size_t end = size_t{tcp[12]} >> 4 << 2;
  size_t at = kTcpBytes;
  while (at + 1 < end && tcp[at] != kEnd && tcp[at] != kMss) {
    const size_t length = tcp[at] == kNothing ? 1 : tcp[at + 1];
    if (length == 0) return;
    at += length;
  }
  if (at + kMssBytes > end || tcp[at] != kMss || tcp[at + 1] != kMssBytes) return;
  uint8_t* mss = tcp + at + 2;
  if (from_wire16(load16(mss)) <= limit) return;
  ChecksumDelta delta;
  // At an odd place the option's bytes lie in two words of the sum, each on the other side.
  const auto as_summed = [&] { return at % 2 == 0 ? load16(mss) : swap16(load16(mss)); };
  const uint16_t before = as_summed();
  store16(mss, to_wire16(limit));
  delta.change16(before, as_summed());
  store16(tcp + kTcpChecksum, delta.apply(load16(tcp + kTcpChecksum)));
}

void decrement_ttl(Packet& packet, const Parsed& parsed) {
  uint8_t* ip = packet.data + parsed.l3_offset;
  if (!parsed.is_v4) {
    --ip[kIpv6HopLimit];
    return;
  }
  ChecksumDelta delta;
  take_off_ttl(ip, delta);
  store16(ip + kIpv4Checksum, delta.apply(load16(ip + kIpv4Checksum)));
}

}  // namespace margay::dp
