// SPDX-License-Identifier: Apache-2.0
#include "control/northbound/core/nonce.h"

namespace margay::northbound {

void NonceWindow::use(uint64_t nonce) {
  if (nonce > highest_) {
    // Bits are a ring: what comes in above is cleared first, whole words when it jumps.
    if (nonce - highest_ >= kSize) {
      bits_.fill(0);
    } else {
      for (uint64_t n = highest_ + 1; n < nonce; ++n) bits_[n / kWord % bits_.size()] &= ~(uint64_t{1} << n % kWord);
    }
    highest_ = nonce;
  }
  bits_[nonce / kWord % bits_.size()] |= uint64_t{1} << nonce % kWord;
}

NonceWindow NonceWindow::used_up_to(uint64_t highest) {
  NonceWindow window;
  window.highest_ = highest;
  window.bits_.fill(~uint64_t{0});
  return window;
}

}  // namespace margay::northbound
