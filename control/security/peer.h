// SPDX-License-Identifier: Apache-2.0
#pragma once

// Who is at the other end of a connection, out of a certificate that was found good. Immutable; any thread.

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "control/security/names.h"

namespace margay::security {

struct Peer {
  std::vector<Name> names;
  std::string serial;         // hexadecimal, upper case
  std::string issuer;         // RFC 2253, one line
  std::string subject;        // the same
  std::string fingerprint;    // SHA-256 of the certificate, hexadecimal, lower case
  int64_t not_after = 0;      // Unix seconds
  std::string certificate;    // PEM
  std::string intermediates;  // PEM; may hold the certificate itself, too

  // Whether it may report for this CSCI-ID as an instance of this service (D-16, CSMA-187).
  bool may_report(std::string_view csci_id, std::string_view cs_id) const {
    return std::ranges::any_of(
        names, [&](const Name& n) { return n.kind == Kind::kSci && n.identity == csci_id && n.cs_id == cs_id; });
  }
};

}  // namespace margay::security
