// SPDX-License-Identifier: Apache-2.0
#include "control/northbound/core/digest.h"

#include <xxhash.h>

namespace margay::northbound {
namespace {

void put(uint64_t value, unsigned bytes, std::string& out) {
  for (unsigned i = bytes; i-- > 0;) out += static_cast<char>(value >> (8 * i) & 0xff);
}

void put(const std::string& text, std::string& out) {
  put(text.size(), 2, out);
  out += text;
}

}  // namespace

Digest& Digest::operator+=(const Digest& other) {
  low += other.low;
  high += other.high + (low < other.low ? 1 : 0);
  return *this;
}

Digest& Digest::operator-=(const Digest& other) {
  high -= other.high + (low < other.low ? 1 : 0);
  low -= other.low;
  return *this;
}

std::string canonical_bytes(const RowKey& key, const RowVersion& version) {
  std::string out;
  out.reserve(2 + key.cs_id.size() + 3 + (key.csci_id ? key.csci_id->size() : 0) + 16);
  put(key.cs_id, out);
  put(key.csci_id ? 1 : 0, 1, out);
  if (key.csci_id) put(*key.csci_id, out);
  put(version.epoch, 8, out);
  put(version.commit, 8, out);
  return out;
}

Digest digest_of(const RowKey& key, const RowVersion& version) {
  const std::string bytes = canonical_bytes(key, version);
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return Digest{hash.high64, hash.low64};
}

}  // namespace margay::northbound
