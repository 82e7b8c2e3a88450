// SPDX-License-Identifier: Apache-2.0
#pragma once

// Builds Ethernet frames for tests, straight from the RFCs and without the data plane's code: the checksum here is
// the plain 16-bit loop of RFC 1071. A builder is a value; each setter returns a changed copy, so that one packet is
// written as a variation of another:
//
//   const auto syn = tcp("198.51.100.7:40000", "192.0.2.10:80").flags(kSyn).seq(1000).ether(kForwarder, kPort0);
//   const auto out = syn.to("10.1.0.11:8080").ether(kPort1, kInstance).ttl(63);
//
// Lengths and checksums come out right unless a setter of a field says otherwise; the *_at() setters overwrite bytes
// after everything else was computed, truncate() and pad() change the end of the frame last. Addresses and MACs are
// text; a wrong one ends the test process. Test code only.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/net.h"

namespace margay::test {

using Bytes = std::vector<uint8_t>;

MacAddress mac(std::string_view text);
IpAddress ip(std::string_view text);
Bytes text_bytes(std::string_view text);
std::string hex(const Bytes& bytes);   // "00000000  01 02 ...", 16 bytes a line, for failures
uint16_t rfc1071(const Bytes& bytes);  // host order, ready to be written high byte first

enum TcpBits : uint8_t { kFin = 1, kSyn = 2, kRst = 4, kPsh = 8, kAck = 16, kUrg = 32, kEce = 64, kCwr = 128 };

class PacketBuilder {
 public:
  // Ethernet and VLAN.
  PacketBuilder ether(const MacAddress& from, const MacAddress& to) const;
  PacketBuilder ethertype(uint16_t v) const;
  PacketBuilder vlan(uint16_t tag_control, uint16_t tag_type = 0x8100) const;  // outermost first
  PacketBuilder untagged() const;

  // IP. from() and to() take "address" or "address:port".
  PacketBuilder from(std::string_view endpoint) const;
  PacketBuilder to(std::string_view endpoint) const;
  PacketBuilder ttl(uint8_t v) const;
  PacketBuilder tos(uint8_t v) const;
  PacketBuilder id(uint16_t v) const;
  PacketBuilder fragment(uint16_t offset_units, bool more) const;  // IPv6: puts a Fragment header in
  PacketBuilder dont_fragment() const;
  PacketBuilder ip_options(Bytes options) const;            // IPv4, padded to a multiple of 4
  PacketBuilder extension(uint8_t type, Bytes body) const;  // IPv6, body of 6 + 8n bytes
  PacketBuilder protocol(uint8_t v) const;                  // or the last next header
  PacketBuilder ip_version(uint8_t v) const;
  PacketBuilder ihl(uint8_t v) const;
  PacketBuilder ip_length(uint16_t v) const;  // IPv4 total length, IPv6 payload length
  PacketBuilder ip_checksum(uint16_t v) const;

  // TCP, UDP, ICMP.
  PacketBuilder ports(uint16_t from, uint16_t to) const;
  PacketBuilder flags(unsigned v) const;
  PacketBuilder seq(uint32_t v) const;
  PacketBuilder ack(uint32_t v) const;
  PacketBuilder window(uint16_t v) const;
  PacketBuilder tcp_options(Bytes options) const;  // padded to a multiple of 4
  PacketBuilder data_offset(uint8_t words) const;
  PacketBuilder udp_length(uint16_t v) const;
  PacketBuilder l4_checksum(uint16_t v) const;  // udp: 0 means none sent
  PacketBuilder icmp_type(uint8_t type, uint8_t code) const;
  PacketBuilder icmp_rest(uint32_t v) const;  // bytes 4..7 of the ICMP header
  PacketBuilder payload(Bytes bytes) const;
  PacketBuilder payload(std::string_view text) const { return payload(text_bytes(text)); }
  PacketBuilder payload_size(size_t n) const;  // n bytes 0, 1, 2, ...
  // Two bytes in front of the payload so that the transport checksum comes out as `wanted` (RFC 768's corner values).
  PacketBuilder payload_for_checksum(uint16_t wanted) const;
  // The identification that makes the IPv4 header's checksum come out as `wanted`.
  PacketBuilder id_for_ip_checksum(uint16_t wanted) const;

  // The finished frame's bytes.
  PacketBuilder l2_at(size_t offset, Bytes bytes) const;
  PacketBuilder l3_at(size_t offset, Bytes bytes) const;
  PacketBuilder l4_at(size_t offset, Bytes bytes) const;
  PacketBuilder truncate(size_t length) const;
  PacketBuilder pad(size_t length) const;  // zeros up to this length

