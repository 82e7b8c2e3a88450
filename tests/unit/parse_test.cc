// SPDX-License-Identifier: Apache-2.0
// Each case stands on both sides of its boundary. Frames lie in heap blocks of exactly their size, so that under
// ASan a read behind the frame ends the test.
#include "dataplane/core/parse.h"

#include <algorithm>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/packet_builder.h"

namespace margay::test {
namespace {

using dp::Layer;
using dp::Parsed;

Parsed parse(const Bytes& bytes) {
  const auto block = std::make_unique<uint8_t[]>(bytes.size());
  std::copy(bytes.begin(), bytes.end(), block.get());
  dp::Packet packet;
  packet.data = block.get();
  packet.length = static_cast<uint16_t>(bytes.size());
  return dp::parse(packet);
}
Parsed parse(const PacketBuilder& builder) { return parse(builder.build()); }

const PacketBuilder kTcp4 = tcp("198.51.100.7:40000", "192.0.2.10:80");
const PacketBuilder kTcp6 = tcp("[2001:db8:1::7]:40000", "[2001:db8::10]:80");
const PacketBuilder kUdp4 = udp("198.51.100.7:40000", "192.0.2.10:53").payload("query");
const PacketBuilder kUdp6 = udp("[2001:db8:1::7]:40000", "[2001:db8::10]:53").payload("query");
const PacketBuilder kEcho4 = echo_request("198.51.100.7", "192.0.2.10", 1, 2);
const PacketBuilder kEcho6 = echo_request("2001:db8:1::7", "2001:db8::10", 1, 2);
const MacAddress kMac = mac("02:00:00:00:00:01");
const PacketBuilder kArp = arp_request(kMac, "192.0.2.1", "192.0.2.2");

struct Case {
  const char* name;
  PacketBuilder packet;
  DropReason error = DropReason::kNone;
  Layer layer = Layer::kOther;  // where there is no error
};

void expect(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    const Parsed p = parse(c.packet);
    EXPECT_EQ(text_of(p.error).name, text_of(c.error).name) << c.name;
    if (c.error != DropReason::kNone) continue;
    EXPECT_EQ(static_cast<int>(p.layer), static_cast<int>(c.layer)) << c.name;
  }
}

TEST(ParseTest, TcpOverIpv4) {
  const Parsed p = parse(kTcp4.flags(kSyn | kAck | kEce).seq(0x01020304).ack(0xf1f2f3f4).ttl(63).payload("hello"));
  EXPECT_EQ(p.error, DropReason::kNone);
  EXPECT_EQ(p.layer, Layer::kTcp);
  EXPECT_TRUE(p.is_v4);
  EXPECT_EQ(p.source, ip("198.51.100.7"));
  EXPECT_EQ(p.destination, ip("192.0.2.10"));
  EXPECT_EQ(p.source_port, to_wire16(40000));
  EXPECT_EQ(p.destination_port, to_wire16(80));
  EXPECT_EQ(p.sequence, 0x01020304u);
  EXPECT_EQ(p.acknowledgement, 0xf1f2f3f4u);
  EXPECT_EQ(p.ethertype, 0x0800);
  EXPECT_EQ(p.l3_offset, 14);
  EXPECT_EQ(p.l4_offset, 34);
  EXPECT_EQ(p.ip_length, 45);
  EXPECT_EQ(p.l4_payload, 5);
  EXPECT_EQ(p.protocol, 6);
  EXPECT_EQ(p.tcp_flags, dp::kSyn | dp::kAck);
  EXPECT_EQ(p.ttl, 63);
  EXPECT_FALSE(p.tagged);
  EXPECT_EQ(p.sequence_length(), 6u);  // five bytes and SYN
}

TEST(ParseTest, UdpOverIpv6) {
  const Parsed p = parse(kUdp6.ttl(7));
  EXPECT_EQ(p.error, DropReason::kNone);
  EXPECT_EQ(p.layer, Layer::kUdp);
  EXPECT_FALSE(p.is_v4);
  EXPECT_EQ(p.source, ip("2001:db8:1::7"));
  EXPECT_EQ(p.destination, ip("2001:db8::10"));
  EXPECT_EQ(p.source_port, to_wire16(40000));
  EXPECT_EQ(p.destination_port, to_wire16(53));
  EXPECT_EQ(p.ethertype, 0x86dd);
  EXPECT_EQ(p.l4_offset, 54);
  EXPECT_EQ(p.ip_length, 53);
  EXPECT_EQ(p.l4_payload, 5);
  EXPECT_EQ(p.ttl, 7);
}

TEST(ParseTest, Ethernet) {
  expect({
      {"13 bytes", kTcp4.truncate(13), DropReason::kTooShort},
      {"empty frame", kTcp4.truncate(0), DropReason::kTooShort},
      {"header alone, LLDP", PacketBuilder::raw(0x88cc, {}), DropReason::kNone, Layer::kOther},
      {"802.3 length", PacketBuilder::raw(46, Bytes(46)), DropReason::kNone, Layer::kOther},
      {"padding behind IPv4", kUdp4.pad(60), DropReason::kNone, Layer::kUdp},
      {"padding behind IPv6", kUdp6.pad(90), DropReason::kNone, Layer::kUdp},
  });
  EXPECT_EQ(parse(kUdp4.pad(60)).l4_payload, 5);
}

TEST(ParseTest, Vlan) {
  const Parsed one = parse(kTcp4.vlan(0xe064));  // priority 7, id 100
  EXPECT_EQ(one.layer, Layer::kTcp);
  EXPECT_TRUE(one.tagged);
  EXPECT_EQ(one.vlan, 100);
  EXPECT_EQ(one.l3_offset, 18);
  EXPECT_EQ(one.l4_offset, 38);
  EXPECT_EQ(one.ethertype, 0x0800);
  const Parsed priority = parse(kTcp4.vlan(0));
  EXPECT_TRUE(priority.tagged);
  EXPECT_EQ(priority.vlan, 0);
  const Parsed two = parse(kTcp4.vlan(100).vlan(200));
  EXPECT_EQ(two.error, DropReason::kNone);
  EXPECT_EQ(two.layer, Layer::kOther);
  EXPECT_EQ(two.ethertype, 0x8100);
  EXPECT_EQ(two.vlan, 100);
  const Parsed service = parse(kTcp4.vlan(100, 0x88a8));
  EXPECT_EQ(service.layer, Layer::kOther);
  EXPECT_EQ(service.ethertype, 0x88a8);
  EXPECT_FALSE(service.tagged);
  EXPECT_EQ(parse(kTcp4.vlan(100).truncate(17)).error, DropReason::kTooShort);
  EXPECT_EQ(parse(PacketBuilder::raw(0x88cc, {}).vlan(1)).error, DropReason::kNone);  // 18 bytes
}

TEST(ParseTest, Ipv4Header) {  // RFC 791 §3.1
  expect({
      {"19 bytes", kTcp4.truncate(14 + 19), DropReason::kTooShort},
      {"version 6", kTcp4.ip_version(6), DropReason::kBadVersion},
      {"version 0", kTcp4.ip_version(0), DropReason::kBadVersion},
      {"header of 4 words", kTcp4.ihl(4), DropReason::kBadLength},
      {"total length below the header", kTcp4.ip_length(19), DropReason::kBadLength},
      {"total length 0", kTcp4.ip_length(0), DropReason::kBadLength},
      {"header alone", kTcp4.ip_length(20), DropReason::kBadTcpHeader},
      {"header longer than the packet", kTcp4.ihl(15), DropReason::kBadLength},
      {"packet longer than the frame", kTcp4.ip_length(41), DropReason::kBadLength},
      {"total length 65535", kTcp4.ip_length(65535), DropReason::kBadLength},
      {"checksum off by one", kTcp4.l3_at(11, {0x01}), DropReason::kBadHeaderChecksum},
      {"checksum 0", kTcp4.ip_checksum(0), DropReason::kBadHeaderChecksum},
      {"unknown transport", kTcp4.protocol(47), DropReason::kNone, Layer::kIp},
      {"ICMPv6 over IPv4", kTcp4.protocol(58), DropReason::kNone, Layer::kIp},
      {"TTL 0", kTcp4.ttl(0), DropReason::kNone, Layer::kTcp},
  });
}

TEST(ParseTest, Ipv4HeaderChecksumOverEveryBit) {
  const Bytes good = kTcp4.ip_options({7, 11, 4, 0, 0, 0, 0, 0, 0, 0, 0}).build();
  ASSERT_EQ(parse(good).error, DropReason::kNone);
  for (size_t bit = 8 * 22; bit < 8 * 46; ++bit) {  // from the TTL to the end of the options
    Bytes bad = good;
    bad[bit / 8] = static_cast<uint8_t>(bad[bit / 8] ^ 1 << bit % 8);
    EXPECT_EQ(parse(bad).error, DropReason::kBadHeaderChecksum) << bit;
  }
}

TEST(ParseTest, Ipv4HeaderChecksumThatFoldsTwice) {
  for (uint32_t id = 0; id < 0x10000; ++id) {
    ASSERT_EQ(parse(kTcp4.id(static_cast<uint16_t>(id)).tos(0xff).truncate(54)).error, DropReason::kNone) << id;
  }
}

TEST(ParseTest, Ipv4Options) {
  const Parsed p = parse(kTcp4.ip_options(Bytes(40, 1)).payload("hello"));  // 40 no-operations
  EXPECT_EQ(p.error, DropReason::kNone);
  EXPECT_EQ(p.layer, Layer::kTcp);
  EXPECT_EQ(p.l4_offset, 14 + 60);
  EXPECT_EQ(p.l4_payload, 5);
  EXPECT_EQ(p.destination_port, to_wire16(80));
  EXPECT_EQ(parse(kTcp4.ip_options(Bytes(4, 1))).l4_offset, 14 + 24);
}

TEST(ParseTest, Ipv4Fragments) {
  expect({
      {"first", kUdp4.fragment(0, true), DropReason::kNone, Layer::kFragment},
      {"last", kUdp4.fragment(1, false), DropReason::kNone, Layer::kFragment},
      {"highest offset", kUdp4.fragment(8191, false), DropReason::kNone, Layer::kFragment},
      {"shorter than a UDP header", kUdp4.payload("").fragment(0, true).ip_length(21).truncate(35), DropReason::kNone,
       Layer::kFragment},
      {"don't fragment", kUdp4.dont_fragment(), DropReason::kNone, Layer::kUdp},
      {"bad address", kUdp4.fragment(0, true).from("127.0.0.1"), DropReason::kBadAddress},
  });
  EXPECT_EQ(parse(kUdp4.fragment(1, false)).source, ip("198.51.100.7"));
  EXPECT_EQ(parse(kUdp4.fragment(1, false)).source_port, 0);
}

TEST(ParseTest, Ipv4Addresses) {  // RFC 1122 §3.2.1.3
  const auto from = [](const char* address) { return kTcp4.from(address); };
  const auto to = [](const char* address) { return kTcp4.to(address); };
  expect({
      {"from 0.0.0.0", from("0.0.0.0"), DropReason::kBadAddress},
      {"from 0.0.0.1", from("0.0.0.1"), DropReason::kNone, Layer::kTcp},
      {"from 126.255.255.255", from("126.255.255.255"), DropReason::kNone, Layer::kTcp},
      {"from 127.0.0.0", from("127.0.0.0"), DropReason::kBadAddress},
      {"from 127.255.255.255", from("127.255.255.255"), DropReason::kBadAddress},
      {"from 128.0.0.0", from("128.0.0.0"), DropReason::kNone, Layer::kTcp},
      {"from 223.255.255.255", from("223.255.255.255"), DropReason::kNone, Layer::kTcp},
      {"from 224.0.0.0", from("224.0.0.0"), DropReason::kBadAddress},
      {"from 240.0.0.1", from("240.0.0.1"), DropReason::kBadAddress},
      {"from 255.255.255.255", from("255.255.255.255"), DropReason::kBadAddress},
      {"to 0.0.0.0", to("0.0.0.0"), DropReason::kBadAddress},
      {"to 127.0.0.1", to("127.0.0.1"), DropReason::kBadAddress},
      {"to 126.0.0.1", to("126.0.0.1"), DropReason::kNone, Layer::kTcp},
      {"to 128.0.0.1", to("128.0.0.1"), DropReason::kNone, Layer::kTcp},
      {"to a group", to("224.0.0.251"), DropReason::kNone, Layer::kTcp},
      {"to everyone", to("255.255.255.255"), DropReason::kNone, Layer::kTcp},
      {"land", from("192.0.2.10"), DropReason::kBadAddress},
      {"neighbour of land", from("192.0.2.11"), DropReason::kNone, Layer::kTcp},
  });
}

TEST(ParseTest, Ipv6Header) {  // RFC 8200 §3
  expect({
      {"39 bytes", kTcp6.truncate(14 + 39), DropReason::kTooShort},
      {"version 4", kTcp6.ip_version(4), DropReason::kBadVersion},
      {"payload longer than the frame", kTcp6.ip_length(21), DropReason::kBadLength},
      {"payload shorter than the frame", kTcp6.ip_length(19), DropReason::kBadTcpHeader},
      {"no payload", kTcp6.ip_length(0), DropReason::kBadTcpHeader},
      {"jumbogram", kTcp6.extension(0, {0xc2, 4, 0, 1, 0, 0}).ip_length(0), DropReason::kBadLength},
      {"unknown transport", kTcp6.protocol(132), DropReason::kNone, Layer::kIp},
      {"no next header", kTcp6.protocol(59), DropReason::kNone, Layer::kIp},
      {"ICMP over IPv6", kTcp6.protocol(1), DropReason::kNone, Layer::kIp},
      {"hop limit 0", kTcp6.ttl(0), DropReason::kNone, Layer::kTcp},
      {"traffic class", kTcp6.tos(0xff), DropReason::kNone, Layer::kTcp},
  });
}

TEST(ParseTest, Ipv6ExtensionHeaders) {
  for (const int type : {0, 43, 50, 51, 60, 135, 139, 140, 253, 254}) {
    const Parsed p = parse(kTcp6.extension(static_cast<uint8_t>(type), Bytes(6)));
    EXPECT_EQ(p.error, DropReason::kNone) << type;
    EXPECT_EQ(p.layer, Layer::kExtension) << type;
    EXPECT_EQ(p.protocol, type);
    EXPECT_EQ(p.destination, ip("2001:db8::10"));
    EXPECT_EQ(p.destination_port, 0);
  }
  EXPECT_EQ(parse(kUdp6.fragment(0, true)).layer, Layer::kFragment);
  EXPECT_EQ(parse(kUdp6.fragment(0, false)).layer, Layer::kFragment);  // atomic, RFC 6946
  EXPECT_EQ(parse(kUdp6.fragment(8191, false)).source, ip("2001:db8:1::7"));
}

TEST(ParseTest, Ipv6Addresses) {  // RFC 4291 §2.5, RFC 4862 §5.4.2
  const auto mapped_from = kTcp6.l3_at(8, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 1});
  const auto mapped_to = kTcp6.l3_at(24, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 1});
  expect({
      {"from a group", kTcp6.from("ff02::1"), DropReason::kBadAddress},
      {"from below the groups", kTcp6.from("feff::1"), DropReason::kNone, Layer::kTcp},
      {"to a group", kTcp6.to("ff02::1"), DropReason::kNone, Layer::kTcp},
      {"from ::1", kTcp6.from("::1"), DropReason::kBadAddress},
      {"to ::1", kTcp6.to("::1"), DropReason::kBadAddress},
      {"from ::2", kTcp6.from("::2"), DropReason::kNone, Layer::kTcp},
      {"to ::2", kTcp6.to("::2"), DropReason::kNone, Layer::kTcp},
      {"to ::", kTcp6.to("::"), DropReason::kBadAddress},
      {"TCP from ::", kTcp6.from("::"), DropReason::kBadAddress},
      {"UDP from ::", kUdp6.from("::"), DropReason::kBadAddress},
      {"fragment from ::", kUdp6.from("::").fragment(0, true), DropReason::kBadAddress},
      {"ICMPv6 from ::", kEcho6.from("::"), DropReason::kNone, Layer::kIcmp},
      {"ICMPv6 from :: to ::", kEcho6.from("::").to("::"), DropReason::kBadAddress},
      {"mapped source", mapped_from, DropReason::kBadAddress},
      {"mapped destination", mapped_to, DropReason::kBadAddress},
      {"land", kTcp6.from("2001:db8::10"), DropReason::kBadAddress},
      {"neighbour of land", kTcp6.from("2001:db8::11"), DropReason::kNone, Layer::kTcp},
  });
}

