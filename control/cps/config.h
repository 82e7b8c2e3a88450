// SPDX-License-Identifier: Apache-2.0
#pragma once

// What margay-cps reads of the site file: `cps`, and `security` for its own certificate. docs/site-file.md lists the
// keys. Set-up only.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"
#include "common/units.h"
#include "control/security/config.h"

namespace margay::cps {

// A C-SMA that may advertise, and for what (CSMA-139).
struct TrustedCSma {
  std::string identity;
  std::map<std::string, std::string> keys = {};  // by id: files; empty: it does not sign, and that is accepted
  std::vector<std::string> cs_ids;
  bool operator==(const TrustedCSma&) const = default;
};

struct CpsConfig {
  std::string file;  // where it was read from
  std::string listen = "0.0.0.0:7444";
  std::string cli_socket = "/run/margay/cps.sock";
  std::vector<TrustedCSma> c_smas;
  Nanoseconds window = 30 * kSecond;  // how far a send time may be off (CSMA-145)
  size_t max_rows = 131'072;          // of one C-SMA
  std::string state = {};             // file that the table outlives a restart in; empty: none
  security::SecurityConfig security;
};

Result<CpsConfig> read_cps_file(const std::string& path);
// `file` is what errors call the text.
Result<CpsConfig> parse_cps(std::string_view text, const std::string& file);

}  // namespace margay::cps
