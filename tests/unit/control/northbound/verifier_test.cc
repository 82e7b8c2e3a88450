// SPDX-License-Identifier: Apache-2.0
#include "control/northbound/core/verifier.h"

#include <gtest/gtest.h>

#include "tests/unit/control/northbound/rig.h"

namespace margay::northbound {
namespace {

using test::kCPs;
using test::kCPsChallenge;
using test::kCSma;
using test::kUnixMs;

Header header(uint64_t sequence, uint64_t nonce) {
  return {Direction::kToCPs, kCSma, kCPs, kCPsChallenge, sequence, 0, nonce, kUnixMs};
}

struct VerifierTest : testing::Test {
  Verifier fresh() { return Verifier({Direction::kToCPs, kCSma, kCPs, kCPsChallenge}); }
  std::optional<Fault> judge(const Header& h) { return verifier.judge(h, "k1", kUnixMs, nonces); }

  Verifier verifier = fresh();
  NonceWindows nonces;
};

TEST_F(VerifierTest, TakesWhatIsInItsPlace) {
  EXPECT_EQ(judge(header(1, 10)), std::nullopt);
  EXPECT_EQ(judge(header(2, 11)), std::nullopt);
  EXPECT_EQ(verifier.last_sequence(), 2u);
}

TEST_F(VerifierTest, RefusesWhatIsSaidToOthers) {  // D-32
  const auto changed = [](auto change) {
    Header h = header(1, 10);
    change(h);
    return h;
  };
  EXPECT_EQ(judge(changed([](Header& h) { h.direction = Direction::kToCSma; })), Fault::kWrongDirection);
  EXPECT_EQ(judge(changed([](Header& h) { h.sender = "c-sma.other"; })), Fault::kWrongSender);
  EXPECT_EQ(judge(changed([](Header& h) { h.receiver = "cps.other"; })), Fault::kWrongReceiver);
  EXPECT_EQ(judge(changed([](Header& h) { h.challenge = "challenge of before"; })), Fault::kWrongChallenge);
  EXPECT_EQ(judge(changed([](Header& h) { h.challenge = ""; })), Fault::kWrongChallenge);
  EXPECT_TRUE(nonces.empty());  // nothing was learnt of them
  EXPECT_EQ(judge(header(1, 10)), std::nullopt);
}

TEST_F(VerifierTest, SequenceHasNeitherGapsNorRepetitions) {  // CSMA-147
  EXPECT_EQ(judge(header(2, 10)), Fault::kGap);
  EXPECT_EQ(judge(header(1, 10)), std::nullopt);
  EXPECT_EQ(judge(header(1, 11)), Fault::kRepeated);
  EXPECT_EQ(judge(header(0, 12)), Fault::kRepeated);
  EXPECT_EQ(judge(header(3, 13)), Fault::kGap);
  EXPECT_EQ(judge(header(2, 13)), std::nullopt);
}

TEST_F(VerifierTest, EdgesOfTheReplayWindow) {  // CSMA-145
  Header h = header(1, 10);
  h.sent_unix_ms = kUnixMs - 30'001;
  EXPECT_EQ(judge(h), Fault::kTooOld);
  h.sent_unix_ms = kUnixMs + 30'001;
  EXPECT_EQ(judge(h), Fault::kTooNew);
  h.sent_unix_ms = kUnixMs - 30'000;
  EXPECT_EQ(judge(h), std::nullopt);
  h = header(2, 11);
  h.sent_unix_ms = kUnixMs + 30'000;
  EXPECT_EQ(judge(h), std::nullopt);
}

// The nonce is the key's: it stands over the end of a session, and another key has its own.
TEST_F(VerifierTest, NoncesOutliveTheSession) {  // CSMA-146
  EXPECT_EQ(judge(header(1, 5000)), std::nullopt);
  verifier = fresh();
  EXPECT_EQ(judge(header(1, 5000)), Fault::kNonceRepeated);
  EXPECT_EQ(judge(header(1, 5000 - 1024)), Fault::kNonceTooOld);
  EXPECT_EQ(verifier.judge(header(1, 5000), "k2", kUnixMs, nonces), std::nullopt);
  EXPECT_EQ(nonces.size(), 2u);
}

TEST_F(VerifierTest, RefusedNonceIsNotUsedUp) {
  Header h = header(1, 10);
  h.sent_unix_ms = kUnixMs - 60'000;
  EXPECT_EQ(judge(h), Fault::kTooOld);
  EXPECT_EQ(judge(header(1, 10)), std::nullopt);
}

TEST_F(VerifierTest, FirstMessageMayBeOlderThanTheChallengeWhereThatIsSaid) {
  Verifier::Expected expected{Direction::kToCPs, kCSma, kCPs, kCPsChallenge, true};
  Verifier lenient(expected);
  Header h = header(1, 10);
  h.challenge = "";
  EXPECT_EQ(lenient.judge(h, "k1", kUnixMs, nonces), std::nullopt);
  h = header(2, 11);
  h.challenge = "";
  EXPECT_EQ(lenient.judge(h, "k1", kUnixMs, nonces), Fault::kWrongChallenge);
}

// A repetition of another session is dropped; it cannot end this one, however old it is.
TEST_F(VerifierTest, WhatSomebodyRepeatsEndsNothing) {
  for (const Fault f : {Fault::kWrongDirection, Fault::kWrongSender, Fault::kWrongReceiver, Fault::kWrongChallenge,
                        Fault::kRepeated, Fault::kNonceRepeated, Fault::kNonceTooOld, Fault::kUnsigned,
                        Fault::kUnknownKey, Fault::kWrongAlgorithm, Fault::kBadSignature}) {
    EXPECT_FALSE(ends_session(f)) << name_of(f);
  }
  EXPECT_EQ(judge(header(1, 10)), std::nullopt);
  Header old = header(1, 9);
  old.challenge = "challenge of before";
  old.sent_unix_ms = kUnixMs - 3'600'000;
  EXPECT_EQ(judge(old), Fault::kWrongChallenge);
}

}  // namespace
}  // namespace margay::northbound