TEST(ParseTest, TcpHeader) {  // RFC 9293 §3.1
  for (const PacketBuilder& base : {kTcp4, kTcp6}) {
    const size_t l4 = base.l4_offset();
    const bool v4 = l4 == 34;
    const auto shortened = base.ip_length(v4 ? 39 : 19).truncate(l4 + 19);
    expect({
        {"19 bytes", shortened, DropReason::kBadTcpHeader},
        {"20 bytes", base, DropReason::kNone, Layer::kTcp},
        {"offset 0", base.data_offset(0), DropReason::kBadTcpHeader},
        {"offset 4", base.data_offset(4).payload_size(60), DropReason::kBadTcpHeader},
        {"offset 6 of 20 bytes", base.data_offset(6), DropReason::kBadTcpHeader},
        {"offset 6 of 23 bytes", base.data_offset(6).payload_size(3), DropReason::kBadTcpHeader},
        {"offset 6 of 24 bytes", base.data_offset(6).payload_size(4), DropReason::kNone, Layer::kTcp},
        {"offset 15 of 59 bytes", base.data_offset(15).payload_size(39), DropReason::kBadTcpHeader},
        {"offset 15 of 60 bytes", base.data_offset(15).payload_size(40), DropReason::kNone, Layer::kTcp},
        {"offset into the padding", base.data_offset(6).pad(90), DropReason::kBadTcpHeader},
        {"source port 0", base.ports(0, 80), DropReason::kBadPort},
        {"destination port 0", base.ports(40000, 0), DropReason::kBadPort},
        {"ports 1 and 65535", base.ports(1, 65535), DropReason::kNone, Layer::kTcp},
    });
    EXPECT_EQ(parse(base.tcp_options(Bytes(40, 1)).payload("hello")).l4_payload, 5);
  }
}

