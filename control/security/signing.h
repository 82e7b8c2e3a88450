// SPDX-License-Identifier: Apache-2.0
#pragma once

// Signatures over bytes (CSMA-141, 142, D-32): Ed25519 (RFC 8032), keys in PEM files (RFC 8410). What the bytes must
// hold so that a signature means something is the protocol's (control/northbound). Immutable; any thread.

#include <memory>
#include <string>
#include <string_view>

#include "common/result.h"

namespace margay::security {

inline constexpr size_t kSignatureSize = 64;

class Signer {
 public:
  // Errors: FILE: what. A key of another algorithm is one.
  static Result<Signer> load(const std::string& private_key_file);
  // kSignatureSize bytes. Ed25519 fails for want of memory alone: then it is empty, which no verifier takes.
  std::string sign(std::string_view bytes) const;
  std::string public_key_pem() const;

 private:
  struct Key;
  explicit Signer(std::shared_ptr<const Key> key) : key_(std::move(key)) {}
  std::shared_ptr<const Key> key_;
};

class Verifier {
 public:
  static Result<Verifier> load(const std::string& public_key_file);
  bool verify(std::string_view bytes, std::string_view signature) const;

 private:
  struct Key;
  explicit Verifier(std::shared_ptr<const Key> key) : key_(std::move(key)) {}
  std::shared_ptr<const Key> key_;
};

}  // namespace margay::security
