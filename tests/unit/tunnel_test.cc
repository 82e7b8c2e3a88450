// SPDX-License-Identifier: Apache-2.0
// Outer headers and MSS, against frames that the packet builder makes from the RFCs with sums of its own.
#include "dataplane/core/tunnel.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

#include "dataplane/core/rewrite.h"
#include "tests/support/packet_builder.h"
#include "tests/support/seed.h"

namespace margay::dp {
namespace {

using test::Bytes;
using test::PacketBuilder;
using test::Random;

constexpr uint16_t kRoom = 128;

// A frame in a buffer with room in front and none behind, as parsed.
struct Framed {
  explicit Framed(const PacketBuilder& p) : buffer(kRoom) {
    const Bytes frame = p.build();
    buffer.insert(buffer.end(), frame.begin(), frame.end());
    packet.data = buffer.data() + kRoom;
    packet.length = static_cast<uint16_t>(frame.size());
    packet.headroom = kRoom;
    parsed = parse(packet);
  }
  Bytes l3() const { return {packet.data + parsed.l3_offset, packet.data + packet.length}; }

  Bytes buffer;
  Packet packet;
  Parsed parsed;
};

std::string in_text(const IpAddress& address, uint32_t port) {
  const std::string text = address.format();
  return (address.is_v4() ? text : "[" + text + "]") + ":" + std::to_string(port);
}

// The outer packet in the RFCs' words; `inner` as it leaves.
PacketBuilder outer_of(const Bytes& inner, const Tunnel& tunnel, const IpAddress& to, uint64_t hash) {
  const bool inner_v4 = inner[0] >> 4 == 4;
  const uint8_t protocol = inner_v4 ? 4 : 41;
  const uint8_t tos = inner_v4 ? inner[1] : static_cast<uint8_t>(inner[0] << 4 | inner[1] >> 4);
  Bytes payload = inner;
  PacketBuilder outer = PacketBuilder::start(PacketBuilder::Kind::kRaw, tunnel.source.format(), to.format());
  if (tunnel.udp_port != 0) {
    if (tunnel.gue_header) payload.insert(payload.begin(), {0, protocol, 0, 0});
    outer = test::udp(in_text(tunnel.source, static_cast<uint32_t>(49152 + hash % 16384)),
                      in_text(to, from_wire16(tunnel.udp_port)));
    if (!tunnel.udp_checksum) outer = outer.l4_checksum(0);
  } else {
    outer = outer.protocol(protocol);
  }
  outer = outer.payload(payload).ttl(64).tos(tos);
  if (to.is_v4()) return outer.dont_fragment();
  auto label = static_cast<uint32_t>(hash / 16384 % (1 << 20));
  if (label == 0) label = 1;
  return outer.l3_at(1, {static_cast<uint8_t>(uint32_t{tos} << 4 | label >> 16), static_cast<uint8_t>(label >> 8),
                         static_cast<uint8_t>(label)});
}

Bytes encapsulated(const PacketBuilder& inner, const Tunnel& tunnel, const IpAddress& to, uint64_t hash) {
  Framed framed(inner);
  EXPECT_EQ(framed.parsed.error, DropReason::kNone);
  encapsulate(framed.packet, framed.parsed, tunnel, to, hash);
  EXPECT_EQ(framed.packet.headroom, kRoom - tunnel.bytes);
  EXPECT_EQ(framed.parsed.ethertype, to.is_v4() ? 0x0800 : 0x86dd);
  EXPECT_EQ(framed.packet.data[framed.parsed.l3_offset - 2], framed.parsed.ethertype >> 8);
  EXPECT_EQ(framed.packet.data[framed.parsed.l3_offset - 1], framed.parsed.ethertype & 0xff);
  return framed.l3();
}

Tunnel tunnel(Mode mode, const IpAddress& source, const IpAddress& to, const GueConfig& gue = {}) {
  SciPolicy sci;
  sci.mode = mode;
  sci.gue = gue;
  Tunnel t = tunnel_of(sci, to);
  t.source = source;
  return t;
}

const PacketBuilder kDatagram = test::udp("198.51.100.7:40000", "192.0.2.10:53").payload("query");
const IpAddress kSource4 = test::ip("10.1.0.2"), kTo4 = test::ip("10.1.0.11");
const IpAddress kSource6 = test::ip("2001:db8:1::2"), kTo6 = test::ip("2001:db8:1::11");

TEST(Tunnel, AddsWhatTheRfcsSay) {
  const GueConfig with_header{6080, 0, {}}, without{6080, 1, {}};
  EXPECT_EQ(tunnel(Mode::kNat, kSource4, kTo4).bytes, 0);
  EXPECT_EQ(tunnel(Mode::kL2Dsr, kSource4, kTo4).bytes, 0);
  EXPECT_EQ(tunnel(Mode::kIpip, kSource4, kTo4).bytes, 20);
  EXPECT_EQ(tunnel(Mode::kIpip, kSource6, kTo6).bytes, 40);
  EXPECT_EQ(tunnel(Mode::kGue, kSource4, kTo4, with_header).bytes, 20 + 8 + 4);
  EXPECT_EQ(tunnel(Mode::kGue, kSource6, kTo6, with_header).bytes, 40 + 8 + 4);
  EXPECT_EQ(tunnel(Mode::kGue, kSource4, kTo4, without).bytes, 20 + 8);
  EXPECT_EQ(tunnel(Mode::kGue, kSource6, kTo6, without).bytes, 40 + 8);
}

// Written out by hand: 4in4 of a datagram of 33 bytes. Checksum: ~(45b9 + 35 + 4000 + 4004 + a01 + 2 + a01 + b).
TEST(Tunnel, Ipv4InIpv4ByteByByte) {
  const Bytes is = encapsulated(kDatagram.tos(0xb9), tunnel(Mode::kIpip, kSource4, kTo4), kTo4, 0x123456789abcdef0);
  const Bytes outer = {0x45, 0xb9, 0, 53, 0, 0, 0x40, 0, 64, 4, 0x25, 0xfe, 10, 1, 0, 2, 10, 1, 0, 11};
  ASSERT_EQ(is.size(), 53u);
  EXPECT_EQ(test::hex({is.begin(), is.begin() + 20}), test::hex(outer));
  EXPECT_EQ(test::hex({is.begin() + 20, is.end()}), test::hex(kDatagram.tos(0xb9).ip_packet()));
}

TEST(Tunnel, PortAndLabelAtTheEndsOfTheirRanges) {
  for (const uint64_t hash :
       {uint64_t{0}, uint64_t{0x3fff}, uint64_t{1} << 14, uint64_t{0xfffff} << 14, ~uint64_t{0}}) {
    for (const bool v4 : {true, false}) {
      const IpAddress& to = v4 ? kTo4 : kTo6;
      const Tunnel t = tunnel(Mode::kGue, v4 ? kSource4 : kSource6, to);
      EXPECT_EQ(test::hex(encapsulated(kDatagram, t, to, hash)),
                test::hex(outer_of(kDatagram.ip_packet(), t, to, hash).ip_packet()));
    }
  }
  const Bytes v6 = encapsulated(kDatagram, tunnel(Mode::kGue, kSource6, kTo6), kTo6, 0);
  EXPECT_EQ(v6[3], 1) << "flow label 0 says that there is none";
  EXPECT_EQ(v6[40] << 8 | v6[41], 49152);
  const Bytes last = encapsulated(kDatagram, tunnel(Mode::kGue, kSource6, kTo6), kTo6, ~uint64_t{0});
  EXPECT_EQ(last[40] << 8 | last[41], 65535);
  EXPECT_EQ((last[1] & 0xf) << 16 | last[2] << 8 | last[3], 0xfffff);
}

PacketBuilder random_packet(Random& random) {
  const bool v4 = random.one_in(2), tcp = random.one_in(2);
  const auto address = [&] {
    IpAddress a = v4 ? IpAddress::v4(to_wire32(0x0a000000u + random.below(1 << 24))) : test::ip("2001:db8::");
    if (!v4) a.bytes[15] = static_cast<uint8_t>(1 + random.below(255));
    return a;
  };
  const IpAddress from = address();
  IpAddress to = address();
  while (to == from) to = address();
  const std::string source = in_text(from, 1 + random.below(65535));
  const std::string destination = in_text(to, 1 + random.below(65535));
  PacketBuilder p =
      tcp ? test::tcp(source, destination).seq(static_cast<uint32_t>(random.next())) : test::udp(source, destination);
  Bytes payload(random.one_in(4) ? random.below(4) : random.below(1400));
  for (uint8_t& byte : payload) byte = static_cast<uint8_t>(random.next());
  p = p.payload(payload).tos(static_cast<uint8_t>(random.below(256)));
  if (v4) p = p.id(static_cast<uint16_t>(random.below(65536)));
  if (v4 && random.one_in(3)) p = p.ip_options(Bytes(1 + random.below(40), 1));
  if (tcp && random.one_in(3)) p = p.tcp_options(Bytes(1 + random.below(40), 1));
  if (!tcp && v4 && random.one_in(4)) p = p.l4_checksum(0);
  if (!tcp && random.one_in(4)) p = p.udp_length(static_cast<uint16_t>(8 + random.below(payload.size() + 1)));
  if (random.one_in(3)) p = p.vlan(static_cast<uint16_t>(1 + random.below(4094)));
  return random.one_in(3) ? p.pad(1600) : p;
}

// Of a datagram that is shorter than its packet, the builder sums up too much; what is inside is not the matter here.
PacketBuilder with_right_checksum(const PacketBuilder& p) {
  Framed framed(p);
  if (framed.parsed.layer != Layer::kUdp) return p;
  const Bytes l3 = framed.l3();
  const size_t l4 = framed.parsed.l4_offset - framed.parsed.l3_offset;
  return framed.parsed.l4_payload + 8u == framed.parsed.ip_length - l4 ? p : p.l4_at(6, {0x12, 0x34});
}

TEST(Tunnel, RandomPacketsInEveryTunnel) {
  const uint64_t seed = test::test_seed();
  SCOPED_TRACE(test::seed_text(seed));
  Random random(seed);
  for (int round = 0; round < 20'000; ++round) {
    const PacketBuilder packet = with_right_checksum(random_packet(random));
    const bool v4 = random.one_in(2);
    const IpAddress& to = v4 ? kTo4 : kTo6;
    const GueConfig gue{static_cast<uint16_t>(1 + random.below(65535)), static_cast<uint8_t>(random.below(2)),
                        random.one_in(3) ? UdpChecksum::kZero : UdpChecksum::kComputed};
    const Tunnel t = tunnel(random.one_in(2) ? Mode::kIpip : Mode::kGue, v4 ? kSource4 : kSource6, to, gue);
    const uint64_t hash = random.next();
    const Framed before(packet);
    Bytes inner = before.l3();
    inner.resize(before.parsed.ip_length);
    const Bytes expected = outer_of(inner, t, to, hash).ip_packet();
    ASSERT_EQ(test::hex(encapsulated(packet, t, to, hash)), test::hex(expected)) << "inner:\n" << test::hex(inner);
  }
}

TEST(Tunnel, FlowsSpreadOverPortsAndLabels) {
  Random random(1);
  std::array<int, 16> by_port{}, by_label{};
  constexpr int kFlows = 16'000;
  for (int n = 0; n < kFlows; ++n) {
    const Bytes outer = encapsulated(kDatagram, tunnel(Mode::kGue, kSource6, kTo6), kTo6, random.next());
    ++by_port[static_cast<unsigned>(outer[40] << 8 | outer[41]) % 16];
    ++by_label[outer[3] % 16];
  }
  for (size_t k = 0; k < 16; ++k) {  // a thousand each, by five standard deviations
    EXPECT_NEAR(by_port[k], kFlows / 16, 155);
    EXPECT_NEAR(by_label[k], kFlows / 16, 155);
  }
}

// Options with an MSS somewhere, even and odd places; the checksum is right before and after.
TEST(LimitMss, RandomOptions) {
  const uint64_t seed = test::test_seed();
  SCOPED_TRACE(test::seed_text(seed));
  Random random(seed);
  for (int round = 0; round < 20'000; ++round) {
    const auto announced = static_cast<uint16_t>(random.below(65536)),
               limit = static_cast<uint16_t>(random.below(65536));
    Bytes front;
    while (random.one_in(2) && front.size() < 30) {
      const Bytes pieces[] = {{1}, {4, 2}, {3, 3, 7}, {8, 5, 1, 2, 3}};
      const Bytes& piece = pieces[random.below(4)];
      front.insert(front.end(), piece.begin(), piece.end());
    }
    const auto options = [&](uint16_t mss) {
      Bytes all = front;
      all.insert(all.end(), {2, 4, static_cast<uint8_t>(mss >> 8), static_cast<uint8_t>(mss)});
      return all;
    };
    const PacketBuilder syn =
        test::tcp("[2001:db8::7]:4000", "[2001:db8::10]:80").flags(test::kSyn).payload_size(random.below(9));
    Framed framed(syn.tcp_options(options(announced)));
    limit_mss(framed.packet, framed.parsed, limit);
    ASSERT_EQ(test::hex(framed.l3()), test::hex(syn.tcp_options(options(std::min(announced, limit))).ip_packet()));
  }
}

// Bytes that are no options: none is read or written outside of the header.
TEST(LimitMss, RandomBytes) {
  const uint64_t seed = test::test_seed();
  SCOPED_TRACE(test::seed_text(seed));
  Random random(seed);
  for (int round = 0; round < 20'000; ++round) {
    Bytes options(4 * random.below(11));
    for (uint8_t& byte : options) byte = static_cast<uint8_t>(random.one_in(2) ? random.below(6) : random.next());
    Framed framed(
        test::tcp("198.51.100.7:4000", "192.0.2.10:80").flags(test::kSyn).tcp_options(options).payload_size(0));
    const Bytes before = framed.l3();
    limit_mss(framed.packet, framed.parsed, 1);
    const Bytes after = framed.l3();
    ASSERT_TRUE(std::equal(before.begin(), before.begin() + 36, after.begin()));
    const Bytes segment(after.begin() + 20, after.end());
    Bytes summed(before.begin() + 12, before.begin() + 20);
    summed.insert(summed.end(), {0, 6, 0, static_cast<uint8_t>(segment.size())});
    summed.insert(summed.end(), segment.begin(), segment.end());
    ASSERT_EQ(test::rfc1071(summed), 0) << test::hex(after);
  }
}

}  // namespace
}  // namespace margay::dp