// All 64 combinations by the rule in words: SYN goes with neither FIN nor RST; without ACK only a SYN or a RST
// is sent, and a FIN never (RFC 9293 §3.10.7.4: "if the ACK bit is off, drop the segment").
TEST(ParseTest, TcpFlags) {
  const std::vector<unsigned> without_ack{kSyn, kSyn | kPsh, kSyn | kUrg, kSyn | kPsh | kUrg,
                                          kRst, kRst | kPsh, kRst | kUrg, kRst | kPsh | kUrg};
  for (unsigned flags = 0; flags < 64; ++flags) {
    bool good = std::find(without_ack.begin(), without_ack.end(), flags) != without_ack.end();
    if ((flags & kAck) != 0)
      good = (flags & (kSyn | kFin)) != (kSyn | kFin) && (flags & (kSyn | kRst)) != (kSyn | kRst);
    const Parsed p = parse(kTcp4.flags(flags));
    EXPECT_EQ(p.error, good ? DropReason::kNone : DropReason::kBadTcpFlags) << flags;
    EXPECT_EQ(p.tcp_flags, flags);
  }
  EXPECT_EQ(parse(kTcp4.flags(kEce | kCwr)).error, DropReason::kBadTcpFlags);
  EXPECT_EQ(parse(kTcp4.flags(kSyn | kEce | kCwr)).error, DropReason::kNone);  // RFC 3168 §6.1.1
}

