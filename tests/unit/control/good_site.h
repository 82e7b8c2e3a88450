// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <gtest/gtest.h>

#include "control/site_reader.h"

namespace margay::test {

// What a site file says that is to be in order.
inline control::SiteSpec good(const std::string& text) {
  auto spec = control::parse_site(text, "site.yaml");
  if (spec) return *spec;
  ADD_FAILURE() << spec.error().message << "\n" << text;
  return {.site = {}, .scis = {{}}, .c_sma = control::CSmaSpec{}};
}

}  // namespace margay::test
