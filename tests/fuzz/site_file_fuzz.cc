// SPDX-License-Identifier: Apache-2.0
// Any bytes as a site file, read by both programs. Nothing may crash; an error is one line that begins with its place;
// what one reader refuses the other refuses with the same words, but for its own keys; what is accepted reads the same
// once more after it has been written out in full.

#include <cctype>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/check.h"
#include "common/site/site_reader.h"
#include "control/site_reader.h"
#include "tests/fuzz/target.h"
#include "tests/support/site_yaml.h"

namespace {

// "f:" digits ":" digits ": " something
bool has_place(std::string_view message) {
  if (!message.starts_with("f:")) return false;
  message.remove_prefix(2);
  for (const std::string_view end : {":", ": "}) {
    size_t digits = 0;
    while (digits < message.size() && std::isdigit(static_cast<unsigned char>(message[digits]))) ++digits;
    message.remove_prefix(digits);
    if (digits == 0 || !message.starts_with(end)) return false;
    message.remove_prefix(end.size());
  }
  return !message.empty() && message.find('\n') == std::string_view::npos;
}

}  // namespace

FUZZ_TARGET(site_file) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto site = margay::parse_site(text, "f");
  const auto control = margay::control::parse_site(text, "f");
  MARGAY_CHECK(control || has_place(control.error().message));
  if (!site) {
    MARGAY_CHECK(!control && site.error().message == control.error().message);
    return 0;
  }
  const std::string written = margay::test::site_yaml(*site);
  const auto again = margay::parse_site(written, "f");
  if (!again) std::fprintf(stderr, "%s\n%s", again.error().message.c_str(), written.c_str());
  MARGAY_CHECK(again.has_value());
  MARGAY_CHECK(margay::test::site_yaml(*again) == written);
  return 0;
}
