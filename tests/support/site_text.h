// SPDX-License-Identifier: Apache-2.0
#pragma once

// A small site file to change in tests: two ports, one forwarder, one SCI with two instances; and rows of files
// that must be refused.

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>

#include "common/site/site_reader.h"
#include "tests/support/marked_text.h"

namespace margay::test {

inline constexpr const char* kSiteText = R"(site: edge-1
dataplane:
  ports:
    - name: net0
      device: "0000:3b:02.0"
      addresses: [192.0.2.2/24, "2001:db8::2/64"]
    - name: net1
      device: net_null0
      addresses: [10.1.0.2/24]
forwarders:
  - {port: net0, mac: "02:00:00:00:00:01"}
scis:
  - csci_id: 192.0.2.10:80
    cs_id: ARS
    instances:
      - {id: si-1, address: 10.1.0.11, max_sessions: 200}
      - {id: si-2, address: 10.1.0.12, max_sessions: 200}
)";

// The same with further lines in a section; they are indented here.
inline std::string with_dataplane(const std::string& line) {
  return replaced(kSiteText, "dataplane:\n", "dataplane:\n  " + line + "\n");
}
inline std::string with_port0(const std::string& line) {
  return replaced(kSiteText, "      addresses: [192", "      " + line + "\n      addresses: [192");
}
inline std::string with_port1(const std::string& line) {
  return replaced(kSiteText, "      addresses: [10", "      " + line + "\n      addresses: [10");
}
inline std::string with_sci(const std::string& line) {
  return replaced(kSiteText, "    cs_id: ARS\n", "    cs_id: ARS\n    " + line + "\n");
}
// Of the first instance; `item` is "key: value".
inline std::string with_instance(const std::string& item) {
  return replaced(kSiteText, "10.1.0.11, max_sessions: 200", "10.1.0.11, max_sessions: 200, " + item);
}

struct RefusedSite {
  std::string text;   // '^' marks where the error is expected
  std::string error;  // what follows the place
};

// `parse` makes a Result of the text.
template <class Parse>
void check_rows(std::initializer_list<RefusedSite> rows, Parse parse) {
  for (const RefusedSite& row : rows) {
    const MarkedText marked(row.text);
    ASSERT_NE(marked.place, "") << row.text;
    const auto site = parse(marked.text);
    if (site) {
      ADD_FAILURE() << "accepted, expected " << row.error;
    } else {
      EXPECT_EQ(site.error().message, "site.yaml:" + marked.place + ": " + row.error) << row.text;
    }
  }
}

inline void check_rows(std::initializer_list<RefusedSite> rows) {
  check_rows(rows, [](const std::string& text) { return parse_site(text, "site.yaml"); });
}

}  // namespace margay::test
