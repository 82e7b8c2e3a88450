// SPDX-License-Identifier: Apache-2.0
#pragma once

// `security` of the site file: whose certificates are believed and who we are. Files are read by those who use them.

#include <optional>
#include <string>

namespace margay::security {

struct SigningKeyFile {
  std::string id, file;
  bool operator==(const SigningKeyFile&) const = default;
};

// All PEM. Without a CA there is no TLS, and nothing may listen or connect.
struct SecurityConfig {
  std::string ca, certificate, key;
  std::string crl = {};                            // empty: nothing is looked up
  std::optional<SigningKeyFile> signing_key = {};  // absent: what is advertised is not signed
  bool operator==(const SecurityConfig&) const = default;
};

}  // namespace margay::security
