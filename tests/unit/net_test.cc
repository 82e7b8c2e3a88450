// SPDX-License-Identifier: Apache-2.0
#include "common/net.h"

#include <gtest/gtest.h>

namespace margay {
namespace {

template <class T>
std::string parsed_or_error(std::string_view text) {
  const auto result = T::parse(text);
  return result ? result->format() : result.error().message;
}

struct TextRow {
  std::string_view text;
  std::string_view expected;  // the format of what was parsed, or the error line
};

TEST(NetTest, ByteOrderOfTheWire) {
  uint8_t bytes[4];
  const uint16_t v16 = to_wire16(0x1234);
  std::memcpy(bytes, &v16, 2);
  EXPECT_EQ(bytes[0], 0x12);
  EXPECT_EQ(bytes[1], 0x34);
  const uint32_t v32 = to_wire32(0x12345678);
  std::memcpy(bytes, &v32, 4);
  EXPECT_EQ(bytes[0], 0x12);
  EXPECT_EQ(bytes[3], 0x78);
  EXPECT_EQ(from_wire16(v16), 0x1234);
  EXPECT_EQ(from_wire32(v32), 0x12345678u);
}

TEST(NetTest, MacAddressText) {
  const std::string hint = " is no MAC address, expected six pairs of hex digits like 02:00:00:00:0f:00";
  EXPECT_EQ(parsed_or_error<MacAddress>("02:00:00:00:0f:00"), "02:00:00:00:0f:00");
  EXPECT_EQ(parsed_or_error<MacAddress>("FF:aB:09:90:a0:0a"), "ff:ab:09:90:a0:0a");
  for (const std::string text : {"", "02:00:00:00:0f", "02:00:00:00:0f:000", "02-00-00-00-0f-00", "02:00:00:00:0f:0g",
                                 "2:00:00:00:0f:00 ", "+2:00:00:00:0f:00", "02:00:00:00:0f:-1", "0x:00:00:00:0f:00"}) {
    EXPECT_EQ(parsed_or_error<MacAddress>(text), '"' + text + '"' + hint);
  }
}

TEST(NetTest, MacAddressKinds) {
  EXPECT_TRUE(kBroadcastMac.is_group());
  EXPECT_TRUE((MacAddress{{0x01, 0, 0x5e, 0, 0, 1}}).is_group());
  EXPECT_FALSE((MacAddress{{0x02, 0, 0, 0, 0, 1}}).is_group());
  EXPECT_TRUE(MacAddress{}.is_zero());
  EXPECT_FALSE((MacAddress{{0, 0, 0, 0, 0, 1}}).is_zero());
}

TEST(NetTest, IpAddressText) {
  const std::string hint = " is no IP address, expected one like 192.0.2.1 or 2001:db8::1";
  constexpr TextRow kGood[] = {
      {"192.0.2.1", "192.0.2.1"},
      {"0.0.0.0", "0.0.0.0"},
      {"255.255.255.255", "255.255.255.255"},
      {"2001:DB8:0:0:0:0:0:1", "2001:db8::1"},
      {"::", "::"},
      {"::1", "::1"},
      {"fe80::1:0:0:2", "fe80::1:0:0:2"},
      {"::ffff:192.0.2.1", "\"::ffff:192.0.2.1\" is an IPv4-mapped IPv6 address, expected it written as 192.0.2.1"},
  };
  for (const TextRow& row : kGood) EXPECT_EQ(parsed_or_error<IpAddress>(row.text), row.expected);
  for (const std::string text : {"", "192.0.2", "192.0.2.256", "192.0.2.01", "192.0.2.1 ", " 192.0.2.1", "192.0.2.1/24",
                                 "2001:db8::1::2", "2001:db8:0:0:0:0:0:0:1", "fe80::1%eth1", "[::1]", "host"}) {
    EXPECT_EQ(parsed_or_error<IpAddress>(text), '"' + text + '"' + hint);
  }
  EXPECT_FALSE(IpAddress::parse(std::string_view("192.0.2.1\0x", 11)));
  EXPECT_FALSE(IpAddress::parse(std::string_view("::1\0", 4)));
}

TEST(NetTest, IpAddressBytesAndKinds) {
  const IpAddress four = *IpAddress::parse("192.0.2.1");
  EXPECT_TRUE(four.is_v4());
  EXPECT_EQ(four.bytes, (std::array<uint8_t, 16>{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 1}));
  EXPECT_EQ(four.v4_wire(), to_wire32(0xc0000201));
  const IpAddress six = *IpAddress::parse("2001:db8::1");
  EXPECT_FALSE(six.is_v4());
  EXPECT_EQ(six.bytes[0], 0x20);
  EXPECT_EQ(six.bytes[15], 1);

  const auto is_multicast = [](std::string_view text) { return IpAddress::parse(text)->is_multicast(); };
  EXPECT_FALSE(is_multicast("223.255.255.255"));
  EXPECT_TRUE(is_multicast("224.0.0.0"));
  EXPECT_TRUE(is_multicast("255.255.255.255"));
  EXPECT_FALSE(is_multicast("feff::1"));
  EXPECT_TRUE(is_multicast("ff02::1"));
  EXPECT_TRUE(IpAddress::parse("0.0.0.0")->is_unspecified());
  EXPECT_TRUE(IpAddress::parse("::")->is_unspecified());
  EXPECT_FALSE(IpAddress::parse("0.0.0.1")->is_unspecified());
  EXPECT_FALSE(IpAddress::parse("::1")->is_unspecified());
}

// RFC 1122 §3.2.1.3, RFC 6890 (0.0.0.0/8, 127.0.0.0/8, 240.0.0.0/4), RFC 4291 §2.4.
TEST(NetTest, WhatMayBeAHost) {
  for (const char* text : {"1.0.0.0", "126.255.255.255", "128.0.0.0", "223.255.255.255", "169.254.0.1", "::2",
                           "1::", "fe80::1", "feff::1", "2001:db8::1"}) {
    EXPECT_TRUE(IpAddress::parse(text)->may_be_host()) << text;
  }
  for (const char* text : {"0.0.0.0", "0.255.255.255", "127.0.0.0", "127.255.255.255", "224.0.0.0", "240.0.0.1",
                           "255.255.255.255", "::", "::1", "ff00::", "ff02::1"}) {
    EXPECT_FALSE(IpAddress::parse(text)->may_be_host()) << text;
  }
}

TEST(NetTest, LinkLocal) {  // RFC 3927 §2.1, RFC 4291 §2.5.6
  for (const char* text : {"169.254.0.0", "169.254.255.255", "fe80::", "febf:ffff::1"}) {
    EXPECT_TRUE(IpAddress::parse(text)->is_link_local()) << text;
  }
  for (const char* text : {"169.253.255.255", "169.255.0.0", "168.254.0.1", "fe7f::1", "fec0::1", "ff80::1"}) {
    EXPECT_FALSE(IpAddress::parse(text)->is_link_local()) << text;
  }
}

TEST(NetTest, AddressesThatAPrefixReserves) {  // RFC 1122 §3.2.1.3, RFC 3021
  struct Row {
    const char *prefix, *address;
    bool reserved;
  };
  constexpr Row kRows[] = {
      {"192.0.2.2/24", "192.0.2.0", true},     {"192.0.2.2/24", "192.0.2.255", true},
      {"192.0.2.2/24", "192.0.2.1", false},    {"192.0.2.2/24", "192.0.2.254", false},
      {"192.0.2.2/24", "192.0.3.0", false},    {"10.1.2.3/9", "10.0.0.0", true},
      {"10.1.2.3/9", "10.127.255.255", true},  {"10.1.2.3/9", "10.128.0.0", false},
      {"10.1.2.3/9", "10.1.2.255", false},     {"192.0.2.5/30", "192.0.2.4", true},
      {"192.0.2.5/30", "192.0.2.7", true},     {"192.0.2.4/31", "192.0.2.4", false},
      {"192.0.2.4/31", "192.0.2.5", false},    {"192.0.2.4/32", "192.0.2.4", false},
      {"2001:db8::1/64", "2001:db8::", false}, {"2001:db8::1/64", "192.0.2.0", false},
      {"10.0.0.1/0", "255.255.255.255", true},
  };
  for (const Row& row : kRows) {
    EXPECT_EQ(Prefix::parse(row.prefix)->reserves(*IpAddress::parse(row.address)), row.reserved)
        << row.address << " in " << row.prefix;
  }
}

TEST(NetTest, PrefixText) {
  constexpr TextRow kRows[] = {
      {"192.0.2.2/24", "192.0.2.2/24"},
      {"0.0.0.0/0", "0.0.0.0/0"},
      {"192.0.2.2/32", "192.0.2.2/32"},
      {"2001:db8::2/128", "2001:db8::2/128"},
      {"192.0.2.2", "\"192.0.2.2\" has no prefix length, expected one like 192.0.2.2/24 or 2001:db8::2/64"},
      {"192.0.2.2/33", "\"192.0.2.2/33\" has a bad prefix length, expected 0 to 32"},
      {"192.0.2.2/", "\"192.0.2.2/\" has a bad prefix length, expected 0 to 32"},
      {"192.0.2.2/-1", "\"192.0.2.2/-1\" has a bad prefix length, expected 0 to 32"},
      {"192.0.2.2/24 ", "\"192.0.2.2/24 \" has a bad prefix length, expected 0 to 32"},
      {"2001:db8::2/129", "\"2001:db8::2/129\" has a bad prefix length, expected 0 to 128"},
      {"x/24", "\"x\" is no IP address, expected one like 192.0.2.1 or 2001:db8::1"},
  };
  for (const TextRow& row : kRows) EXPECT_EQ(parsed_or_error<Prefix>(row.text), row.expected);
}

TEST(NetTest, PrefixContains) {
  struct Row {
    std::string_view prefix, address;
    bool inside;
  };
  constexpr Row kRows[] = {
      {"192.0.2.2/24", "192.0.2.255", true},
      {"192.0.2.2/24", "192.0.3.0", false},
      {"192.0.2.2/24", "192.0.1.255", false},
      {"192.0.2.2/32", "192.0.2.2", true},
      {"192.0.2.2/32", "192.0.2.3", false},
      {"0.0.0.0/0", "203.0.113.9", true},
      {"192.0.2.128/25", "192.0.2.128", true},
      {"192.0.2.128/25", "192.0.2.127", false},
      {"192.0.2.8/31", "192.0.2.9", true},
      {"192.0.2.8/31", "192.0.2.10", false},
      {"0.0.0.0/0", "2001:db8::1", false},
      {"::/0", "192.0.2.1", false},
      {"::/0", "2001:db8::1", true},
      {"2001:db8::/64", "2001:db8::ffff:ffff:ffff:ffff", true},
      {"2001:db8::/64", "2001:db8:0:1::", false},
      {"2001:db8::8/127", "2001:db8::9", true},
      {"2001:db8::8/127", "2001:db8::a", false},
      {"2001:db8::1/128", "2001:db8::1", true},
      {"2001:db8::1/128", "2001:db8::0", false},
  };
  for (const Row& row : kRows) {
    EXPECT_EQ(Prefix::parse(row.prefix)->contains(*IpAddress::parse(row.address)), row.inside)
        << row.prefix << ' ' << row.address;
  }
}

TEST(NetTest, AddressPortText) {
  const std::string_view hint = " is no address with port, expected one like 192.0.2.10:80 or [2001:db8::10]:80";
  constexpr TextRow kRows[] = {
      {"192.0.2.10:80", "192.0.2.10:80"},
      {"192.0.2.10:65535", "192.0.2.10:65535"},
      {"[2001:db8::10]:1", "[2001:db8::10]:1"},
      {"192.0.2.10:0", "\"192.0.2.10:0\" has a bad port, expected 1 to 65535"},
      {"192.0.2.10:65536", "\"192.0.2.10:65536\" has a bad port, expected 1 to 65535"},
      {"192.0.2.10:", "\"192.0.2.10:\" has a bad port, expected 1 to 65535"},
      {"192.0.2.10:+80", "\"192.0.2.10:+80\" has a bad port, expected 1 to 65535"},
  };
  for (const TextRow& row : kRows) EXPECT_EQ(parsed_or_error<AddressPort>(row.text), row.expected);
  for (const std::string text : {"", ":80", "192.0.2.10", "2001:db8::10:80", "[192.0.2.10]:80", "[2001:db8::10]",
                                 "[2001:db8::10:80", "[]:80", "[:80", "host:80"}) {
    EXPECT_EQ(parsed_or_error<AddressPort>(text), '"' + text + '"' + std::string(hint));
  }
}

TEST(NetTest, EndpointText) {
  EXPECT_EQ((Endpoint{*IpAddress::parse("192.0.2.10"), 80, Protocol::kTcp}).format(), "192.0.2.10:80/tcp");
  EXPECT_EQ((Endpoint{*IpAddress::parse("2001:db8::10"), 53, Protocol::kUdp}).format(), "[2001:db8::10]:53/udp");
}

}  // namespace
}  // namespace margay
