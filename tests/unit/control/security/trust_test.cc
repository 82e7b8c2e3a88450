// SPDX-License-Identifier: Apache-2.0
#include "control/security/trust.h"

#include <gtest/gtest.h>
#include <time.h>

#include <optional>
#include <string>

#include "tests/unit/control/security/pki_rig.h"

namespace margay::security {
namespace {

class TrustTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    pki = new Pki;
    pki->pki("c-sma site-1");
    pki->pki("sci a ARS=188.3.67.3:67 'X/Y=[2001:db8::1]:80'");
    pki->pki("sci b ARS=188.3.67.4:67", "--key ed25519");
    pki->pki("sci old ARS=1", "--from -10 --days 5");
    pki->pki("sci early ARS=1", "--from 5 --days 5");
  }
  static void TearDownTestSuite() { delete pki; }
  // A folder with lists of other times must not stay for the tests that follow.
  void TearDown() override { pki->pki("crl"); }

  static Trust::Verdict judge(const Trust& trust, const std::string& name, const Expected& expected = kAnySci,
                              Side side = Side::kClient) {
    return trust.judge(pki->text(name + ".pem"), "", side, expected);
  }
  static std::string refusal(const Trust& trust, const std::string& name, const Expected& expected = kAnySci,
                             Side side = Side::kClient) {
    const auto verdict = judge(trust, name, expected, side);
    return verdict.refusal ? std::string(name_of(*verdict.refusal)) : "";
  }
  static Pki* pki;
};
Pki* TrustTest::pki = nullptr;

TEST_F(TrustTest, AGoodPeer) {
  const auto verdict = judge(*pki->trust("site-1"), "a");
  ASSERT_FALSE(verdict.refusal) << verdict.detail;
  const Peer& peer = verdict.peer;
  ASSERT_EQ(peer.names.size(), 2u);
  EXPECT_TRUE(peer.may_report("188.3.67.3:67", "ARS"));
  EXPECT_TRUE(peer.may_report("[2001:db8::1]:80", "X/Y"));
  // Each CSCI-ID with its own service alone (CSMA-187).
  EXPECT_FALSE(peer.may_report("188.3.67.3:67", "X/Y"));
  EXPECT_FALSE(peer.may_report("ARS", "188.3.67.3:67"));
  EXPECT_EQ(peer.subject, "CN=a");
  EXPECT_EQ(peer.issuer, "CN=CATS test CA");
  EXPECT_EQ(peer.fingerprint.size(), 64u);
  EXPECT_NEAR(static_cast<double>(peer.not_after - time(nullptr)), 365.0 * 86400, 300);
}

TEST_F(TrustTest, EitherKindOfKeyAndEitherSide) {
  const auto trust = pki->trust("site-1");
  EXPECT_EQ(refusal(*trust, "b"), "");
  EXPECT_EQ(refusal(*trust, "b", kAnySci, Side::kServer), "");
}

TEST_F(TrustTest, UnknownCa) {
  const Pki other;
  other.pki("c-sma site-1");
  EXPECT_EQ(refusal(*other.trust("site-1"), "a"), "unknown_ca");
  // A certificate that signs itself is nobody's.
  EXPECT_EQ(refusal(*other.trust("site-1"), "ca"), "unknown_ca");
}

TEST_F(TrustTest, Time) {
  const auto trust = pki->trust("site-1");
  EXPECT_EQ(refusal(*trust, "old"), "certificate_expired");
  EXPECT_EQ(refusal(*trust, "early"), "certificate_not_yet_valid");
}

TEST_F(TrustTest, Revoked) {
  pki->pki("sci c ARS=2");
  const auto before = pki->trust("site-1");
  const auto verdict = judge(*before, "c");
  ASSERT_FALSE(verdict.refusal);
  pki->pki("revoke c");
  EXPECT_EQ(refusal(*before, "c"), "");  // a Trust never changes
  const auto after = pki->trust("site-1");
  EXPECT_EQ(refusal(*after, "c"), "certificate_revoked");
  EXPECT_EQ(refusal(*after, "a"), "");
  EXPECT_EQ(after->still_good(verdict.peer, Side::kClient, kAnySci), Refusal::kRevoked);
  EXPECT_EQ(before->still_good(verdict.peer, Side::kClient, kAnySci), std::nullopt);
  EXPECT_EQ(refusal(*pki->trust("site-1", false), "c"), "");  // nobody asked for a list
}

TEST_F(TrustTest, AListThatRanOutEndsNewConnectionsAndNotLiveOnes) {
  const auto peer = judge(*pki->trust("site-1"), "a").peer;
  pki->pki("crl", "--from -10 --days 5");
  const auto trust = pki->trust("site-1");
  EXPECT_EQ(refusal(*trust, "a"), "crl_expired");
  EXPECT_EQ(trust->still_good(peer, Side::kClient, kAnySci), std::nullopt);
  const auto alarms = trust->alarms(time(nullptr), 0);
  ASSERT_EQ(alarms.size(), 1u);
  EXPECT_EQ(alarms[0], "revocation list of CN=CATS test CA has run out");
}

