// SPDX-License-Identifier: Apache-2.0
#pragma once

// The small site file of site_text.h, changed where the control plane looks. All of them name a data plane to join.

#include <string>

#include "tests/support/site_text.h"

namespace margay::test {

inline constexpr const char* kSocket = "/run/margay/dataplane.sock";
inline const std::string kScrape = R"(metrics: {prometheus: "http://{address}:9100/metrics"})";

inline std::string joining(const std::string& text) {
  return replaced(text, "dataplane:\n", "dataplane:\n  control: " + std::string(kSocket) + "\n");
}
inline std::string section(const std::string& text) { return joining(kSiteText) + text; }
inline std::string sci(const std::string& lines) { return joining(with_sci(lines)); }
inline std::string health(const std::string& flow) { return sci("health: {" + flow + "}"); }
// With metrics of node_exporter.
inline std::string scraped(const std::string& flow) { return sci(kScrape + "\n    health: {" + flow + "}"); }

}  // namespace margay::test
