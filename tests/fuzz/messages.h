// SPDX-License-Identifier: Apache-2.0
#pragma once

// An input as a history of messages: for each a byte that says what is done with it, two with its length, low first,
// and so many bytes, or those that are left. Test code only.

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/units.h"

namespace margay::test {

struct Piece {
  uint8_t what = 0;
  std::string bytes;
};

inline std::vector<Piece> pieces_of(const uint8_t* data, size_t size) {
  std::vector<Piece> pieces;
  for (size_t at = 0; size - at >= 3;) {
    const size_t length = std::min(data[at + 1] | size_t{data[at + 2]} << 8, size - at - 3);
    pieces.push_back({data[at], {reinterpret_cast<const char*>(data) + at + 3, length}});
    at += 3 + length;
  }
  return pieces;
}

// REQUIRES: bytes.size() < 65536
inline void append_piece(std::string& history, unsigned what, std::string_view bytes) {
  history += static_cast<char>(what);
  history += static_cast<char>(bytes.size());
  history += static_cast<char>(bytes.size() >> 8);
  history += bytes;
}

// Three bits of `what`.
inline constexpr unsigned kPauseShift = 2;
inline Nanoseconds pause_of(uint8_t what) {
  static constexpr Nanoseconds kPauses[] = {0,           10 * kMillisecond, kSecond,       3 * kSecond,
                                            9 * kSecond, 60 * kSecond,      200 * kSecond, 3600 * kSecond};
  return kPauses[what >> kPauseShift & 7];
}

}  // namespace margay::test
