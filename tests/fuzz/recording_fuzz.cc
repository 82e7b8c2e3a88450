// SPDX-License-Identifier: Apache-2.0
// Any bytes as the lines of a recorded table. Nothing may crash; what is refused says why in one line; what is read is
// the same when it is written and read again.

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/check.h"
#include "dataplane/table_record.h"
#include "tests/fuzz/target.h"

FUZZ_TARGET(recording) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const auto line = margay::dp::parse_line(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (!line) {
      MARGAY_CHECK(!line.error().message.empty() && line.error().message.find('\n') == std::string::npos);
      continue;
    }
    const auto again = margay::dp::parse_line(margay::dp::format_line(*line));
    MARGAY_CHECK(again && *again == *line);
  }
  return 0;
}
