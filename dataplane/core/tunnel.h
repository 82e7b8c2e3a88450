// SPDX-License-Identifier: Apache-2.0
#pragma once

// The outer headers of tunnel modes: IP in IP (RFC 2003, RFC 2473, RFC 4213) and Generic UDP Encapsulation
// (draft-ietf-intarea-gue), in any mix of families. Pure; the worker that holds the packet.
//
// Outer header: TTL of our own; DSCP and ECN the inner ones (RFC 6040 §4.1, normal mode); IPv4 with DF, so that its
// identification means nothing (RFC 6864 §4.1); flow label and UDP source port by the flow's hash, so that the site's
// fabric spreads flows and keeps each in order (RFC 6438 §3).

#include "common/sci_config.h"
#include "dataplane/core/packet.h"
#include "dataplane/core/parse.h"

namespace margay::dp {

// What leads to an instance through a tunnel.
struct Tunnel {
  IpAddress source;          // our own, on the network by which the instance is reached
  uint16_t udp_port = 0;     // wire order; 0: IP in IP
  uint8_t bytes = 0;         // that the mode puts in front of an IP packet; 0: no tunnel
  bool gue_header = false;   // GUE variant 0
  bool udp_checksum = true;  // else 0, which RFC 6935 allows over IPv6 too

  friend bool operator==(const Tunnel&, const Tunnel&) = default;
};

// But for the source, which is the layout's to know.
Tunnel tunnel_of(const SciPolicy& sci, const IpAddress& instance);

// Puts the outer headers in front of the IP packet and takes Ethernet's padding off its end; the link layer is
// set_link_layer()'s to write. The UDP checksum is derived from the inner one, so a packet whose own is wrong gets a
// wrong one here too. REQUIRES: parsed as TCP or UDP of this packet, TTL taken off already; a tunnel; headroom for its
// bytes; the whole within 65535 bytes.
void encapsulate(Packet& packet, Parsed& parsed, const Tunnel& tunnel, const IpAddress& destination,
                 uint64_t flow_hash);

}  // namespace margay::dp
