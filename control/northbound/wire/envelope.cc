// SPDX-License-Identifier: Apache-2.0
#include "control/northbound/wire/envelope.h"

#include <algorithm>

#include "control/northbound/wire/advertisement.h"
#include "control/record/wire_values.h"
#include "margay/v1/advertisement.pb.h"
#include "margay/v1/envelope.pb.h"

namespace margay::northbound {
namespace {

constexpr v1::Algorithm to_wire(Algorithm a) { return control::enum_to_wire<v1::Algorithm>(a); }
static_assert(to_wire(Algorithm::kEd25519) == v1::ALGORITHM_ED25519);

std::optional<Unopened> judge_signature(const v1::Signed& in, const OpenRules& rules) {
  if (in.signature().empty()) {
    const bool bare = in.key_id().empty() && in.algorithm() == v1::ALGORITHM_UNSPECIFIED;
    if (rules.accept_unsigned && bare) return std::nullopt;
    return Unopened{Fault::kUnsigned, "signature: expected one"};
  }
  const Key* key = rules.find_key ? rules.find_key(in.key_id()) : nullptr;
  if (key == nullptr) return Unopened{Fault::kUnknownKey, "key_id: expected one of the sender's"};
  if (in.algorithm() != to_wire(key->algorithm)) {
    return Unopened{Fault::kWrongAlgorithm, "algorithm: expected that of key " + in.key_id()};
  }
  if (!key->verify(signed_bytes(in.payload()), in.signature())) {
    return Unopened{Fault::kBadSignature, "signature: expected that of key " + in.key_id() + " over this payload"};
  }
  return std::nullopt;
}

}  // namespace

std::string signed_bytes(std::string_view payload) {
  std::string out(kContext);
  out += '\0';
  out += payload;
  return out;
}

void seal(const Message& message, Nanoseconds now, const Signer* signer, v1::Signed& out) {
  v1::Advertisement advertisement;
  to_wire(message, now, advertisement);
  advertisement.SerializeToString(out.mutable_payload());
  if (signer == nullptr) return;
  out.set_key_id(signer->key_id);
  out.set_algorithm(to_wire(signer->algorithm));
  out.set_signature(signer->sign(signed_bytes(out.payload())));
}

std::variant<Opened, Unopened> open(const v1::Signed& in, const OpenRules& rules, Nanoseconds now) {
  const size_t size = in.payload().size();
  const Unopened too_long{Fault::kTooLong, "payload: expected at most " + std::to_string(rules.size_limit) + " bytes"};
  if (size > std::max(rules.size_limit, kSizeLimit)) return too_long;
  if (auto fault = judge_signature(in, rules)) return std::move(*fault);
  v1::Advertisement advertisement;
  if (!advertisement.ParseFromString(in.payload()))
    return Unopened{Fault::kMalformed, "payload: expected an Advertisement"};
  if (size > rules.size_limit && !advertisement.has_hello()) return too_long;
  Result<Message> message = message_of(advertisement, now);
  if (!message) return Unopened{Fault::kMalformed, message.error().message};
  return Opened{std::move(*message), in.key_id()};
}

}  // namespace margay::northbound
