// SPDX-License-Identifier: Apache-2.0
#pragma once

// Who a certificate speaks for: its SAN URIs (D-16).
//
//     cats:sci/{cs_id}/{csci_id}   an SCI, of the one service that it serves; several a certificate
//     cats:c-sma/{identity}        a C-SMA
//     cats:c-ps/{identity}         a C-PS
//
// Each part is 1 to 255 bytes (D-25) without control characters. In the URI every byte stands for itself if RFC 3986
// permits it in a path segment, and as %XX otherwise; the maker writes %XX for all but RFC 3986's unreserved
// characters. Names are compared as parts, never as URIs.

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"

namespace margay::security {

inline constexpr size_t kNamePartMax = 255;  // bytes (D-25)

enum class Kind : uint8_t { kSci, kCSma, kCPs };
std::string_view name_of(Kind k);  // "sci", "c-sma", "c-ps"

struct Name {
  Kind kind{};
  std::string identity;    // of an SCI: its CSCI-ID
  std::string cs_id = {};  // of an SCI alone
  auto operator<=>(const Name&) const = default;

  std::string uri() const;
  // "expected cats:..." where it is none.
  static Result<Name> parse(std::string_view uri);
};

// Whether a URI claims to be one of ours, well or badly written.
bool is_cats(std::string_view uri);

// What the other side must be named. Absent identity: any name of that kind.
struct Expected {
  Kind kind{};
  std::string identity = {};
  bool meets(const std::vector<Name>& names) const;
  std::string format() const;  // "c-sma/site-1", "any sci"
};

}  // namespace margay::security
