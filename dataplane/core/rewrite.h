// SPDX-License-Identifier: Apache-2.0
#pragma once

// Changes a parsed frame in place: link layer, addresses, ports, TTL, checksums (incrementally, RFC 1624).
// Pure; the worker that holds the packet.

#include "dataplane/core/packet.h"
#include "dataplane/core/parse.h"
#include "dataplane/core/site_table.h"

namespace margay::dp {

// Gives the frame the link-layer header of a port it leaves by: MACs, and the port's VLAN tag or none. False when
// a tag must be added and there is no headroom; nothing has changed then.
[[nodiscard]] bool set_link_layer(Packet& packet, Parsed& parsed, const MacAddress& destination, const TablePort& port);

// Which end of the packet is changed.
enum class End : uint8_t { kSource, kDestination };

// Puts another address and port at one end and takes one off the TTL. REQUIRES: TCP or UDP of the address's
// family, TTL above 1. A UDP checksum of 0 over IPv4 stays 0 (RFC 768).
void translate(Packet& packet, const Parsed& parsed, End end, const IpAddress& address, uint16_t port_wire);

// Lowers the MSS option of a SYN to `limit`, checksum and all; without one, or with a lower one, nothing changes.
// REQUIRES: TCP.
void limit_mss(Packet& packet, const Parsed& parsed, uint16_t limit);

// Takes one off the TTL or hop limit. REQUIRES: it is above 1.
void decrement_ttl(Packet& packet, const Parsed& parsed);

}  // namespace margay::dp
