// SPDX-License-Identifier: Apache-2.0
#include "control/northbound/core/digest.h"

#include <gtest/gtest.h>

namespace margay::northbound {
namespace {

using namespace std::string_literals;

TEST(Digest, CanonicalBytesAreTheDocuments) {
  EXPECT_EQ(canonical_bytes(RowKey{"ARS", "192.0.2.10:80"}, {0x0102030405060708, 9}),
            "\x00\x03"
            "ARS"
            "\x01\x00\x0d"
            "192.0.2.10:80"
            "\x01\x02\x03\x04\x05\x06\x07\x08"
            "\x00\x00\x00\x00\x00\x00\x00\x09"s);
  EXPECT_EQ(canonical_bytes(RowKey{"ARS"}, {1, 2}),
            "\x00\x03"
            "ARS"
            "\x00"
            "\x00\x00\x00\x00\x00\x00\x00\x01"
            "\x00\x00\x00\x00\x00\x00\x00\x02"s);
}

TEST(Digest, KeysThatRunTogetherDiffer) {
  EXPECT_NE(digest_of(RowKey{"ab", "c"}, {1, 1}), digest_of(RowKey{"a", "bc"}, {1, 1}));
  EXPECT_NE(digest_of(RowKey{"a"}, {1, 1}), digest_of(RowKey{"a", ""}, {1, 1}));
}

TEST(Digest, OrderDoesNotMatterAndWhatGoesIsGone) {
  const Digest a = digest_of(RowKey{"a", "1"}, {1, 1}), b = digest_of(RowKey{"a", "2"}, {1, 2});
  Digest ab, ba;
  ab += a;
  ab += b;
  ba += b;
  ba += a;
  EXPECT_EQ(ab, ba);
  ab -= a;
  EXPECT_EQ(ab, b);
  ab -= b;
  EXPECT_EQ(ab, Digest{});
}

TEST(Digest, CarriesIntoTheHighHalfAndBorrowsFromIt) {
  Digest sum{1, ~uint64_t{0}};
  sum += Digest{0, 2};
  EXPECT_EQ(sum, (Digest{2, 1}));
  sum -= Digest{0, 2};
  EXPECT_EQ(sum, (Digest{1, ~uint64_t{0}}));
  Digest over{~uint64_t{0}, ~uint64_t{0}};
  over += Digest{0, 1};
  EXPECT_EQ(over, Digest{});  // modulo 2^128
  over -= Digest{0, 1};
  EXPECT_EQ(over, (Digest{~uint64_t{0}, ~uint64_t{0}}));
}

}  // namespace
}  // namespace margay::northbound
