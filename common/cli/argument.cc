// SPDX-License-Identifier: Apache-2.0
#include "common/cli/argument.h"

#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/format.h>

namespace margay {
namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

// Reads the word that begins at `at`; returns the index behind it.
size_t read_word(std::string_view line, size_t at, Words& out) {
  Word word{{}, at + 1, line[at] == '"'};
  if (!word.quoted) {
    while (at < line.size() && !is_space(line[at])) word.text += line[at++];
    out.words.push_back(std::move(word));
    return at;
  }
  out.open_quote = true;
  for (++at; at < line.size(); ++at) {
    if (line[at] == '"') {
      out.open_quote = false;
      ++at;
      break;
    }
    if (line[at] == '\\' && at + 1 < line.size()) ++at;
    word.text += line[at];
  }
  out.words.push_back(std::move(word));
  return at;
}

std::optional<uint64_t> parse_number(std::string_view text) {
  uint64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Error not_this(const std::string& expected, const Word& word) {
  return Error{fmt::format("expected {}, not '{}'", expected, word.text)};
}

Result<Argument> read_name(const ArgumentKind& kind, const Word& word, std::span<const Word> before) {
  if (kind.names) {
    const std::vector<std::string> names = kind.names(before);
    if (std::find(names.begin(), names.end(), word.text) == names.end()) {
      if (names.empty()) return Error{fmt::format("expected {}, but there is none", kind.expected)};
      return not_this(fmt::format("{}, one of: {}", kind.expected, list_of(names)), word);
    }
  }
  return Argument{word.text, word.position};
}

Result<Argument> read_number(const ArgumentKind& kind, const Word& word) {
  const std::optional<uint64_t> number = parse_number(word.text);
  if (!number || *number < kind.min || *number > kind.max) {
    return not_this(fmt::format("{}, {} to {}", kind.expected, kind.min, kind.max), word);
  }
  return Argument{*number, word.position};
}

Result<Argument> read_duration(const ArgumentKind& kind, const Word& word) {
  const Result<std::chrono::nanoseconds> duration = parse_duration(word.text);
  if (!duration) return not_this(kind.expected, word);
  const auto count = static_cast<uint64_t>(duration->count());
  if (count < kind.min || count > kind.max) {
    return not_this(fmt::format("{}, {} s to {} s", kind.expected, kind.min / 1'000'000'000, kind.max / 1'000'000'000),
                    word);
  }
  return Argument{*duration, word.position};
}

Result<Argument> read_address(const ArgumentKind& kind, const Word& word) {
  const Result<IpAddress> address = IpAddress::parse(word.text);
  if (!address) return not_this(kind.expected, word);
  return Argument{*address, word.position};
}

}  // namespace

Words split_words(std::string_view line) {
  Words out;
  size_t at = 0;
  while (at < line.size()) {
    if (is_space(line[at])) {
      ++at;
      continue;
    }
    at = read_word(line, at, out);
  }
  out.ends_in_word = out.open_quote || (!line.empty() && !is_space(line.back()));
  return out;
}

std::string quote_if_needed(std::string_view word) {
  const bool plain = !word.empty() && word.front() != '"' && std::none_of(word.begin(), word.end(), is_space);
  if (plain) return std::string(word);
  std::string out = "\"";
  for (const char c : word) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

Result<Argument> read_argument(const ArgumentKind& kind, const Word& word, std::span<const Word> before) {
  switch (kind.type) {
    case ArgumentType::kName:
      return read_name(kind, word, before);
    case ArgumentType::kNumber:
      return read_number(kind, word);
    case ArgumentType::kDuration:
      return read_duration(kind, word);
    case ArgumentType::kAddress:
      return read_address(kind, word);
  }
  return not_this(kind.expected, word);
}

Result<std::chrono::nanoseconds> parse_duration(std::string_view text) {
  struct Unit {
    std::string_view name;
    int64_t nanoseconds;
  };
  static constexpr std::array<Unit, 7> kUnits{{{"ns", 1},
                                               {"us", 1'000},
                                               {"ms", 1'000'000},
                                               {"s", 1'000'000'000},
                                               {"m", 60'000'000'000},
                                               {"h", 3'600'000'000'000},
                                               {"d", 86'400'000'000'000}}};
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const std::optional<uint64_t> count = parse_number(text.substr(0, digits));
  for (const Unit& unit : kUnits) {
    if (!count || text.substr(digits) != unit.name) continue;
    if (*count > static_cast<uint64_t>(std::numeric_limits<int64_t>::max() / unit.nanoseconds)) break;
    return std::chrono::nanoseconds(static_cast<int64_t>(*count) * unit.nanoseconds);
  }
  return Error{fmt::format("expected a duration such as 600s, 250ms or 10m, not '{}'", text)};
}

std::string list_of(std::span<const std::string> names) {
  static constexpr size_t kShown = 12;
  std::string out;
  for (size_t i = 0; i < names.size() && i < kShown; ++i) {
    if (i > 0) out += ' ';
    out += quote_if_needed(names[i]);
  }
  if (names.size() > kShown) out += fmt::format(" ... ({} in all)", names.size());
  return out;
}

}  // namespace margay
