// SPDX-License-Identifier: Apache-2.0
// Sealing and opening, with the bytes that docs/northbound.md shows.
#include "control/northbound/wire/envelope.h"

#include <gtest/gtest.h>

#include "margay/v1/advertisement.pb.h"
#include "margay/v1/envelope.pb.h"
#include "tests/unit/control/northbound/rig.h"

namespace margay::northbound {
namespace {

using test::hex;
using test::kStart;
using test::kUnixMs;

// No signature that anybody should use: enough to see what is signed.
std::string toy(std::string_view bytes) {
  return "toy:" + std::string(bytes.substr(0, 24)) + std::to_string(bytes.size());
}
const Signer kSigner{"k1", Algorithm::kEd25519, toy};
const Key kKey{Algorithm::kEd25519, [](std::string_view b, std::string_view s) { return toy(b) == s; }};

OpenRules rules() {
  return {[](const std::string& id) { return id == "k1" ? &kKey : nullptr; }};
}
Message message() { return {{Direction::kToCPs, "c-sma.a", "cps.b", "0123456789abcdef", 3, 2, 17, kUnixMs}, Ack{5}}; }
v1::Signed sealed() {
  v1::Signed out;
  seal(message(), kStart, &kSigner, out);
  return out;
}
std::string fault_of(const v1::Signed& in, const OpenRules& by) {
  const auto opened = open(in, by, kStart);
  const auto* fault = std::get_if<Unopened>(&opened);
  return fault == nullptr ? "" : std::string(name_of(fault->fault)) + ", " + fault->detail;
}

TEST(Envelope, OpensWhatItSealed) {
  const auto opened = open(sealed(), rules(), kStart);
  ASSERT_TRUE(std::holds_alternative<Opened>(opened));
  EXPECT_EQ(std::get<Opened>(opened).message, message());
  EXPECT_EQ(std::get<Opened>(opened).key_id, "k1");
}

TEST(Envelope, TheSignatureCoversContextAndPayload) {  // D-32
  using namespace std::string_literals;
  EXPECT_EQ(signed_bytes("payload"), "margay.v1.Advertisement\0payload"s);
  EXPECT_EQ(sealed().signature(), toy(signed_bytes(sealed().payload())));
}

TEST(Envelope, RefusesByName) {
  v1::Signed in = sealed();
  in.set_key_id("k2");
  EXPECT_EQ(fault_of(in, rules()), "unknown_key, key_id: expected one of the sender's");
  in = sealed();
  in.set_algorithm(v1::ALGORITHM_UNSPECIFIED);
  EXPECT_EQ(fault_of(in, rules()), "wrong_algorithm, algorithm: expected that of key k1");
  in = sealed();
  in.mutable_payload()->push_back('x');
  EXPECT_EQ(fault_of(in, rules()), "bad_signature, signature: expected that of key k1 over this payload");
  in = sealed();
  in.clear_signature();
  EXPECT_EQ(fault_of(in, rules()), "unsigned, signature: expected one");
  OpenRules lenient = rules();
  lenient.accept_unsigned = true;
  EXPECT_EQ(fault_of(in, lenient), "unsigned, signature: expected one");  // it names a key
  in = v1::Signed();
  seal(message(), kStart, nullptr, in);
  EXPECT_EQ(fault_of(in, rules()), "unsigned, signature: expected one");
  EXPECT_EQ(fault_of(in, lenient), "");
}

TEST(Envelope, IsVerifiedBeforeItIsRead) {
  v1::Signed in;
  in.set_payload("\xff\xff");
  in.set_key_id("k1");
  in.set_algorithm(v1::ALGORITHM_ED25519);
  in.set_signature("not of this");
  EXPECT_EQ(fault_of(in, rules()), "bad_signature, signature: expected that of key k1 over this payload");
  in.set_signature(toy(signed_bytes(in.payload())));
  EXPECT_EQ(fault_of(in, rules()), "malformed, payload: expected an Advertisement");
  in.clear_payload();
  in.set_signature(toy(signed_bytes("")));
  EXPECT_EQ(fault_of(in, rules()).substr(0, 10), "malformed,");
}

TEST(Envelope, SizeIsJudgedFirst) {
  OpenRules small = rules();
  v1::Signed in;
  in.set_payload(std::string(kSizeLimit + 1, 'x'));
  EXPECT_EQ(fault_of(in, small), "too_long, payload: expected at most 1048576 bytes");
  small.size_limit = 10;
  EXPECT_EQ(fault_of(sealed(), small), "too_long, payload: expected at most 10 bytes");
}

// The payload of the message above, field by field: tag, length, value (Protobuf's wire format).
TEST(Envelope, BytesOfAnAck) {
  EXPECT_EQ(hex(sealed().payload()),
            "0a32"                                  // header, 50 bytes
            "0801"                                  // direction: to the C-PS
            "1207632d736d612e61"                    // sender: c-sma.a
            "1a056370732e62"                        // receiver: cps.b
            "221030313233343536373839616263646566"  // challenge
            "2803"                                  // sequence: 3
            "3002"                                  // seen: 2
            "3811"                                  // nonce: 17
            "42060880e2cfaa06"                      // sent: 1'700'000'000 s
            "42020805");                            // ack: sequence 5
}

}  // namespace
}  // namespace margay::northbound