TEST(ParseTest, SequenceLength) {
  EXPECT_EQ(parse(kTcp4.flags(kAck)).sequence_length(), 0u);
  EXPECT_EQ(parse(kTcp4.flags(kSyn)).sequence_length(), 1u);
  EXPECT_EQ(parse(kTcp4.flags(kFin | kAck).payload("abc")).sequence_length(), 4u);
}

TEST(ParseTest, UdpHeader) {  // RFC 768
  for (const PacketBuilder& base : {kUdp4, kUdp6}) {
    const size_t l4 = base.l4_offset();
    const auto shortened = base.ip_length(l4 == 34 ? 27 : 7).truncate(l4 + 7);
    expect({
        {"7 bytes", shortened, DropReason::kBadUdpLength},
        {"no payload", base.payload(""), DropReason::kNone, Layer::kUdp},
        {"length 7", base.udp_length(7), DropReason::kBadUdpLength},
        {"length 0", base.udp_length(0), DropReason::kBadUdpLength},
        {"length 8 of 13", base.udp_length(8), DropReason::kNone, Layer::kUdp},
        {"length 14 of 13", base.udp_length(14), DropReason::kBadUdpLength},
        {"length into the padding", base.udp_length(14).pad(90), DropReason::kBadUdpLength},
        {"source port 0", base.ports(0, 53), DropReason::kBadPort},
        {"destination port 0", base.ports(40000, 0), DropReason::kBadPort},
        {"no checksum", base.l4_checksum(0), DropReason::kNone, Layer::kUdp},
    });
    EXPECT_EQ(parse(base.udp_length(8)).l4_payload, 0);
  }
}

