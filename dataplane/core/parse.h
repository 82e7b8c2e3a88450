// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads the headers of a frame, checking every length before the bytes behind it. Never writes. What it
// accepts is safe for the fast path to rewrite at the offsets that it gives. Any thread.

#include <cstdint>

#include "common/net.h"
#include "dataplane/core/packet.h"

namespace margay::dp {

enum class Layer : uint8_t {
  kOther,      // EtherType that is none of these
  kArp,        // RFC 826 for IPv4 over Ethernet; payload at l3_offset, length checked
  kIp,         // IPv4 or IPv6 with a transport that is not looked into (`protocol` tells which)
  kFragment,   // IPv4 or IPv6 fragment, any offset: no transport header is read
  kExtension,  // IPv6 with an extension header other than Fragment: not walked
  kIcmp,       // ICMP or ICMPv6 message of at least 8 bytes
  kTcp,
  kUdp,
};

enum TcpFlag : uint8_t { kFin = 1, kSyn = 2, kRst = 4, kPsh = 8, kAck = 16, kUrg = 32 };

struct Parsed {
  IpAddress source, destination;                   // kIp and above
  uint32_t sequence = 0, acknowledgement = 0;      // TCP, host order
  uint16_t source_port = 0, destination_port = 0;  // TCP and UDP, wire order
  uint16_t ethertype = 0;                          // host order, behind the VLAN tag if there is one
  uint16_t l3_offset = 0, l4_offset = 0;           // from the start of the frame
  uint16_t ip_length = 0;   // IP packet, header included; the frame may be longer (Ethernet padding)
  uint16_t l4_payload = 0;  // bytes behind the TCP or UDP header
  uint16_t vlan = 0;        // VLAN id of the tag, 0 without one
  Layer layer = Layer::kOther;
  DropReason error = DropReason::kNone;  // not kNone: nothing but what was read before it is valid
  uint8_t protocol = 0;                  // IPv4 protocol, or IPv6 next header (the first)
  uint8_t tcp_flags = 0;                 // TcpFlag
  uint8_t ttl = 0;                       // or hop limit
  bool is_v4 = false;
  bool tagged = false;

  // TCP: sequence numbers that this segment covers, SYN and FIN counted (RFC 9293 §3.4).
  uint32_t sequence_length() const { return l4_payload + ((tcp_flags & kSyn) != 0) + ((tcp_flags & kFin) != 0); }
};

// IPv4 header checksum, TCP data offset, UDP length, ICMP length, addresses that may not appear on the wire
// (RFC 1122 §3.2.1.3, RFC 4291 §2.5) and flag combinations are checked here; ICMP checksums where a message is
// answered or believed.
Parsed parse(const Packet& packet);

}  // namespace margay::dp
