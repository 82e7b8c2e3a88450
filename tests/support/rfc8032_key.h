// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace margay::test {

// The private key of RFC 8032's first test (7.1), in PEM (RFC 8410).
inline constexpr std::string_view kRfc8032Key =
    "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n"
    "-----END PRIVATE KEY-----\n";

}  // namespace margay::test
