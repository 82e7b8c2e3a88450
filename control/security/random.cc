// SPDX-License-Identifier: Apache-2.0
#include "control/security/random.h"

#include <openssl/rand.h>

#include "common/check.h"

namespace margay::security {

std::string random_bytes(size_t count) {
  std::string bytes(count, '\0');
  MARGAY_CHECK(RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(count)) == 1);
  return bytes;
}

}  // namespace margay::security
