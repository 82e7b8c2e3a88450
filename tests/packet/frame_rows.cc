// SPDX-License-Identifier: Apache-2.0
// Frames that do not get past the parser or the link layer, and their neighbours that do. The parser's own
// boundaries stand in tests/unit/parse_test.cc; here each reason is seen from the outside.
#include "tests/packet/flows.h"

namespace margay::test {
namespace {

Row dropped(const char* name, const PacketBuilder& frame, DropReason why) {
  return {name, nat_site(), {in(0, frame).drop(why).leaves(0, 0)}};
}

SiteConfig tagged_clients() {
  return with(nat_site(), [](SiteConfig& c) { c.ports[0].vlan = 100; });
}
SiteConfig tagged_instances() {
  return with(nat_site(), [](SiteConfig& c) { c.ports[1].vlan = 200; });
}

}  // namespace

Rows frame_rows() {
  const auto mapped = kOpen6.l3_at(8, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 198, 51, 100, 7});
  return {
      dropped("no Ethernet header", kOpen.truncate(13), DropReason::kTooShort),
      dropped("IPv4 header cut", kOpen.truncate(14 + 19), DropReason::kTooShort),
      dropped("IPv6 header cut", kOpen6.truncate(14 + 39), DropReason::kTooShort),
      dropped("VLAN tag cut", kOpen.vlan(100).truncate(17), DropReason::kTooShort),
      dropped("IPv4 packet cut", kOpen.truncate(53), DropReason::kBadLength),
      dropped("IPv6 packet cut", kOpen6.truncate(73), DropReason::kBadLength),
      dropped("IPv4 header length below 5", kOpen.ihl(4), DropReason::kBadLength),
      dropped("IPv6 jumbogram", kOpen6.extension(0, {0xc2, 4, 0, 1, 0, 0}).ip_length(0), DropReason::kBadLength),
      dropped("IPv6 in an IPv4 frame", kOpen6.ethertype(0x0800), DropReason::kBadVersion),
      dropped("IPv4 in an IPv6 frame", kOpen.payload_size(20).ethertype(0x86dd), DropReason::kBadVersion),
      dropped("IPv4 header checksum", kOpen.ip_checksum(0x1234), DropReason::kBadHeaderChecksum),
      dropped("source is a group", kOpen.from("224.0.0.1"), DropReason::kBadAddress),
      dropped("source is loopback", kOpen.from("127.0.0.1"), DropReason::kBadAddress),
      dropped("source is 0.0.0.0", kOpen.from("0.0.0.0"), DropReason::kBadAddress),
      dropped("source is 255.255.255.255", kOpen.from("255.255.255.255"), DropReason::kBadAddress),
      dropped("land", kOpen.from("192.0.2.10:80"), DropReason::kBadAddress),
      dropped("IPv6 source is a group", kOpen6.from("ff02::1"), DropReason::kBadAddress),
      dropped("IPv6 source is ::1", kOpen6.from("::1"), DropReason::kBadAddress),
      dropped("TCP from ::", kOpen6.from("::"), DropReason::kBadAddress),
      dropped("IPv4-mapped source", mapped, DropReason::kBadAddress),
      dropped("TCP header cut", kOpen.ip_length(39).truncate(53), DropReason::kBadTcpHeader),
      dropped("TCP data offset below 5", kOpen.data_offset(4), DropReason::kBadTcpHeader),
      dropped("TCP data offset beyond the packet", kOpen.data_offset(6), DropReason::kBadTcpHeader),
      dropped("TCP SYN with FIN", kOpen.flags(kSyn | kFin), DropReason::kBadTcpFlags),
      dropped("TCP SYN with RST", kOpen.flags(kSyn | kRst), DropReason::kBadTcpFlags),
      dropped("TCP FIN without ACK", kOpen.flags(kFin), DropReason::kBadTcpFlags),
      dropped("TCP without flags", kOpen.flags(0), DropReason::kBadTcpFlags),
      dropped("TCP port 0", kOpen.ports(0, 80), DropReason::kBadPort),
      dropped("UDP port 0", kQuery.ports(40000, 0), DropReason::kBadPort),
      dropped("UDP length below 8", kQuery.udp_length(7), DropReason::kBadUdpLength),
      dropped("UDP length beyond the packet", kQuery.udp_length(14), DropReason::kBadUdpLength),
      dropped("ICMP of 7 bytes",
              from_router(echo_request("198.51.100.7", "192.0.2.10", 1, 1)).payload("").ip_length(27).truncate(41),
              DropReason::kBadIcmp),
      dropped("IPv4 first fragment", kQuery.fragment(0, true), DropReason::kFragment),
      dropped("IPv4 last fragment", kQuery.fragment(100, false), DropReason::kFragment),
      dropped("IPv6 fragment", kOpen6.fragment(0, true), DropReason::kFragment),
      dropped("IPv6 atomic fragment", kOpen6.fragment(0, false), DropReason::kFragment),
      dropped("IPv6 hop-by-hop header", kOpen6.extension(0, Bytes(6)), DropReason::kExtensionHeader),
      dropped("IPv6 destination options", kOpen6.extension(60, Bytes(6)), DropReason::kExtensionHeader),
      dropped("IPv6 routing header", kOpen6.extension(43, Bytes(6)), DropReason::kExtensionHeader),
      dropped("SCTP to an SCI", kOpen.protocol(132), DropReason::kUnknownProtocol),
      dropped("GRE to an SCI over IPv6", kOpen6.protocol(47), DropReason::kUnknownProtocol),
      dropped("LLDP", PacketBuilder::raw(0x88cc, Bytes(46)).ether(kRouter, kPort0), DropReason::kUnknownEthertype),
      dropped("source MAC is a group", kOpen.ether(mac("03:00:00:00:00:01"), kPort0), DropReason::kBadAddress),
      dropped("another host's MAC", kOpen.ether(kRouter, kStranger), DropReason::kNotOurMac),
      dropped("a port's MAC on another port", kOpen.ether(kRouter, kPort1), DropReason::kNotOurMac),
      // RFC 1812 §5.3.4: what came as a link-layer broadcast is not forwarded; RFC 1122 §3.2.2: nor is it refused.
      dropped("TCP in a broadcast frame", kOpen.ether(kRouter, kBroadcastMac), DropReason::kNotOurMac),
      dropped("UDP in a group frame", kQuery.ether(kRouter, mac("01:00:5e:00:00:01")), DropReason::kNotOurMac),
      dropped("tag on an untagged port", kOpen.vlan(100), DropReason::kVlanMismatch),
      dropped("two tags", kOpen.vlan(0).vlan(100), DropReason::kUnknownEthertype),
      dropped("service tag", kOpen.vlan(100, 0x88a8), DropReason::kUnknownEthertype),
      {"no tag on a tagged port", tagged_clients(), {in(0, kOpen).drop(DropReason::kVlanMismatch)}},
      {"another tag on a tagged port", tagged_clients(), {in(0, kOpen.vlan(101)).drop(DropReason::kVlanMismatch)}},
      {"priority tag on a tagged port", tagged_clients(), {in(0, kOpen.vlan(0)).drop(DropReason::kVlanMismatch)}},

      {"priority tag is taken off", nat_site(), {in(0, kOpen.vlan(0xe000)).out(1, kOpenOut)}},
      {"tag is taken off", tagged_clients(), {in(0, kOpen.vlan(100)).out(1, kOpenOut)}},
      {"priority beside the tag is no matter", tagged_clients(), {in(0, kOpen6.vlan(0xa064)).out(1, kOpen6Out)}},
      {"tag is put on", tagged_instances(), {in(0, kOpen).out(1, kOpenOut.vlan(200))}},
      {"tag is put on IPv6", tagged_instances(), {in(0, kOpen6).out(1, kOpen6Out.vlan(200))}},
      {"priority tag becomes the port's", tagged_instances(), {in(0, kOpen.vlan(0xe000)).out(1, kOpenOut.vlan(200))}},
      {"tag is changed",
       with(tagged_clients(), [](SiteConfig& c) { c.ports[1].vlan = 200; }),
       {in(0, kQuery.vlan(100)).out(1, kQueryOut.vlan(200)),
        in(1, kQueryOut.vlan(200).from("10.1.0.11:5353").to("198.51.100.7:40000").ether(kInstance1, kPort1).ttl(64))
            .out(0, kQuery.vlan(100).from("192.0.2.10:53").to("198.51.100.7:40000").ether(kPort0, kRouter).ttl(63))}},
      {"Ethernet padding is no matter", nat_site(), {in(0, kQuery.pad(60)).out(1, kQueryOut.pad(60))}},
      {"IPv4 options stay",
       nat_site(),
       {in(0, kOpen.ip_options({7, 7, 4, 0, 0, 0, 0})).out(1, kOpenOut.ip_options({7, 7, 4, 0, 0, 0, 0}))}},
      {"TCP options, ECN and window stay",
       nat_site(),
       {in(0, kOpen.tcp_options({2, 4, 5, 0xb4}).flags(kSyn | kEce | kCwr).window(1))
            .out(1, kOpenOut.tcp_options({2, 4, 5, 0xb4}).flags(kSyn | kEce | kCwr).window(1))}},
      {"traffic class and identification stay",
       nat_site(),
       {in(0, kQuery.tos(0xb8).id(0xbeef).dont_fragment()).out(1, kQueryOut.tos(0xb8).id(0xbeef).dont_fragment())}},
  };
}

}  // namespace margay::test
