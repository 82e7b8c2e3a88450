// SPDX-License-Identifier: Apache-2.0
#pragma once

// A digest of which rows somebody holds in which versions. Does not depend on their order; one row comes or goes in
// O(1), and the digest of two sets that share no row is the sum of theirs. Tells two views apart, proves nothing
// against somebody who chooses rows to collide: it goes inside signed messages. Pure; any thread.

#include <cstdint>
#include <string>

#include "control/northbound/core/row.h"

namespace margay::northbound {

// A number modulo 2^128. Of no row: 0.
struct Digest {
  uint64_t high = 0, low = 0;
  Digest& operator+=(const Digest& other);
  Digest& operator-=(const Digest& other);
  bool operator==(const Digest&) const = default;
};

// What is hashed for a row, integers in network byte order: length of the CS-ID (2 bytes), CS-ID; 0 for a site row, or
// 1, length of the CSCI-ID (2 bytes), CSCI-ID; epoch (8 bytes), commit (8 bytes). REQUIRES: both ids at most 65535
// bytes
std::string canonical_bytes(const RowKey& key, const RowVersion& version);

// XXH3's 128 bits, with seed 0, of the canonical bytes.
Digest digest_of(const RowKey& key, const RowVersion& version);

}  // namespace margay::northbound
