// SPDX-License-Identifier: Apache-2.0
#pragma once

// A text in which '^' marks where an error is expected: the test names the place by pointing at it. The mark is
// taken out; columns count bytes, lines and columns begin at 1.

#include <gtest/gtest.h>

#include <cstddef>
#include <string>

namespace margay::test {

struct MarkedText {
  std::string text;
  std::string place;  // "line:column", empty where there is no mark

  explicit MarkedText(std::string marked) : text(std::move(marked)) {
    const size_t at = text.find('^');
    if (at == std::string::npos) return;
    text.erase(at, 1);
    size_t line = 1, column = 1;
    for (size_t i = 0; i < at; ++i) {
      ++column;
      if (text[i] == '\n') {
        ++line;
        column = 1;
      }
    }
    place = std::to_string(line) + ':' + std::to_string(column);
  }
};

// `text` with the one place that says `from` replaced. Fails the test where there is no such place.
inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  if (at == std::string::npos) {
    ADD_FAILURE() << "no \"" << from << "\" in the text";
    return text;
  }
  return text.replace(at, from.size(), to);
}

}  // namespace margay::test
