// SPDX-License-Identifier: Apache-2.0
// ARP and Neighbour Discovery packets of packet_builder.h.
#include <algorithm>

#include "tests/support/packet_builder.h"

namespace margay::test {
namespace {

void put_word(Bytes& out, uint16_t v) {
  out.insert(out.end(), {static_cast<uint8_t>(v >> 8), static_cast<uint8_t>(v)});
}
void put(Bytes& out, const MacAddress& m) { out.insert(out.end(), m.bytes.begin(), m.bytes.end()); }
void put(Bytes& out, const IpAddress& a) {
  out.insert(out.end(), a.bytes.begin() + (a.is_v4() ? 12 : 0), a.bytes.end());
}

}  // namespace

PacketBuilder arp(const Arp& fields) {
  Bytes p;
  put_word(p, 1), put_word(p, 0x0800), put_word(p, 0x0604), put_word(p, fields.operation);
  put(p, fields.sender_mac), put(p, ip(fields.sender));
  put(p, fields.target_mac), put(p, ip(fields.target));
  const MacAddress to = fields.operation == 1 ? kBroadcastMac : fields.target_mac;
  return PacketBuilder::raw(0x0806, std::move(p)).ether(fields.sender_mac, to);
}
PacketBuilder arp_request(const MacAddress& sender_mac, std::string_view sender, std::string_view target) {
  return arp({1, sender_mac, std::string(sender), MacAddress{}, std::string(target)});
}
PacketBuilder arp_reply(const MacAddress& sender_mac, std::string_view sender, const MacAddress& target_mac,
                        std::string_view target) {
  return arp({2, sender_mac, std::string(sender), target_mac, std::string(target)});
}

IpAddress solicited_node(const IpAddress& target) {  // RFC 4291 §2.7.1
  IpAddress group = ip("ff02::1:ff00:0");
  std::copy(target.bytes.begin() + 13, target.bytes.end(), group.bytes.begin() + 13);
  return group;
}
MacAddress group_mac(const IpAddress& group) {
  return {{0x33, 0x33, group.bytes[12], group.bytes[13], group.bytes[14], group.bytes[15]}};
}

Bytes neighbour_target(std::string_view target, const Bytes& options) {
  Bytes body;
  put(body, ip(target));
  body.insert(body.end(), options.begin(), options.end());
  return body;
}

namespace {
Bytes nd_body(std::string_view target, uint8_t option_type, const std::optional<MacAddress>& option) {
  Bytes bytes;
  if (option) put_word(bytes, static_cast<uint16_t>(option_type << 8 | 1)), put(bytes, *option);
  return neighbour_target(target, bytes);
}
}  // namespace

PacketBuilder neighbour_solicitation(const MacAddress& sender_mac, std::string_view sender, std::string_view target,
                                     std::optional<MacAddress> source_option) {
  const IpAddress group = solicited_node(ip(target));
  return icmp(sender, group.format(), 135, 0)
      .ttl(255)
      .payload(nd_body(target, 1, source_option))
      .ether(sender_mac, group_mac(group));
}
PacketBuilder neighbour_advertisement(const MacAddress& sender_mac, std::string_view sender, std::string_view to,
                                      std::string_view target, uint32_t na_flags,
                                      std::optional<MacAddress> target_option) {
  return icmp(sender, to, 136, 0)
      .ttl(255)
      .icmp_rest(na_flags)
      .payload(nd_body(target, 2, target_option))
      .ether(sender_mac, group_mac(ip(to)));
}

}  // namespace margay::test
