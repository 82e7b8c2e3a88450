// SPDX-License-Identifier: Apache-2.0
#pragma once

// FUZZ_TARGET(name) { ... } is a function over the bytes `data` of `size` that returns 0. A fuzzer has one of them,
// replay_main.cc all, each by its name.

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

namespace margay::test {

using FuzzTarget = int (*)(const uint8_t* data, size_t size);

// Of this program. Filled before main.
inline std::map<std::string, FuzzTarget>& fuzz_targets() {
  static std::map<std::string, FuzzTarget> targets;
  return targets;
}

}  // namespace margay::test

#define FUZZ_TARGET(name)                                              \
  static int fuzz_##name(const uint8_t* data, size_t size);            \
  [[maybe_unused]] static const bool name##_is_known =                 \
      margay::test::fuzz_targets().emplace(#name, fuzz_##name).second; \
  static int fuzz_##name([[maybe_unused]] const uint8_t* data, [[maybe_unused]] size_t size)
