// SPDX-License-Identifier: Apache-2.0
#include "common/yaml_text.h"

#include <algorithm>

namespace margay {
namespace {

// Brackets in quotes and comments count too, so the bound is far above what the depth limit lets pass.
constexpr int kOpenBracketsMax = 1000;

std::string hex_byte(char byte) {
  static constexpr char kDigits[] = "0123456789abcdef";
  const auto b = static_cast<unsigned char>(byte);
  return {'0', 'x', kDigits[b >> 4], kDigits[b & 15]};
}

YamlPlace place_at(std::string_view text, size_t at) {
  const std::string_view before = text.substr(0, at);
  const size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  return {static_cast<uint32_t>(std::count(before.begin(), before.end(), '\n')) + 1,
          static_cast<uint32_t>(at - line_start) + 1};
}

// The length of the UTF-8 sequence (RFC 3629 §4) that the text begins with, 0 if it is none.
size_t utf8_length(std::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const auto tail = [&](size_t i) { return (byte(i) & 0xc0) == 0x80; };
  const unsigned first = byte(0), second = byte(1);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return tail(1) ? 2 : 0;
  if ((first & 0xf0) == 0xe0) {
    const bool overlong = first == 0xe0 && second < 0xa0;
    const bool surrogate = first == 0xed && second > 0x9f;
    return tail(1) && tail(2) && !overlong && !surrogate ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    const bool overlong = first == 0xf0 && second < 0x90;
    const bool beyond = first == 0xf4 && second > 0x8f;
    return tail(1) && tail(2) && tail(3) && !overlong && !beyond ? 4 : 0;
  }
  return 0;
}

bool is_control(char c) {
  return (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\r' && c != '\t') || c == 0x7f;
}

}  // namespace

std::optional<YamlFault> find_fault(std::string_view text) {
  if (text.size() > kYamlBytesMax) {
    return YamlFault{{}, "longer than " + std::to_string(kYamlBytesMax) + " bytes"};
  }
  int open_brackets = 0;
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (is_control(c)) return YamlFault{place_at(text, at), "the control character " + hex_byte(c) + " is not allowed"};
    const size_t length = utf8_length(text.substr(at));
    if (length == 0) return YamlFault{place_at(text, at), "the byte " + hex_byte(c) + " is not UTF-8 here"};
    if (c == '[' || c == '{') ++open_brackets;
    if (c == ']' || c == '}') open_brackets = std::max(0, open_brackets - 1);
    if (open_brackets > kOpenBracketsMax) {
      return YamlFault{place_at(text, at), "more than " + std::to_string(kOpenBracketsMax) + " brackets are open"};
    }
    at += length;
  }
  return std::nullopt;
}

std::string in_quotes(std::string_view text) {
  constexpr size_t kBytesMax = 60;
  size_t end = 0;
  while (end < text.size() && end < kBytesMax) end += std::max<size_t>(1, utf8_length(text.substr(end)));
  std::string quoted = "\"";
  for (const char c : text.substr(0, end)) {
    if (is_control(c) || c == '\n' || c == '\r' || c == '\t') {
      quoted += "\\x" + hex_byte(c).substr(2);
    } else {
      quoted += c;
    }
  }
  return quoted + (end < text.size() ? "...\"" : "\"");
}

}  // namespace margay
