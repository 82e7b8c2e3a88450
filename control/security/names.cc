// SPDX-License-Identifier: Apache-2.0
#include "control/security/names.h"

#include <algorithm>
#include <array>
#include <optional>

namespace margay::security {
namespace {

constexpr std::string_view kScheme = "cats:";
constexpr std::array kKinds{Kind::kSci, Kind::kCSma, Kind::kCPs};

bool is_alnum(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_unreserved(char c) { return is_alnum(c) || std::string_view("-._~").find(c) != std::string_view::npos; }
// pchar of RFC 3986 3.3, but for "%".
bool is_plain(char c) {
  return is_unreserved(c) || std::string_view("!$&'()*+,;=:@").find(c) != std::string_view::npos;
}

int hex(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

std::string encode(std::string_view part) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string out;
  for (const char c : part) {
    const auto byte = static_cast<unsigned char>(c);
    if (is_unreserved(c)) {
      out += c;
    } else {
      out += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return out;
}

std::optional<std::string> decode(std::string_view part) {
  std::string out;
  for (size_t i = 0; i < part.size(); ++i) {
    char c = part[i];
    if (c == '%') {
      if (part.size() - i < 3 || hex(part[i + 1]) < 0 || hex(part[i + 2]) < 0) return {};
      c = static_cast<char>(hex(part[i + 1]) * 16 + hex(part[i + 2]));
      i += 2;
    } else if (!is_plain(c)) {
      return {};
    }
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) return {};
    out += c;
  }
  if (out.empty() || out.size() > kNamePartMax) return {};
  return out;
}

}  // namespace

std::string_view name_of(Kind k) {
  switch (k) {
    case Kind::kSci:
      return "sci";
    case Kind::kCSma:
      return "c-sma";
    case Kind::kCPs:
      return "c-ps";
  }
  return "?";
}

std::string Name::uri() const {
  const std::string head = std::string(kScheme) + std::string(name_of(kind)) + '/';
  return kind == Kind::kSci ? head + encode(cs_id) + '/' + encode(identity) : head + encode(identity);
}

Result<Name> Name::parse(std::string_view uri) {
  const Error wrong{"expected cats:sci/CS_ID/CSCI_ID, cats:c-sma/IDENTITY or cats:c-ps/IDENTITY"};
  if (!uri.starts_with(kScheme)) return wrong;
  std::string_view rest = uri.substr(kScheme.size());
  const std::string_view kind = rest.substr(0, rest.find('/'));
  const auto* const found = std::ranges::find(kKinds, kind, [](Kind k) { return name_of(k); });
  if (found == kKinds.end() || kind.size() == rest.size()) return wrong;
  rest.remove_prefix(kind.size() + 1);
  Name name{.kind = *found, .identity = {}};
  if (name.kind == Kind::kSci) {
    const size_t slash = rest.find('/');
    if (slash == std::string_view::npos) return wrong;
    const auto cs_id = decode(rest.substr(0, slash));
    if (!cs_id) return wrong;
    name.cs_id = *cs_id;
    rest.remove_prefix(slash + 1);
  }
  const auto identity = decode(rest);
  if (!identity) return wrong;
  name.identity = *identity;
  return name;
}

bool is_cats(std::string_view uri) {
  return uri.size() >= kScheme.size() && std::ranges::equal(uri.substr(0, kScheme.size()), kScheme,
                                                            [](char a, char b) { return (a | 0x20) == (b | 0x20); });
}

bool Expected::meets(const std::vector<Name>& names) const {
  return std::ranges::any_of(
      names, [&](const Name& n) { return n.kind == kind && (identity.empty() || n.identity == identity); });
}

std::string Expected::format() const {
  return identity.empty() ? "any " + std::string(name_of(kind)) : std::string(name_of(kind)) + '/' + identity;
}

}  // namespace margay::security
