// SPDX-License-Identifier: Apache-2.0
#pragma once

// A message in its envelope: written down, signed, and the other way round. Keys and their mathematics belong to
// others, who give them as functions. The signature covers the context, a zero byte and exactly the payload's bytes;
// they are verified before anything in them is looked at, and nothing is ever serialised again. Pure functions; any
// thread.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "common/units.h"
#include "control/northbound/core/fault.h"
#include "control/northbound/core/messages.h"

namespace margay::v1 {
class Signed;
}

namespace margay::northbound {

inline constexpr std::string_view kContext = "margay.v1.Advertisement";

enum class Algorithm : uint8_t { kEd25519 };

struct Signer {
  std::string key_id;
  Algorithm algorithm{};
  std::function<std::string(std::string_view bytes)> sign;  // the signature
};
struct Key {
  Algorithm algorithm{};
  std::function<bool(std::string_view bytes, std::string_view signature)> verify;
};
// A key of the peer by its id; nullptr: it has none such.
using FindKey = std::function<const Key*(const std::string& key_id)>;

// What is signed.
std::string signed_bytes(std::string_view payload);

// Without a signer: no signature, for C-PSes that were told to accept that. The header is complete, nonce too.
void seal(const Message& message, Nanoseconds now, const Signer* signer, v1::Signed& out);

struct Opened {
  Message message;
  std::string key_id;  // empty: not signed
};
struct Unopened {
  Fault fault{};
  std::string detail;  // one line: what was expected where
};
struct OpenRules {
  FindKey find_key;
  bool accept_unsigned = false;      // a peer's that signs is verified all the same
  uint32_t size_limit = kSizeLimit;  // bytes of the payload; hellos always may have kSizeLimit
};
std::variant<Opened, Unopened> open(const v1::Signed& in, const OpenRules& rules, Nanoseconds now);

}  // namespace margay::northbound
