// SPDX-License-Identifier: Apache-2.0
// Any bytes as what an instance's metrics endpoint shows. Nothing may crash; what is refused names its line.

#include <cstdint>
#include <string_view>

#include "common/check.h"
#include "control/collection/http/exposition.h"
#include "tests/fuzz/target.h"

FUZZ_TARGET(exposition) {
  const auto read = margay::control::parse_exposition({reinterpret_cast<const char*>(data), size});
  if (!read) {
    MARGAY_CHECK(read.error().message.starts_with("line "));
    return 0;
  }
  for (const margay::control::Series& series : *read) {
    MARGAY_CHECK(!series.name.empty());
    MARGAY_CHECK(series.labels.size() <= margay::control::kLabelsMax);
  }
  return 0;
}
