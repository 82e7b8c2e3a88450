// SPDX-License-Identifier: Apache-2.0
// What libFuzzer calls: the one target that is linked with it.
#include "tests/fuzz/target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const margay::test::FuzzTarget target = margay::test::fuzz_targets().begin()->second;
  return target(data, size);
}