  Bytes build() const;
  Bytes ip_packet() const;  // without the Ethernet header: what ICMP quotes
  size_t l3_offset() const { return 14 + 4 * tags_.size(); }
  size_t l4_offset() const;
  const Bytes& payload_bytes() const { return payload_; }
  uint16_t identification() const { return id_; }
  uint16_t computed_l4_checksum() const;  // as computed, 0 where 0 came out

  // Starts; see the functions below.
  enum class Kind : uint8_t { kRaw, kTcp, kUdp, kIcmp };
  static PacketBuilder start(Kind kind, std::string_view from, std::string_view to);
  static PacketBuilder raw(uint16_t ethertype, Bytes payload);

 private:
  struct Patch {
    int layer;
    size_t offset;
    Bytes bytes;
  };
  template <class Change>
  PacketBuilder with(Change change) const {
    PacketBuilder copy = *this;
    change(copy);
    return copy;
  }
  bool is_v4() const { return source_.is_v4(); }
  uint8_t transport() const;
  uint8_t icmp_protocol() const { return is_v4() ? 1 : 58; }
  Bytes transport_header() const;
  Bytes transport_bytes() const;
  Bytes extensions_bytes(uint8_t last) const;
  Bytes ipv4_header(size_t payload) const;
  Bytes ipv6_header(size_t payload) const;
  Bytes ip_bytes() const;

  Kind kind_ = Kind::kRaw;
  MacAddress ether_from_{{0x02, 0, 0, 0, 0, 0x01}}, ether_to_{{0x02, 0, 0, 0, 0x0f, 0x00}};
  std::vector<std::pair<uint16_t, uint16_t>> tags_;
  uint16_t ethertype_ = 0;
  IpAddress source_, destination_;
  uint16_t source_port_ = 0, destination_port_ = 0;
  uint8_t ttl_ = 64, tos_ = 0;
  uint16_t id_ = 0, fragment_ = 0;
  bool fragment_header_ = false;
  Bytes ip_options_, tcp_options_, payload_;
  std::vector<std::pair<uint8_t, Bytes>> extensions_;
  std::optional<uint8_t> protocol_, ip_version_, ihl_, data_offset_;
  std::optional<uint16_t> ip_length_, ip_checksum_, udp_length_, l4_checksum_;
  uint8_t flags_ = kAck;
  uint32_t seq_ = 0, ack_ = 0;
  uint16_t window_ = 65535;
  uint8_t icmp_type_ = 0, icmp_code_ = 0;
  uint32_t icmp_rest_ = 0;
  std::vector<Patch> patches_;
  std::optional<size_t> truncate_;
  size_t pad_ = 0;
};

// "198.51.100.7:40000", "[2001:db8::7]:40000": both of one family.
PacketBuilder tcp(std::string_view from, std::string_view to);
PacketBuilder udp(std::string_view from, std::string_view to);
// ICMP or ICMPv6 by the addresses' family.
PacketBuilder icmp(std::string_view from, std::string_view to, uint8_t type, uint8_t code);
PacketBuilder echo_request(std::string_view from, std::string_view to, uint16_t id, uint16_t sequence);
PacketBuilder echo_reply(std::string_view from, std::string_view to, uint16_t id, uint16_t sequence);

// RFC 826; the Ethernet addresses follow the ARP fields (a request goes to everyone).
struct Arp {
  uint16_t operation = 1;  // 1 request, 2 reply
  MacAddress sender_mac;
  std::string sender;
  MacAddress target_mac;
  std::string target;
};
PacketBuilder arp(const Arp& fields);
PacketBuilder arp_request(const MacAddress& sender_mac, std::string_view sender, std::string_view target);
PacketBuilder arp_reply(const MacAddress& sender_mac, std::string_view sender, const MacAddress& target_mac,
                        std::string_view target);

// RFC 4861 §4.3, §4.4, hop limit 255. A link-layer option (1 source, 2 target) is added where a MAC is given.
// A solicitation goes to the target's solicited-node group and its group MAC.
PacketBuilder neighbour_solicitation(const MacAddress& sender_mac, std::string_view sender, std::string_view target,
                                     std::optional<MacAddress> source_option);
enum NaFlags : uint32_t { kIsRouter = 1u << 31, kSolicited = 1u << 30, kOverride = 1u << 29 };
PacketBuilder neighbour_advertisement(const MacAddress& sender_mac, std::string_view sender, std::string_view to,
                                      std::string_view target, uint32_t na_flags,
                                      std::optional<MacAddress> target_option);
Bytes neighbour_target(std::string_view target, const Bytes& options = {});  // what follows the ICMPv6 header
IpAddress solicited_node(const IpAddress& target);
MacAddress group_mac(const IpAddress& group);  // RFC 2464 §7

}  // namespace margay::test
