// SPDX-License-Identifier: Apache-2.0
#pragma once

// Addresses of ours that other hosts claim. Each claim is answered by one announcement, and none follows within
// DEFEND_INTERVAL: we keep our addresses under all circumstances (RFC 5227 §2.4 c). IPv6 is treated alike, as RFC 4862
// §5.4.4 leaves it open. The latest kClaimsMax addresses are remembered, with who claimed them last; when all of them
// were defended within the interval, another one is not. One worker.

#include <array>
#include <cstdint>
#include <span>

#include "common/net.h"
#include "dataplane/core/units.h"

namespace margay::dp {

struct AddressClaim {
  IpAddress address;
  MacAddress mac;  // of the other host
  PortIndex port = kNoPort;
  Tick defended = 0, seen = 0;
  uint64_t count = 0;
};

class Defence {
 public:
  static constexpr Tick kInterval = 1000;  // RFC 5227 §1.1: 10 s
  static constexpr size_t kClaimsMax = 64;

  // Somebody claims the address. Returns whether it is to be announced now.
  bool claimed(PortIndex port, const IpAddress& address, const MacAddress& mac, Tick now) {
    AddressClaim* claim = find(port, address, now);
    if (claim == nullptr) return false;
    const bool defend = claim->count == 0 || now - claim->defended >= kInterval;
    if (defend) claim->defended = now;
    claim->mac = mac;
    claim->seen = now;
    ++claim->count;
    return defend;
  }

  std::span<const AddressClaim> claims() const { return std::span(claims_).first(count_); }

 private:
  // The address's own, else one that is free or may be forgotten; nullptr: there is none.
  AddressClaim* find(PortIndex port, const IpAddress& address, Tick now) {
    AddressClaim* oldest = nullptr;
    for (AddressClaim& c : std::span(claims_).first(count_)) {
      if (c.port == port && c.address == address) return &c;
      if (oldest == nullptr || now - c.defended > now - oldest->defended) oldest = &c;
    }
    if (count_ < kClaimsMax) {
      oldest = &claims_[count_++];
    } else if (now - oldest->defended < kInterval) {
      return nullptr;
    }
    *oldest = {.address = address, .mac = {}, .port = port};
    return oldest;
  }

  std::array<AddressClaim, kClaimsMax> claims_;
  size_t count_ = 0;
};

}  // namespace margay::dp
