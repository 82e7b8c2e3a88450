// SPDX-License-Identifier: Apache-2.0
// The messages that docs/northbound.md shows. Payloads were encoded by protoc from text, signatures made by OpenSSL
// with the key of RFC 8032's first test, digests by libxxhash over bytes put together by hand.
#include <fstream>

#include <gtest/gtest.h>

#include "control/northbound/wire/envelope.h"
#include "control/security/signing.h"
#include "margay/v1/envelope.pb.h"
#include "tests/support/rfc8032_key.h"
#include "tests/support/temp_folder.h"
#include "tests/unit/control/northbound/rig.h"

namespace margay::northbound {
namespace {

using test::hex;
using test::kStart;
using test::kUnixMs;

security::Signer key() {
  const margay::test::TempFolder folder;
  const std::string name = folder.path() + "/key";
  std::ofstream(name) << margay::test::kRfc8032Key;
  auto signer = security::Signer::load(name);
  EXPECT_TRUE(signer) << (signer ? "" : signer.error().message);
  return *signer;
}

Header to_c_ps(uint64_t sequence, uint64_t seen, uint64_t nonce) {
  return {Direction::kToCPs, "c-sma.a", "cps.b", "0123456789abcdef", sequence, seen, nonce, kUnixMs};
}
Header to_c_sma(std::string challenge, uint64_t sequence, uint64_t seen, uint64_t nonce) {
  return {Direction::kToCSma, "cps.b", "c-sma.a", std::move(challenge), sequence, seen, nonce, kUnixMs};
}

void expect(const Message& message, const std::string& payload, const std::string& signature) {
  const security::Signer with = key();
  const Signer signer{"k1", Algorithm::kEd25519, [&](std::string_view bytes) { return with.sign(bytes); }};
  v1::Signed out;
  seal(message, kStart, &signer, out);
  EXPECT_EQ(hex(out.payload()), payload) << name_of(message.body);
  EXPECT_EQ(hex(out.signature()), signature) << name_of(message.body);
}

TEST(Vectors, HelloOfACPs) {
  Hello hello{{1}, 1 << 20, {"ARS"}, "0123456789abcdef", true, false, {{"ARS", {7, 1}}}};
  expect(
      {to_c_sma("", 1, 0, 1), hello},
      "0a1e080212056370732e621a07632d736d612e612801380142060880e2cfaa06122d0a0101108080401a0341525322103031323334353637"
      "383961626364656628013a0b0a03415253120408071001",
      "e758e4c9e01eee8ad6ccafdd01fa982bf4ec261748c7c3a6439a792113283a9c76085b917deae6eec0a633ab58bb82340394aab7e6b5c0f8"
      "335f1dc45a5b1703");
}

TEST(Vectors, HelloOfACSma) {
  Hello hello{{1}, 1 << 20, {"ARS"}, "fedcba9876543210"};
  hello.epoch = 7;
  hello.heartbeat = 60 * kSecond;
  expect(
      {to_c_ps(1, 1, 17), hello},
      "0a3208011207632d736d612e611a056370732e6222103031323334353637383961626364656628013001381142060880e2cfaa0612240a01"
      "01108080401a0341525322106665646362613938373635343332313040074a02083c",
      "99ad3bc5707989d8cb81d65700ce07919eb9fc5e08186da9f3cc0ff78b6bb82a082005d135f995b74a8be3d5b6c244aec779b9f0583868c0"
      "d44491aac5787b03");
}

TEST(Vectors, BatchWithAWithdrawal) {
  Row site{RowKey{"ARS"}, {7, 2}};
  site.metrics.gas = 400;
  site.metrics.computing_time_ms = 5;
  site.health = {2, 0, 1, 0};
  site.sci_health = HealthState::kHealthy;
  site.scis = 1;
  site.measured_at = kStart - 250 * kMillisecond;
  site.valid_for = 180 * kSecond;
  const Change change{"ARS", {site}, {{RowKey{"ARS", "192.0.2.11:80"}, {7, 2}, WithdrawReason::kFailed}}};
  expect(
      {to_c_ps(2, 1, 18), Batch{{Delta{change, {7, 1}, {7, 2}}}}},
      "0a3208011207632d736d612e611a056370732e6222103031323334353637383961626364656628023001381242060880e2cfaa061a670a65"
      "0a034152531204080710011a040807100222320a070a034152531a0012040807100218900320055208080210001801200058016001700182"
      "01"
      "051080e59a778a010308b4012a1e0a140a03415253120d3139322e302e322e31313a38301204080710021801",
      "3aea2529fa943ed3df759259e72d8bd7fb7cff3bec15189ec6994e1e0d08f8b71f09875e318582334580c8b8044cee1db8c1b2d5d97be53b"
      "d0acd0e977fb4d0d");
}

TEST(Vectors, Keepalive) {
  const Digest site = digest_of(RowKey{"ARS"}, {7, 2}), sci = digest_of(RowKey{"ARS", "192.0.2.10:80"}, {7, 1});
  EXPECT_EQ(site, (Digest{0x9f1d5a6b0a5a698e, 0xa7077fca3cce440d}));
  EXPECT_EQ(sci, (Digest{0xee2805bfc1df28f1, 0xcec58f726fca3f1c}));
  Digest sum = site;
  sum += sci;
  expect(
      {to_c_ps(3, 2, 19), Keepalive{{View{{"ARS", {7, 2}}, View::Check{2, sum}}}}},
      "0a3208011207632d736d612e611a056370732e6222103031323334353637383961626364656628033002381342060880e2cfaa063a250a23"
      "0a0b0a034152531204080710021214080212108d45602acc39928075cd0f3cac988329",
      "ca78dc7949dcec9f0011aa02d108076cf8c2f006db686d205293e59db7bb899a39468cbbd1bad8bd8c5a01826ab4f5aeb460a59fd62ae720"
      "c84f1af234a0fa0a");
}

TEST(Vectors, AnAck) {
  expect(
      {to_c_sma("fedcba9876543210", 3, 3, 3), Ack{3}},
      "0a32080212056370732e621a07632d736d612e6122106665646362613938373635343332313028033003380342060880e2cfaa064202080"
      "3",
      "53ededfa4feddea1848eb9027a47d0ca4c3f05673056564a3bec81e5f942f2f4c481e8810acd6a9957e755e0d61f96ba172ba1f4f0625fda"
      "eda4665d179f560c");
}

}  // namespace
}  // namespace margay::northbound
