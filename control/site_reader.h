// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads the site file for margay-control: what the data plane reads of it, by the same reader and with the same errors
// (common/site/site_reader.h), and then what is the control plane's own. docs/site-file.md lists the keys. For role
// c-sma a file need not tell of SCIs.
//
// What is returned is complete and consistent. Set-up and reload only; any thread; no exception leaves these functions,
// whatever the file holds.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/net.h"
#include "common/result.h"
#include "common/site/site_config.h"
#include "control/c_sma_spec.h"
#include "control/sci/config.h"
#include "control/security/config.h"

namespace margay::control {

enum class Role : uint8_t { kSci, kCSma, kBoth };

struct ReportCopies {
  enum class To : uint8_t { kNobody, kStdout, kFile } to = To::kNobody;
  std::string file = {};
  bool operator==(const ReportCopies&) const = default;
};

struct SiteSpec {
  // Its SCIs are what snapshots are made of; has a control_socket. For role c-sma without either.
  SiteConfig site;
  std::vector<SciSpec> scis;                         // one for each of `site.scis`, in its order
  std::map<std::string, ReportsTo> reports_to = {};  // by CSCI-ID; of the others reports stay in the process
  std::optional<CSmaSpec> c_sma = {};                // absent: no C-SMA runs here
  security::SecurityConfig security = {};
  std::string state_directory = "/var/lib/margay";
  Role role = Role::kBoth;
  std::string cli_socket = "/run/margay/control.sock";
  std::optional<AddressPort> http_listen = {};  // absent: no HTTP server
  PulledBy pulled_by = {};                      // without an address: nobody asks the SCIs for reports
  ReportCopies reports = {};                    // where JSON lines go
};

Result<SiteSpec> read_site_file(const std::string& path);

// `file` is what errors call the text.
Result<SiteSpec> parse_site(std::string_view text, const std::string& file);

// The part of an SciSpec that the data plane is told too: names, addresses, limits, weights, the degradation factor,
// the drain deadline.
SciSpec spec_of(const SciConfig& config);

// What a running margay-control cannot take over from a file that was read again, by its key; empty: all of it can.
std::vector<std::string> needs_restart(const SiteSpec& now, const SiteSpec& next);

}  // namespace margay::control
