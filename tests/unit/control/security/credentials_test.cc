// SPDX-License-Identifier: Apache-2.0
#include "control/security/credentials.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/unit/control/security/pki_rig.h"

namespace margay::security {
namespace {

struct CredentialsTest : testing::Test {
  CredentialsTest() {
    pki.pki("c-sma site-1");
    pki.pki("c-sma next");
    pki.pki("sci a ARS=1");
    credentials = pki.credentials("site-1");
    before = credentials->current();
  }
  Pki pki;
  std::shared_ptr<Credentials> credentials;
  std::shared_ptr<const Trust> before;
};

TEST_F(CredentialsTest, NothingChanged) {
  const auto polled = credentials->poll();
  ASSERT_TRUE(polled);
  EXPECT_FALSE(*polled);
  EXPECT_EQ(credentials->current(), before);
}

// The same inode, as a careless `cp` leaves it.
TEST_F(CredentialsTest, AListThatWasOverwrittenIsSeen) {
  const std::string old = pki.text("crl.pem");
  pki.pki("revoke a");
  const std::string fresh = pki.text("crl.pem");
  pki.write("crl.pem", old);
  ASSERT_TRUE(credentials->reload());
  EXPECT_FALSE(credentials->current()->judge(pki.text("a.pem"), "", Side::kClient, kAnySci).refusal);
  pki.write("crl.pem", fresh);
  const auto polled = credentials->poll();
  ASSERT_TRUE(polled);
  EXPECT_TRUE(*polled);
  EXPECT_EQ(credentials->current()->judge(pki.text("a.pem"), "", Side::kClient, kAnySci).refusal, Refusal::kRevoked);
}

TEST_F(CredentialsTest, AMismatchedPairIsKeptOutUntilItMatches) {
  pki.write("site-1.key", pki.text("next.key"));
  const auto polled = credentials->poll();
  ASSERT_FALSE(polled);
  EXPECT_EQ(polled.error().message, pki.file("site-1.key") + ": expected the key of " + pki.file("site-1.pem"));
  EXPECT_EQ(credentials->current(), before);
  const auto again = credentials->poll();  // told once
  ASSERT_TRUE(again);
  EXPECT_FALSE(*again);

  pki.write("site-1.pem", pki.text("next.pem"));
  const auto mended = credentials->poll();
  ASSERT_TRUE(mended);
  EXPECT_TRUE(*mended);
  EXPECT_EQ(credentials->current()->certificate_pem(), pki.text("next.pem"));
}

TEST_F(CredentialsTest, HalfAFileChangesNothing) {
  const std::string whole = pki.text("ca.pem");
  pki.write("ca.pem", whole.substr(0, whole.size() / 2));
  EXPECT_FALSE(credentials->poll());
  EXPECT_EQ(credentials->current(), before);
  std::filesystem::remove(pki.file("ca.pem"));
  EXPECT_FALSE(credentials->poll());
  EXPECT_EQ(credentials->current(), before);
  pki.write("ca.pem", whole);
  const auto mended = credentials->poll();
  ASSERT_TRUE(mended);
  EXPECT_TRUE(*mended);
}

TEST(Credentials, AreNoneWithoutTheirFiles) {
  EXPECT_FALSE(Credentials::open({.ca = "/none", .certificate = "/none", .key = "/none"}));
}

}  // namespace
}  // namespace margay::security
