// SPDX-License-Identifier: Apache-2.0
#include "control/security/names.h"

#include <gtest/gtest.h>

#include <string>

namespace margay::security {
namespace {

// D-16; the encoding is RFC 3986's (2.1, 2.3): a colon is %3A.
TEST(Names, OfAnSci) {
  const Name name{.kind = Kind::kSci, .identity = "188.3.67.3:67", .cs_id = "ARS"};
  EXPECT_EQ(name.uri(), "cats:sci/ARS/188.3.67.3%3A67");
  const auto parsed = Name::parse("cats:sci/ARS/188.3.67.3%3A67");
  ASSERT_TRUE(parsed);
  EXPECT_EQ(*parsed, name);
}

TEST(Names, OfTheOthers) {
  EXPECT_EQ((Name{.kind = Kind::kCSma, .identity = "site 1/a"}.uri()), "cats:c-sma/site%201%2Fa");
  EXPECT_EQ((Name{.kind = Kind::kCPs, .identity = "ps"}.uri()), "cats:c-ps/ps");
  const auto parsed = Name::parse("cats:c-ps/a%2fb");
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->kind, Kind::kCPs);
  EXPECT_EQ(parsed->identity, "a/b");
}

TEST(Names, EveryByteThatMayBeInOneComesBack) {
  std::string all;
  for (int c = 0x20; c < 0x100; ++c) {
    if (c != 0x7f) all += static_cast<char>(c);
  }
  const Name name{.kind = Kind::kSci, .identity = all, .cs_id = "%2F/"};
  const auto parsed = Name::parse(name.uri());
  ASSERT_TRUE(parsed) << name.uri();
  EXPECT_EQ(*parsed, name);
}

TEST(Names, WhatRfc3986PermitsInASegmentStandsForItself) {
  const auto parsed = Name::parse("cats:sci/a@b/2001:db8::1=80");
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->cs_id, "a@b");
  EXPECT_EQ(parsed->identity, "2001:db8::1=80");
}

TEST(Names, AreOneTo255Bytes) {
  EXPECT_TRUE(Name::parse("cats:c-sma/" + std::string(255, 'x')));
  EXPECT_FALSE(Name::parse("cats:c-sma/" + std::string(256, 'x')));
  EXPECT_FALSE(Name::parse("cats:c-sma/"));
  EXPECT_FALSE(Name::parse("cats:sci//x"));
  EXPECT_FALSE(Name::parse("cats:sci/x/"));
}

TEST(Names, Refused) {
  using namespace std::string_literals;
  for (const std::string& uri : {""s,
                                 "cats"s,
                                 "cats:"s,
                                 "cats:sci"s,
                                 "cats:sci/"s,
                                 "cats:sci/x"s,
                                 "cats:c-sma"s,
                                 "cats:c-sma/a/b"s,
                                 "cats:sci/a/b/c"s,
                                 "cats:SCI/a/b"s,
                                 "CATS:sci/a/b"s,
                                 "cats:x/a"s,
                                 "cats:c-ps/a%"s,
                                 "cats:c-ps/a%4"s,
                                 "cats:c-ps/a%4g"s,
                                 "cats:c-ps/a%00b"s,
                                 "cats:c-ps/a%0Ab"s,
                                 "cats:c-ps/a%7F"s,
                                 "cats:c-ps/a b"s,
                                 "cats:c-ps/a\0b"s,
                                 "cats:c-ps/a?b"s,
                                 "cats:c-ps/a#b"s,
                                 "cats:c-ps/\xc3\xa9"s,
                                 "xcats:c-ps/a"s,
                                 " cats:c-ps/a"s}) {
    EXPECT_FALSE(Name::parse(uri)) << uri;
  }
}

TEST(Names, BadlyWrittenOnesAreStillOurs) {
  EXPECT_TRUE(is_cats("cats:x"));
  EXPECT_TRUE(is_cats("CATS:sci/a/b"));
  EXPECT_FALSE(is_cats("spiffe://cats:x"));
  EXPECT_FALSE(is_cats("cat"));
}

TEST(Names, Expected) {
  const std::vector<Name> names{{Kind::kSci, "i", "s"}, {Kind::kCPs, "p", {}}};
  EXPECT_TRUE((Expected{Kind::kSci, {}}.meets(names)));
  EXPECT_TRUE((Expected{Kind::kCPs, "p"}.meets(names)));
  EXPECT_FALSE((Expected{Kind::kCPs, "i"}.meets(names)));
  EXPECT_FALSE((Expected{Kind::kCSma, {}}.meets(names)));
}

}  // namespace
}  // namespace margay::security
