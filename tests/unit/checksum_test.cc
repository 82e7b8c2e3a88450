// SPDX-License-Identifier: Apache-2.0
#include "dataplane/core/checksum.h"

#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/packet_builder.h"
#include "tests/support/seed.h"

namespace margay::test {
namespace {

using dp::ChecksumDelta;

// The checksum as it stands in a packet, against the host-order value of a document.
uint16_t in_packet(uint16_t host) { return to_wire16(host); }

uint16_t read16(const Bytes& bytes, size_t at) {
  uint16_t v;
  std::memcpy(&v, &bytes[at], 2);
  return v;
}

TEST(ChecksumTest, ExampleOfRfc1071) {  // §3: the words sum to 0xddf2
  const Bytes bytes{0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7};
  EXPECT_EQ(dp::fold(dp::sum_bytes(bytes)), in_packet(0x220d));
}

TEST(ChecksumTest, EmptyAndOddLengths) {
  EXPECT_EQ(dp::fold(dp::sum_bytes({})), 0xffff);
  EXPECT_EQ(dp::fold(dp::sum_bytes(Bytes{0x12})), in_packet(0xedff));
  EXPECT_EQ(dp::fold(dp::sum_bytes(Bytes{0x12, 0x34, 0x56})), in_packet(0x97cb));
}

TEST(ChecksumTest, SumsChain) {
  const Bytes whole{0xff, 0xff, 0xfe, 0x01, 0x80, 0x00, 0x7f, 0xff};
  const std::span<const uint8_t> all(whole);
  EXPECT_EQ(dp::fold(dp::sum_bytes(all.subspan(2), dp::sum_bytes(all.first(2)))), dp::fold(dp::sum_bytes(all)));
}

TEST(ChecksumTest, FoldsTheLargestSum) {
  EXPECT_EQ(dp::fold(~uint64_t{0}), 0);  // 2^64 - 1 is a multiple of 2^16 - 1
  EXPECT_EQ(dp::fold(0xffff'ffff'ffff'0000), 0);
  EXPECT_EQ(dp::fold(0xffff'0000'0001), uint16_t(~1u));
}

TEST(ChecksumTest, EveryLengthAgreesWithThePlainLoop) {
  std::mt19937_64 random(1);
  Bytes bytes;
  for (size_t length = 0; length < 200; ++length) {
    EXPECT_EQ(dp::fold(dp::sum_bytes(bytes)), in_packet(rfc1071(bytes))) << length;
    bytes.push_back(static_cast<uint8_t>(random()));
  }
}

TEST(ChecksumTest, PseudoHeaders) {
  for (const auto& packet : {tcp("198.51.100.7:40000", "192.0.2.10:80").payload_size(33),
                             tcp("[2001:db8:1::7]:40000", "[2001:db8::10]:80").payload_size(33)}) {
    const Bytes frame = packet.build();
    const std::span<const uint8_t> segment = std::span(frame).subspan(packet.l4_offset());
    const bool v4 = packet.l4_offset() == 34;
    const auto sum =
        dp::sum_pseudo_header(ip(v4 ? "198.51.100.7" : "2001:db8:1::7"), ip(v4 ? "192.0.2.10" : "2001:db8::10"), 6,
                              static_cast<uint32_t>(segment.size()));
    EXPECT_EQ(dp::fold(dp::sum_bytes(segment, sum)), 0);  // a right checksum in place sums to all ones
  }
}

TEST(ChecksumTest, ExampleOfRfc1624) {  // §4: 0xdd2f with 0x5555 -> 0x3285 becomes 0x0000, not 0xffff
  ChecksumDelta delta;
  delta.change16(in_packet(0x5555), in_packet(0x3285));
  EXPECT_EQ(delta.apply(in_packet(0xdd2f)), 0x0000);
}

TEST(ChecksumTest, NoChangeChangesNothing) {
  ChecksumDelta delta;
  for (uint32_t checksum = 0; checksum < 0x10000; ++checksum) {
    ASSERT_EQ(delta.apply(static_cast<uint16_t>(checksum)), checksum);
  }
  delta.change16(0xabcd, 0xabcd);
  delta.change32(0x01020304, 0x01020304);
  for (uint32_t checksum = 0; checksum < 0xffff; ++checksum) {
    ASSERT_EQ(delta.apply(static_cast<uint16_t>(checksum)), checksum);
  }
}

TEST(ChecksumTest, UdpCornerValues) {  // RFC 768: 0 says that none was sent, a computed 0 is sent as 0xffff
  ChecksumDelta delta;
  delta.change16(in_packet(0x5555), in_packet(0x3285));
  EXPECT_EQ(delta.apply_udp(0), 0);
  EXPECT_EQ(delta.apply_udp(in_packet(0xdd2f)), 0xffff);
  EXPECT_EQ(delta.apply_udp(in_packet(0xdd30)), in_packet(0x0001));
  EXPECT_EQ(delta.apply_udp(0xffff), in_packet(0x22d0));  // 0xffff stands for 0: 0 - 0x3285 + 0x5555
}

// An update in place gives what the whole packet's checksum gives, whatever was changed.
TEST(ChecksumTest, UpdatesAgreeWithWholeSums) {
  const uint64_t seed = test_seed();
  SCOPED_TRACE(seed_text(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 20'000; ++round) {
    const bool v4 = random() % 2 == 0;
    const std::string client = v4 ? "198.51.100.7:" : "[2001:db8:1::7]:";
    const std::string before = v4 ? "192.0.2." : "[2001:db8::";
    const std::string after = v4 ? "10.1.0." : "[2001:db8:aaaa:bbbb:cccc:dddd:ffff:";
    const auto port = [&] { return (v4 ? ":" : "]:") + std::to_string(1 + random() % 65535); };
    const auto host = [&] { return std::to_string(random() % 256); };
    const std::string old_host = host(), new_host = host(), old_port = port(), new_port = port();
    const auto packet = udp(client + "4000", before + old_host + old_port)
                            .payload({static_cast<uint8_t>(random()), static_cast<uint8_t>(random())});
    const auto changed = packet.to(after + new_host + new_port);
    ChecksumDelta delta;
    const size_t at = packet.l4_offset();
    const Bytes old_frame = packet.build(), new_frame = changed.build();
    delta.change(ip((v4 ? before : before.substr(1)) + old_host), ip((v4 ? after : after.substr(1)) + new_host));
    delta.change16(read16(old_frame, at + 2), read16(new_frame, at + 2));
    ASSERT_EQ(delta.apply_udp(read16(old_frame, at + 6)), read16(new_frame, at + 6));
  }
}

TEST(ChecksumTest, Change32) {
  const Bytes before{1, 2, 3, 4, 0xff, 0xfe, 0xfd, 0xfc}, after{9, 8, 7, 6, 0xff, 0xfe, 0xfd, 0xfc};
  uint32_t from, to;
  std::memcpy(&from, &before[0], 4);
  std::memcpy(&to, &after[0], 4);
  ChecksumDelta delta;
  delta.change32(from, to);
  EXPECT_EQ(delta.apply(dp::fold(dp::sum_bytes(before))), in_packet(rfc1071(after)));
}

}  // namespace
}  // namespace margay::test