TEST_F(TrustTest, AListThatRanOutStillRevokes) {
  pki->pki("sci d ARS=3");
  const auto peer = judge(*pki->trust("site-1"), "d").peer;
  pki->pki("revoke d");
  pki->pki("crl", "--from -10 --days 5");
  EXPECT_EQ(pki->trust("site-1")->still_good(peer, Side::kClient, kAnySci), Refusal::kRevoked);
}

TEST_F(TrustTest, AListOfTomorrow) {
  pki->pki("crl", "--from 1 --days 5");
  EXPECT_EQ(refusal(*pki->trust("site-1"), "a"), "crl_not_yet_valid");
}

TEST_F(TrustTest, AListOfAnotherCa) {
  const Pki other;
  pki->write("crl.pem", other.text("crl.pem"));
  EXPECT_EQ(refusal(*pki->trust("site-1"), "a"), "crl_missing");
}

TEST_F(TrustTest, Names) {
  const auto trust = pki->trust("site-1");
  pki->odd("nameless", "subjectAltName=DNS:example.org,URI:spiffe://x/y");
  EXPECT_EQ(refusal(*trust, "nameless"), "no_cats_name");
  pki->odd("badname", "subjectAltName=URI:cats:sci/a/b,URI:cats:sci/a");
  EXPECT_EQ(refusal(*trust, "badname"), "bad_cats_name");
  EXPECT_EQ(refusal(*trust, "a", {.kind = Kind::kCSma}), "wrong_name");
  EXPECT_EQ(refusal(*trust, "site-1", {.kind = Kind::kCSma, .identity = "site-2"}), "wrong_name");
  EXPECT_EQ(refusal(*trust, "site-1", {.kind = Kind::kCSma, .identity = "site-1"}), "");
}

TEST_F(TrustTest, Unfit) {
  const auto trust = pki->trust("site-1");
  pki->odd("server", "extendedKeyUsage=serverAuth\\nsubjectAltName=URI:cats:sci/a/b");
  EXPECT_EQ(refusal(*trust, "server", kAnySci, Side::kServer), "");
  EXPECT_EQ(refusal(*trust, "server", kAnySci, Side::kClient), "unfit_certificate");
}

TEST_F(TrustTest, NoneAndNonsense) {
  const auto trust = pki->trust("site-1");
  const auto of = [&](const std::string& pem) { return trust->judge(pem, "", Side::kClient, kAnySci).refusal; };
  EXPECT_EQ(of(""), Refusal::kNoCertificate);
  EXPECT_EQ(of("x"), Refusal::kMalformed);
  const std::string pem = pki->text("a.pem");
  EXPECT_EQ(of(pem.substr(0, pem.size() / 2)), Refusal::kMalformed);
  EXPECT_EQ(of(pem + pem), Refusal::kMalformed);
  std::string flipped = pem;
  flipped[pem.size() - 60] = flipped[pem.size() - 60] == 'A' ? 'B' : 'A';  // in the signature
  EXPECT_TRUE(of(flipped).has_value());
}

TEST_F(TrustTest, FilesThatCannotBeUsed) {
  const auto why = [&](Files files) {
    const auto trust = Trust::load(files);
    return trust ? std::string() : trust.error().message;
  };
  Files files = pki->files("a");
  EXPECT_EQ(why(files), "");
  files.key = pki->file("b.key");
  EXPECT_EQ(why(files), files.key + ": expected the key of " + files.certificate);
  files = pki->files("a");
  files.ca = pki->file("b.pem");
  EXPECT_EQ(why(files), files.ca + ": expected CA certificates, not CN=b");
  files.ca = pki->file("none.pem");
  EXPECT_EQ(why(files), files.ca + ": No such file or directory");
  files = pki->files("a");
  files.crl = pki->file("ca.pem");
  EXPECT_EQ(why(files), files.crl + ": expected PEM of: revocation lists");
}

TEST_F(TrustTest, Alarms) {
  const auto trust = pki->trust("site-1");
  const int64_t now = time(nullptr);
  EXPECT_TRUE(trust->alarms(now, 86400).empty());
  // The list is the first to run out, after 30 days; then the certificate, after 365.
  ASSERT_EQ(trust->alarms(now + 30 * 86400 - 3600, 86400).size(), 1u);
  EXPECT_EQ(trust->alarms(now + 366 * 86400, 0).size(), 2u);
  ASSERT_TRUE(trust->crl_next_update());
  EXPECT_NEAR(static_cast<double>(*trust->crl_next_update() - now), 30.0 * 86400, 300);
}

}  // namespace
}  // namespace margay::security
