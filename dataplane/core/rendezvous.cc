// SPDX-License-Identifier: Apache-2.0
#include "dataplane/core/rendezvous.h"

#include <cstring>

namespace margay::dp {
namespace {

// The finisher of SplitMix64 (Steele, Lea and Flood, 2014).
constexpr uint64_t scramble(uint64_t v) {
  v = (v ^ v >> 30) * 0xbf58476d1ce4e5b9;
  v = (v ^ v >> 27) * 0x94d049bb133111eb;
  return v ^ v >> 31;
}

uint64_t add_text(uint64_t hash, std::string_view text) {
  for (const char c : text) hash = scramble(hash + static_cast<unsigned char>(c) + 1);
  return scramble(hash);
}

}  // namespace

uint64_t rendezvous_name(std::string_view csci_id, std::string_view si_id) {
  return add_text(add_text(0x9e3779b97f4a7c15, csci_id), si_id);
}

uint64_t rendezvous_flow(const FlowKey& flow) {
  uint64_t words[2];
  static_assert(sizeof words == sizeof flow.client.bytes);
  std::memcpy(words, flow.client.bytes.data(), sizeof words);
  const uint64_t rest = flow.client_port | static_cast<uint64_t>(flow.protocol) << 16;
  return scramble(scramble(scramble(words[0]) ^ words[1]) ^ rest);
}

}  // namespace margay::dp
