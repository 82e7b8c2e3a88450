// SPDX-License-Identifier: Apache-2.0
#pragma once

// Random values for what is written down and read again; each takes more than one.

#include <optional>
#include <string>

#include "common/share.h"
#include "common/units.h"
#include "tests/support/seed.h"

namespace margay::test {

template <class T>
std::optional<T> maybe(Random& random, T value) {
  return random.one_in(2) ? std::optional(value) : std::nullopt;
}
template <class E>
E any(Random& random, E last) {
  return static_cast<E>(random.below(static_cast<uint64_t>(last) + 1));
}
inline std::string name(Random& random) { return "n" + std::to_string(random.below(1000)) + " \"\xc3\xa9\\"; }
inline Nanoseconds time_from(Random& random, Nanoseconds min) { return min + random.next() % (100'000 * kSecond); }
inline Share share(Random& random, uint32_t max = 4) { return Share{random.below(max * 1000 + 1) / 1000.0}; }
inline uint32_t number(Random& random) { return static_cast<uint32_t>(random.next()); }

}  // namespace margay::test
