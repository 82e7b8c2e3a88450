// SPDX-License-Identifier: Apache-2.0
#pragma once

// MARGAY_CHECK ends the process on a programmer's error, with the expression and its place. Never for
// anything that arrives from a network or a file. MARGAY_DCHECK is the same in debug and sanitizer
// builds and nothing otherwise: that one may stand on the packet path.

#include <cstdio>
#include <cstdlib>

#define MARGAY_CHECK(condition)                                                          \
  do {                                                                                   \
    if (!(condition)) [[unlikely]] {                                                     \
      std::fprintf(stderr, "%s:%d: check failed: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                      \
    }                                                                                    \
  } while (false)

#ifdef NDEBUG
#define MARGAY_DCHECK(condition) \
  do {                           \
  } while (false && (condition))
#else
#define MARGAY_DCHECK(condition) MARGAY_CHECK(condition)
#endif
