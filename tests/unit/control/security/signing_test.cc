// SPDX-License-Identifier: Apache-2.0
#include "control/security/signing.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/unit/control/security/pki_rig.h"

namespace margay::security {
namespace {

// RFC 8032, 7.1, TEST 2, its keys in the form of RFC 8410.
constexpr const char* kPrivate =
    "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIEzNCJso/5banbbDRuwRTg9bijGfNaumJNqM9u1PuKb7\n"
    "-----END PRIVATE KEY-----\n";
constexpr const char* kPublic =
    "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAPUAXw+hDiVqStwqnTRt+vJyYLM8uxJaMwM1V8Sr0Zgw=\n"
    "-----END PUBLIC KEY-----\n";
constexpr const char* kMessage = "\x72";
constexpr const char* kSignature =
    "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb0"
    "0d"
    "291612bb0c00";

std::string hex(const std::string& bytes) {
  std::string out;
  for (const char c : bytes) {
    char two[3];
    snprintf(two, sizeof two, "%02x", static_cast<unsigned char>(c));
    out += two;
  }
  return out;
}

struct SigningTest : testing::Test {
  SigningTest() {
    pki.write("rfc.key", kPrivate);
    pki.write("rfc.pub", kPublic);
  }
  Pki pki;
};

TEST_F(SigningTest, AsRfc8032Says) {
  const auto signer = Signer::load(pki.file("rfc.key"));
  ASSERT_TRUE(signer) << signer.error().message;
  EXPECT_EQ(hex(signer->sign(kMessage)), kSignature);
  EXPECT_EQ(signer->public_key_pem(), kPublic);
  const auto verifier = Verifier::load(pki.file("rfc.pub"));
  ASSERT_TRUE(verifier) << verifier.error().message;
  EXPECT_TRUE(verifier->verify(kMessage, signer->sign(kMessage)));
}

TEST_F(SigningTest, EveryBitCounts) {
  pki.pki("signing-key one");
  const auto signer = Signer::load(pki.file("one.sign.key"));
  const auto verifier = Verifier::load(pki.file("one.sign.pub"));
  ASSERT_TRUE(signer);
  ASSERT_TRUE(verifier);
  const std::string message = "an advertisement";
  const std::string signature = signer->sign(message);
  ASSERT_TRUE(verifier->verify(message, signature));
  const auto flipped = [](std::string bytes, size_t bit) {
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
    return bytes;
  };
  for (size_t bit = 0; bit < message.size() * 8; ++bit)
    EXPECT_FALSE(verifier->verify(flipped(message, bit), signature));
  for (size_t bit = 0; bit < signature.size() * 8; ++bit) {
    EXPECT_FALSE(verifier->verify(message, flipped(signature, bit)));
  }
  EXPECT_FALSE(verifier->verify(message, signature.substr(1)));
  EXPECT_FALSE(verifier->verify(message, signature + '\0'));
  EXPECT_FALSE(verifier->verify(message, ""));
  EXPECT_FALSE(verifier->verify(message + '\0', signature));
}

TEST_F(SigningTest, AnotherKeysSignatureIsNone) {
  pki.pki("signing-key one");
  const auto signer = Signer::load(pki.file("one.sign.key"));
  const auto verifier = Verifier::load(pki.file("rfc.pub"));
  ASSERT_TRUE(signer);
  ASSERT_TRUE(verifier);
  EXPECT_FALSE(verifier->verify("x", signer->sign("x")));
}

TEST_F(SigningTest, TheEmptyMessageHasOneToo) {
  const auto signer = Signer::load(pki.file("rfc.key"));
  const auto verifier = Verifier::load(pki.file("rfc.pub"));
  ASSERT_TRUE(signer);
  ASSERT_TRUE(verifier);
  EXPECT_TRUE(verifier->verify("", signer->sign("")));
}

TEST_F(SigningTest, WrongFiles) {
  pki.pki("sci a ARS=1");
  const auto wrong = [&](const char* file) {
    const auto signer = Signer::load(pki.file(file));
    return signer ? "" : signer.error().message.substr(pki.file("").size());
  };
  EXPECT_EQ(wrong("a.key"), "a.key: expected an Ed25519 key");
  EXPECT_EQ(wrong("none"), "none: No such file or directory");
  EXPECT_TRUE(wrong("rfc.pub").starts_with("rfc.pub: expected a private key in PEM"));
  const auto verifier = Verifier::load(pki.file("rfc.key"));
  ASSERT_FALSE(verifier);
  EXPECT_TRUE(verifier.error().message.starts_with(pki.file("rfc.key") + ": expected a public key in PEM"));
}

}  // namespace
}  // namespace margay::security