TEST(ParseTest, IcmpHeader) {
  expect({
      {"ICMP of 7 bytes", kEcho4.payload("").ip_length(27).truncate(41), DropReason::kBadIcmp},
      {"ICMP of 8 bytes", kEcho4.payload(""), DropReason::kNone, Layer::kIcmp},
      {"ICMPv6 of 7 bytes", kEcho6.payload("").ip_length(7).truncate(61), DropReason::kBadIcmp},
      {"ICMPv6 of 8 bytes", kEcho6.payload(""), DropReason::kNone, Layer::kIcmp},
      {"any type", kEcho4.icmp_type(255, 255), DropReason::kNone, Layer::kIcmp},
  });
}

TEST(ParseTest, Arp) {  // RFC 826
  expect({
      {"request", kArp, DropReason::kNone, Layer::kArp},
      {"padded", kArp.pad(60), DropReason::kNone, Layer::kArp},
      {"tagged", kArp.vlan(100), DropReason::kNone, Layer::kArp},
      {"27 bytes", kArp.truncate(14 + 27), DropReason::kTooShort},
      {"hardware type 6", kArp.l3_at(0, {0, 6}), DropReason::kBadArp},
      {"protocol type IPv6", kArp.l3_at(2, {0x86, 0xdd}), DropReason::kBadArp},
      {"hardware length 5", kArp.l3_at(4, {5}), DropReason::kBadArp},
      {"protocol length 16", kArp.l3_at(5, {16}), DropReason::kBadArp},
  });
  EXPECT_EQ(parse(kArp.vlan(100)).l3_offset, 18);
}

// What a frame loses at its end is missed, at whichever byte it ends.
TEST(ParseTest, TruncatedAnywhere) {
  const std::vector<PacketBuilder> kinds{kTcp4.payload("hello"),
                                         kTcp6.payload("hello"),
                                         kUdp4,
                                         kUdp6,
                                         kEcho4,
                                         kEcho6,
                                         kArp,
                                         kTcp4.vlan(100).tcp_options(Bytes(12, 1)),
                                         kUdp6.vlan(100),
                                         kTcp4.ip_options(Bytes(40, 1)),
                                         kUdp4.fragment(0, true),
                                         kUdp6.fragment(0, true),
                                         kTcp6.extension(0, Bytes(6)),
                                         neighbour_solicitation(kMac, "fe80::1", "2001:db8::2", kMac)};
  for (size_t kind = 0; kind < kinds.size(); ++kind) {
    const Bytes whole = kinds[kind].build();
    ASSERT_EQ(parse(whole).error, DropReason::kNone) << kind;
    for (size_t length = 0; length < whole.size(); ++length) {
      EXPECT_NE(parse(kinds[kind].truncate(length)).error, DropReason::kNone) << kind << " cut to " << length;
    }
  }
}

}  // namespace
}  // namespace margay::test
