// SPDX-License-Identifier: Apache-2.0
#pragma once

// Packets that the SCI makes itself: ARP, Neighbour Discovery, answers to echo requests, TCP resets and ICMP
// errors. Two kinds: turned round in the buffer they arrived in, or written into an outbox frame. Pure.

#include "dataplane/core/flow_entry.h"
#include "dataplane/core/packet.h"
#include "dataplane/core/parse.h"
#include "dataplane/core/site_table.h"

namespace margay::dp {

// --- in place: the packet becomes the answer to its sender, ready to leave by the port it came from ---

// RFC 792, RFC 4443 §4.2. REQUIRES: an echo request with a right checksum.
void turn_into_echo_reply(Packet& packet, const Parsed& parsed, const TablePort& port);
// RFC 9293 §3.5.2 and §3.10.7.1: with an ACK, <SEQ=SEG.ACK><CTL=RST>, else <SEQ=0><ACK=SEG.SEQ+SEG.LEN><CTL=RST,ACK>.
void turn_into_reset(Packet& packet, const Parsed& parsed, const TablePort& port);
// Type and code over IPv4 and IPv6, and what stands in the header's last four bytes (host order).
struct IcmpError {
  uint8_t type_v4, code_v4, type_v6, code_v6;
  uint32_t rest = 0;
};
inline constexpr IcmpError kPortUnreachable{3, 3, 1, 4};  // RFC 792, RFC 4443 §3.1
// RFC 1191 §4, RFC 4443 §3.2: with the longest IP packet that gets through.
constexpr IcmpError packet_too_big(uint16_t mtu) { return {3, 4, 2, 0, mtu}; }
// Quotes as much as RFC 1812 §4.3.2.3 and RFC 4443 §2.4 c allow. False without headroom for the new headers; nothing
// has changed then.
[[nodiscard]] bool turn_into_icmp_error(Packet& packet, const Parsed& parsed, const TablePort& port, IcmpError error);

// --- into a frame, VLAN tag of the port included; the caller sets the outcome ---

struct ArpFields {
  bool reply = false;
  MacAddress sender_mac, target_mac;
  IpAddress sender, target;
};
void make_arp(Frame& frame, const ArpFields& arp, const MacAddress& destination, const TablePort& port);

// Neighbour Solicitation to the target's solicited-node group (RFC 4861 §4.3).
void make_solicitation(Frame& frame, const IpAddress& source, const IpAddress& target, const TablePort& port);
// Neighbour Advertisement (RFC 4861 §4.4) with the override flag; solicited unless it goes to all nodes.
void make_advertisement(Frame& frame, const IpAddress& target, const IpAddress& to, const MacAddress& to_mac,
                        const TablePort& port);
inline constexpr IpAddress kAllNodes = [] {
  IpAddress a;
  a.bytes[0] = 0xff;
  a.bytes[1] = 0x02;
  a.bytes[15] = 1;
  return a;
}();
inline constexpr MacAddress kAllNodesMac{{0x33, 0x33, 0, 0, 0, 1}};

// RST from one end of a connection to the other.
struct ResetFields {
  IpAddress source, destination;
  uint16_t source_port = 0, destination_port = 0;  // wire order
  uint32_t sequence = 0;                           // the next that the receiver expects
  uint32_t acknowledgement = 0;                    // for one in SYN-SENT (RFC 9293 §3.10.7.3); 0: no ACK
};
void make_reset(Frame& frame, const ResetFields& reset, const MacAddress& destination, const TablePort& port);

}  // namespace margay::dp
